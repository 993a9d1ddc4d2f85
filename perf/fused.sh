#!/usr/bin/env bash
# The table of fused products: builds fused_gemm_perf and measures products over emulated links, with ranks that compute on their own
# core, and for more ranks with timers, which take no core, as well as with products.
#
#   perf/fused.sh [--quick | --all] [--network [RATE]]
#
# Without arguments some twenty minutes on two idle cores, after the build, and half as much again beside other programs; tables go to
# stdout, progress to stderr. The last line sums up what fusing gains of a sub-layer, table by table: geometric mean, most, and the mean
# share of the ideal.
#
# --quick:   timers and, smaller, the products of 2 ranks only; some minutes.
# --all:     all 28 products rather than 7, at all ratios and in full size everywhere; some hours.
# --network: over TCP between two hosts, played by network namespaces that a veth pair joins, instead (needs root, iproute2 and iperf3).
#            Both directions are held to RATE (default 4gbit; none: not held), since without a limit TCP takes the very cores that
#            compute. The line "all-reduce, collective 30 to 60 %" sums up the products where neither is most of the time.
#
# Timers run at real-time priority where this is allowed (they hardly use the cores), so that other programs do not count.
#
# Environment
#   FUSED_JSON=DIR     writes the tables as JSON into this directory, too: DIR/timer-ring.json, ...
[ -z "${FUSED_JSON:-}" ] || { mkdir -p "$FUSED_JSON" && FUSED_JSON=$(realpath "$FUSED_JSON"); } || exit 1
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

quick=0 all=0 network=
while (($# > 0)); do
  case $1 in
    -h | --help)
      usage "$0"
      exit 0
      ;;
    --quick) quick=1 ;;
    --all) all=1 ;;
    --network)
      network=4gbit
      [[ ${2:--} == -* ]] || { network=$2 && shift; }
      ;;
    *) die "unknown argument '$1'; try --help" ;;
  esac
  shift
done
((quick == 0 || all == 0)) || die "--quick or --all, not both"

configure_and_build release nccl fused_gemm_perf || exit 1
binary=$(find build/release -type f -name fused_gemm_perf -perm -u+x | head -n 1)
[ -n "$binary" ] || die "the build made no program fused_gemm_perf (is OpenBLAS there?)"
export OPENBLAS_NUM_THREADS=1 TESSERA_PROFILE=none

out=build/perf
mkdir -p "$out"
names=()
table() {
  local name=$1
  shift
  local first=()
  if [[ $* == *timer* ]] && chrt -f 10 true 2>/dev/null; then first=(chrt -f 10); fi
  printf '\n== %s: fused_gemm_perf %s\n' "$name" "$*"
  local json=()
  [ -z "${FUSED_JSON:-}" ] || json=(--json "$FUSED_JSON/$name.json")
  "${first[@]}" "$binary" "$@" "${json[@]}" | tee "$out/fused-$name.txt" || die "the table $name failed"
  names+=("$name")
}

# One line: of each table that has sub-layers, the gain and how much of the ideal that is.
summary() {
  local name
  for name in "${names[@]}"; do
    sed -nE "s/^sub-layer: .*gain ([0-9.]+) .*, ([0-9.]+) at most;( of the ideal ([0-9.]+) %)?.*/$name \\1, \\2, \\4/p" \
      "$out/fused-$name.txt"
  done | awk '{ sub(/, $/, ", no ideal"); text = text (NR > 1 ? "; " : "") $0 }
              END { print "summary, gain of a sub-layer (mean, most, % of the ideal): " text }'
}

small=(--gflop 0.3 --repetitions 3)
if [ -n "$network" ]; then
  . perf/network.sh
  for host in 0 1; do
    [ "$network" = none ] || on $host tc qdisc add dev eth0 root tbf rate "$network" burst 256kb latency 50ms ||
      die "the rate '$network' cannot be set"
  done
  ((quick)) || small=()
  table "tcp-$network" --hosts "${holder[0]},${holder[1]}" --ratios 0 --ranks 2 "${small[@]}"
  summary
  exit
fi

table timer-ring --timer --ranks 4,8 --ablations
if ((quick)); then
  table products --ranks 2 --products FC-2 "${small[@]}"
else
  products=(--products FC-2) few=(--products FC-2 --ratios 1) # 7 of 28
  ((all == 0)) || products=() few=(--products FC-2) small=()
  table timer-direct --timer --direct --ranks 4,8
  table timer-host --host-timer --ranks 2,4,8 --ablations
  table products --ranks 2 --ablations "${products[@]}"
  table products-crowded --ranks 4,8 "${few[@]}" # real products, where ranks may have to share cores
  table operators --ranks 2 --operators --types float,half,bfloat16 "${few[@]}" "${small[@]}" # 12 operators a cell
  table shared-memory --ranks 2 "${products[@]}" --ratios 0
fi

printf '\n'
summary
