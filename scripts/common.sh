# Shared by perf/run.sh, tests/run.sh and scripts/lint.sh; sourced by bash. Sets `root`, the top of the tree, and goes there.
#
# stage TEXT COMMAND...      runs the command, its output into build/logs; one line with the elapsed time, which a terminal shows
#                            growing (elsewhere a line now and then); the log's end on failure
# live_stage TEXT COMMAND... the same with the output shown as it comes
# install_packages GROUP...  installs what is missing of the named groups of scripts/packages.txt
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
logs=$root/build/logs
mkdir -p "$logs"
export LC_ALL=C.UTF-8

die() {
  echo "error: $*" >&2
  exit 1
}

# Prints the header comment of the calling script, without '#', up to the first line that is no comment.
usage() { awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$1"; }

stage_log() { echo "$logs/$(tr -cs 'a-zA-Z0-9\n' '-' <<<"$1").log"; }

# How far a command is, from what ninja or ctest wrote last: "[120/272] Building..." is " 120 of 272,".
steps_of() {
  sed -n -e 's/^\[\([0-9]*\)\/\([0-9]*\)\] .*/ \1 of \2,/p' -e 's/^ *\([0-9]*\)\/\([0-9]*\) Test .*/ \1 of \2,/p' "$1" | tail -n 1
}

# watch_stage TEXT LOG: until it is killed, or the script is gone. What sleeps must not keep a pipe of the script's open.
watch_stage() {
  local start=$SECONDS every=20
  [ ! -t 1 ] || every=1
  while sleep "$every" >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
    if [ -t 1 ]; then
      printf '\r%-56s%s %d s\033[K' "$1" "$(steps_of "$2")" $((SECONDS - start))
    else
      printf '\n  ...%s %d s (%s)' "$(steps_of "$2")" $((SECONDS - start)) "${2#"$root"/}"
    fi
  done
}

stage() {
  local text=$1 log status=0 start=$SECONDS watcher again=''
  shift
  log=$(stage_log "$text")
  : >"$log"
  printf '%-56s' "$text"
  watch_stage "$text" "$log" &
  watcher=$!
  "$@" >"$log" 2>&1 || status=$?
  kill "$watcher" 2>/dev/null
  wait "$watcher" 2>/dev/null
  if [ -t 1 ]; then
    again='\r%-56s\033[K'
  elif ((SECONDS - start >= 20)); then
    again='\n%-56s'
  fi
  # shellcheck disable=SC2059  # the format is one of those above
  [ -z "$again" ] || printf "$again" "$text"
  if ((status == 0)); then
    echo "ok ($((SECONDS - start)) s)"
  else
    echo "FAILED ($((SECONDS - start)) s): $*"
    tail -n "${TAIL_LINES:-60}" "$log" | sed 's/^/    /'
    echo "    (all of it: $log)"
  fi
  return "$status"
}

live_stage() {
  local text=$1 status=0 start=$SECONDS
  shift
  echo "$text: $*"
  "$@" || status=$?
  echo "$text: $([ "$status" -eq 0 ] && echo ok || echo "FAILED, exit $status") ($((SECONDS - start)) s)"
  return "$status"
}

packages_of() {
  local group
  for group in "$@"; do
    awk -v group="$group" '!/^#/ && $2 == group { print $1 }' "$root/scripts/packages.txt"
  done
}

missing_of() {
  local package
  for package in $(packages_of "$@"); do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      echo "$package"
  done
}

apt_install() {
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get -q update &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get -q install -y --no-install-recommends "$@"
}

install_packages() {
  local missing
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "not a Debian system: scripts/packages.txt names what has to be there"
    return 0
  fi
  missing=$(missing_of "$@" | xargs)
  if [ -z "$missing" ]; then
    printf '%-56sok (all present)\n' "packages"
    return 0
  fi
  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
    die "these packages are missing, and installing them takes root or sudo: $missing"
  echo "installing: $missing"
  # shellcheck disable=SC2086  # one word per package
  stage "packages" apt_install $missing || die "could not install: $missing"
}

# configure_and_build PRESET [TARGET...]: quiet; a configured tree is reused.
configure_and_build() {
  local preset=$1
  shift
  echo "what the build says: build/logs/configure-$preset.log, build/logs/build-$preset.log"
  stage "configure $preset" cmake --preset "$preset" &&
    stage "build $preset" cmake --build --preset "$preset" -j "$(nproc)" ${1:+--target "$@"}
}
