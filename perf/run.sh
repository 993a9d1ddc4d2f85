#!/usr/bin/env bash
# The quick start: installs what is missing, builds, and measures all-reduce next to Open MPI in one run.
#
#   perf/run.sh [arguments of the perf program...]
#
# Without arguments: all_reduce_perf -b 8 -e 64M -f 4 --baseline mpi
# Every result is checked; the exit status is not 0 when one was wrong.
#
# Environment
#   RANKS=4                 how many ranks
#   PROGRAM=all_reduce_perf which perf program of build/release/perf
#
# Packages (scripts/packages.txt) are installed with apt-get, through sudo when needed; nothing is installed, and no network used, where
# they are present. The build is in build/release.
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

case ${1:-} in
  -h | --help)
    usage "$0"
    exit 0
    ;;
esac
ranks=${RANKS:-4}
program=${PROGRAM:-all_reduce_perf}
[[ $ranks =~ ^[1-9][0-9]*$ ]] || die "RANKS is '$ranks'; a number of ranks is expected, as in RANKS=4"
(($# > 0)) || set -- -b 8 -e 64M -f 4 --baseline mpi

install_packages build
configure_and_build release nccl "$program" || exit 1

binary=$(find build/release -type f -name "$program" -perm -u+x | head -n 1)
[ -n "$binary" ] || die "the build made no program $program"

launch=(mpirun -n "$ranks" --oversubscribe)
[ "$(id -u)" -ne 0 ] || launch+=(--allow-run-as-root)
live_stage "measure" "${launch[@]}" "$binary" "$@"
