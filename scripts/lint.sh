#!/usr/bin/env bash
# The format check and the static checks.
#
#   scripts/lint.sh format    clang-format 14 over all sources; changes nothing
#   scripts/lint.sh tidy      clang-tidy over the library's sources (src, algorithms, transports)
#   scripts/lint.sh changed   clang-tidy over the sources that differ from the last commit, tests and perf included
#   scripts/lint.sh deep      clang-tidy over all sources, with the path analyzer: slow, for now and then
#   scripts/lint.sh           format, then tidy
#
# clang-tidy reads how each source is compiled from the preset debug, which is configured for it.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# All sources, one a line.
sources() {
  find src include algorithms transports perf tests examples -type f \
    -regex '.*\.\(h\|c\|cpp\|cu\|hip\)' | sort
}

# C++ sources that the build compiles, one a line; others have no flags to be read with.
compiled() {
  cmake --preset debug >"$logs/configure-debug.log" || die "cannot configure: $logs/configure-debug.log"
  sed -n "s|^ *\"file\": \"$root/\(.*\.cpp\)\",\{0,1\}\$|\1|p" build/debug/compile_commands.json |
    sort -u
}

# tidy FLAG...: over the files named on standard input.
tidy() { xargs -r -n 1 -P "$(nproc)" clang-tidy-16 -p build/debug --quiet "$@"; }

changed() {
  {
    git diff --name-only HEAD
    git ls-files --others --exclude-standard
  } | sort -u
}

format_check() {
  local bad
  bad=$(sources | xargs clang-format-14 --dry-run 2>&1 | sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: warning: .*/\1/p' | sort -u)
  [ -n "$bad" ] || return 0
  printf 'not formatted; run clang-format-14 -i on:\n%s\n' "$bad"
  return 1
}
tidy_library() { compiled | grep -E '^(src|algorithms|transports)/' | tidy; }

case ${1:-all} in
  format) format_check ;;
  tidy) tidy_library ;;
  changed) comm -12 <(compiled) <(changed) | tidy ;;
  deep) compiled | tidy '--checks=clang-analyzer-*' ;;
  all) format_check && tidy_library ;;
  -h | --help) usage "$0" ;;
  *) die "unknown argument '$1'; see --help" ;;
esac
