#!/usr/bin/env bash
# Builds the project and runs all its tests, then the sanitizer builds. The last line counts: "N passed, N failed, N skipped".
#
#   tests/run.sh [--quick] [--tidy]
#
#   --quick   the release build only, without the sanitizers
#   --tidy    clang-tidy over the library too (scripts/lint.sh tidy; some minutes)
#
# Stages: packages, format check, release build and all tests, address + undefined-behaviour sanitizers over the tests of the
# library, thread sanitizer over the tests of what runs concurrently. A stage that is no test program counts as one test.
# Packages (scripts/packages.txt) are installed with apt-get, through sudo when needed; nothing is installed, and no network used, where
# they are present. Builds are in build/<preset>, logs in build/logs. The exit status is 0 only if nothing failed.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

quick=false tidy=false
for argument in "$@"; do
  case $argument in
    --quick) quick=true ;;
    --tidy) tidy=true ;;
    -h | --help)
      usage "$0"
      exit 0
      ;;
    *) die "unknown argument '$argument'; see --help" ;;
  esac
done

passed=0 failed=0 skipped=0

# A stage that counts as one test.
check() {
  if stage "$@"; then ((++passed)); else ((++failed)); return 1; fi
}

# Adds the results in a JUnit file of ctest. A test that could not be run has failed; one that skipped itself says so.
count_results() {
  local counts
  counts=$(awk '
    /<testcase / { match($0, /status="[a-z]*"/); status = substr($0, RSTART + 8, RLENGTH - 9)
                   if (status == "run") p++; else if (status == "disabled") s++
                   else if (status == "fail") f++ }
    /<skipped / && status == "notrun" { if (/message="SKIP_/) s++; else f++ }
    END { print p + 0, f + 0, s + 0 }' "$1") || return 1
  read -r p f s <<<"$counts"
  printf '%-56s%s passed, %s failed, %s skipped\n' "" "$p" "$f" "$s"
  ((passed += p, failed += f, skipped += s))
  ((p + f + s > 0))
}

# run_ctest PRESET [ARGUMENT...]
run_ctest() {
  local preset=$1 results=$root/build/logs/$1.xml launcher=()
  shift
  rm -f "$results"
  # Address space randomisation of more than 28 bits is beyond what the sanitizers of gcc 12 expect.
  setarch -R true 2>/dev/null && launcher=(setarch -R)
  stage "test $preset" "${launcher[@]}" ctest --preset "$preset" --output-junit "$results" "$@"
  local status=$? before=$failed
  if ! [ -f "$results" ] || ! count_results "$results" || { ((status != 0)) && ((failed == before)); }; then
    ((++failed))  # ctest itself failed, or there was nothing to run
  fi
}

# build_and_test PRESET [ARGUMENT OF CTEST...]
build_and_test() {
  if configure_and_build "$1"; then run_ctest "$@"; else ((++failed)); fi
}

# areas PRESET LIST: test areas that the configured tree names in TESSERA_<LIST>_AREAS, as a pattern for labels.
areas() {
  sed -n "s/^TESSERA_$2_AREAS:[A-Z]*=//p" "build/$1/CMakeCache.txt" | tr ';' '|'
}

finish() {
  echo "all stages took $((SECONDS / 60)) min $((SECONDS % 60)) s"
  echo "$passed passed, $failed failed, $skipped skipped"
  ((failed == 0))
  exit
}

install_packages build test
check "format" scripts/lint.sh format
build_and_test release
$tidy && check "static checks" scripts/lint.sh tidy
$quick && finish

if configure_and_build asan addressed_tests; then
  # Left out: long computations over all numbers, which touch the same memory again and again.
  run_ctest asan -L "^($(areas asan ADDRESSED))\$" -E 'Rounding/|Search\.|Sizes\.|Verifier\.Accepts|ReadBackAsFast'
else
  ((++failed))
fi

if configure_and_build tsan concurrent_tests; then
  # Left out: tests that make ranks disagree on purpose (what such ranks write over each other is read, found to be foreign by its
  # fingerprint and discarded; the sanitizer cannot know).
  run_ctest tsan -L "^($(areas tsan CONCURRENT))\$" -E 'MessageSizes|ADisagreement'
else
  ((++failed))
fi
finish
