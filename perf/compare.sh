#!/usr/bin/env bash
# Compares tessera with Open MPI over host memory: every collective, sizes from 8 B to 64 MiB in powers of 4, fp32.
#
#   perf/compare.sh [--quick] [--network] [--ranks "2 4"] [--out DIR] [--build DIR] [--collectives "all_reduce ..."]
#
#   --quick        sizes by powers of 16 and up to 4 MiB
#   --network      between two hosts, played by network namespaces that a veth pair joins, over TCP (needs root and iproute2):
#                  against Open MPI's tcp transport, and, with iperf3 and perf/ping_pong, against what the network makes possible
#   --ranks        rank counts (2 4)
#   --out          where raw rows (CSV) and logs go (build/perf)
#   --build        build folder that holds the perf programs (build/release)
#   --collectives  which (with --network: all_reduce all_gather reduce_scatter alltoall; else all_reduce reduce_scatter all_gather alltoall broadcast reduce gather scatter sendrecv)
#
# Prints one line per collective and rank count: the geometric mean of ratio = MPI time / tessera time (> 1: tessera is faster),
# out-of-place and in-place, and the worst point. Exit status 1 when a result was wrong or a run failed.
#
# Fairness. Both sides are measured in one run, in short alternating batches, on the same buffers and the same shifting
# offsets; medians of batch times are compared. Processes are bound as mpirun does by default (a core each where there are
# enough); the baseline uses Open MPI's default transports, including single copy where the kernel permits it.
# Where ranks exceed cores every point is measured twice, also with mpi_yield_when_idle=1 (busy waiting would otherwise
# waste the cores that the baseline itself needs), and the better MPI time of the two counts; tessera's time is the
# mean of the two. MPI has no out-of-place broadcast: its in-place time stands for both.
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

ranks_list=
out=build/perf
build=build/release
collectives=
network=false
last=64M
factor=4

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
needs_value() { [ $# -ge 2 ] || { echo "compare.sh: $1 needs a value" >&2; exit 255; }; }

while [ $# -gt 0 ]; do
  case $1 in
    --quick) last=4M factor=16 ;;
    --network) network=true ;;
    --ranks) needs_value "$@"; ranks_list=$2; shift ;;
    --out) needs_value "$@"; out=$2; shift ;;
    --build) needs_value "$@"; build=$2; shift ;;
    --collectives) needs_value "$@"; collectives=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "compare.sh: unknown argument '$1'; see --help" >&2; exit 255 ;;
  esac
  shift
done

command -v mpirun > /dev/null || { echo "compare.sh: mpirun is missing (Debian: openmpi-bin)" >&2; exit 1; }
mkdir -p "$out" || exit 1
if $network; then
  : "${collectives:=all_reduce all_gather reduce_scatter alltoall}" "${ranks_list:=2}"
  . perf/network.sh
else
  : "${collectives:=all_reduce reduce_scatter all_gather alltoall broadcast reduce gather scatter sendrecv}" "${ranks_list:=2 4}"
fi
# The command that starts a number of ranks.
launcher() {
  if $network; then network_launcher "$1"; else launch=(mpirun -n "$1"); fi
}
rm -f "$out"/*.part.csv
cores=$(nproc)
rows=$out/compare.csv
failed=0

# measure PROGRAM COLLECTIVE RANKS VARIANT [mpirun arguments]: leaves rows in $out/COLLECTIVE-RANKS-VARIANT.part.csv
measure() {
  local program=$1 name=$2-$3-$4 ranks=$3
  shift 4
  local launch
  launcher "$ranks"
  launch+=("$@")
  [ "$(id -u)" -ne 0 ] || launch+=(--allow-run-as-root)
  [ "$ranks" -le "$cores" ] || launch+=(--oversubscribe)
  # -b is per rank count: collectives that deal blocks of at least 16 bytes start at 16 bytes per rank.
  local first=8
  case $name in
    all_gather* | reduce_scatter* | alltoall* | gather* | scatter*) first=$((16 * ranks)) ;;
  esac
  if ! "${launch[@]}" "$program" -b $first -e $last -f $factor -d float --baseline mpi \
    --csv "$out/$name.part.csv" > "$out/$name.log" 2>&1; then
    failed=1
    echo "FAILED: $name, see $out/$name.log" >&2
  fi
}

for collective in $collectives; do
  program=$(find "$build" -type f -name "${collective}_perf" -perm -u+x | head -n 1)
  [ -n "$program" ] || { echo "compare.sh: no ${collective}_perf below $build; build it first" >&2; exit 1; }
  for ranks in $ranks_list; do
    [ ! -t 2 ] || printf '\r\033[K%s, %s ranks' "$collective" "$ranks" >&2
    measure "$program" "$collective" "$ranks" default
    [ "$ranks" -le "$cores" ] || measure "$program" "$collective" "$ranks" yield --mca mpi_yield_when_idle 1
  done
done
[ ! -t 2 ] || printf '\r\033[K' >&2

shopt -s nullglob
parts=("$out"/*.part.csv)
[ ${#parts[@]} -gt 0 ] || { echo "compare.sh: nothing was measured" >&2; exit 1; }
{
  printf 'variant,'
  head -n 1 "${parts[0]}"
  for part in "${parts[@]}"; do
    variant=${part%.part.csv}
    tail -n +2 "$part" | sed "s/^/${variant##*-},/"
  done
} > "$rows"
rm -f "${parts[@]}"

# Columns: 1 variant 2 collective 3 ranks 4 size 9 placement 10 time_us 14 mpi_us
awk -F, '
  NR == 1 || $14 == "" { next }
  {
    key = $2 "," $3 "," $9 "," $4
    if (!(key in mpi) || $14 < mpi[key]) mpi[key] = $14
    ours[key] += $10; runs[key]++
    group = $2 "," $3
    if (!(group in seen)) { seen[group] = 1; order[++groups] = group }
  }
  END {
    for (key in mpi) {
      split(key, k, ",")
      group = k[1] "," k[2]
      ratio = mpi[key] / (ours[key] / runs[key])
      logs[group "," k[3]] += log(ratio); points[group "," k[3]]++
      if (!(group in worst) || ratio < worst[group]) {
        worst[group] = ratio; where[group] = k[4] " B, " k[3]
      }
    }
    printf "%-14s %5s  %12s  %8s  %s\n", "collective", "ranks", "out-of-place", "in-place", "worst point"
    for (g = 1; g <= groups; ++g) {
      split(order[g], k, ",")
      printf "%-14s %5d  %12s  %8s  %.2f at %s\n", k[1], k[2], mean(order[g] ",out-of-place"), \
             mean(order[g] ",in-place"), worst[order[g]], where[order[g]]
    }
  }
  function mean(id) { return points[id] ? sprintf("%.2f", exp(logs[id] / points[id])) : "N/A" }
' "$rows" | tee "$out/compare.txt"
$network && network_limits
echo "Ratio = MPI time / tessera time, geometric means over all sizes. Rows: $rows"
exit $failed
