#!/usr/bin/env bash
# The table of fused products: builds fused_gemm_perf and measures products over emulated links, with ranks that compute on their own
# core and, for more ranks than cores, with timers instead of products.
#
#   perf/fused.sh [--quick] [--network [RATE]]
#
# Without arguments some twenty minutes. The last line sums up: gain and share of the ideal.
#
# --network: over TCP between two hosts, played by network namespaces that a veth pair joins, instead (needs root, iproute2 and iperf3).
#            Both directions are held to RATE (default 4gbit; none: not held), since without a limit TCP takes the very cores that
#            compute. The line "all-reduce, collective 30 to 60 %" sums up the products where neither is most of the time.
#
# Timers run at real-time priority where this is allowed (they hardly use the cores), so that other programs do not count.
#
# Environment
#   FUSED_JSON=DIR     writes the tables as JSON into this directory, too
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

quick=0 network=
while (($# > 0)); do
  case $1 in
    -h | --help)
      usage "$0"
      exit 0
      ;;
    --quick) quick=1 ;;
    --network)
      network=4gbit
      [[ ${2:--} == -* ]] || { network=$2 && shift; }
      ;;
    *) die "unknown argument '$1'; try --help" ;;
  esac
  shift
done

configure_and_build release nccl fused_gemm_perf || exit 1
binary=$(find build/release -type f -name fused_gemm_perf -perm -u+x | head -n 1)
[ -n "$binary" ] || die "the build made no program fused_gemm_perf (is OpenBLAS there?)"
export OPENBLAS_NUM_THREADS=1 TESSERA_PROFILE=none

log=$(mktemp)
trap 'rm -f "$log"' EXIT
table() {
  local name=$1
  shift
  local first=()
  if [[ $* == *timer* ]] && chrt -f 10 true 2>/dev/null; then first=(chrt -f 10); fi
  printf '\n== %s: fused_gemm_perf %s\n' "$name" "$*"
  local json=()
  [ -z "${FUSED_JSON:-}" ] || json=(--json "$FUSED_JSON/$name.json")
  "${first[@]}" "$binary" "$@" "${json[@]}" | tee "$log.part" || die "the table $name failed"
  sed "s/^/$name: /" "$log.part" | grep -E ' cells, gain ' >>"$log"
  rm -f "$log.part"
}

if [ -n "$network" ]; then
  out=build/perf
  mkdir -p "$out"
  . perf/network.sh
  for host in 0 1; do
    [ "$network" = none ] || on $host tc qdisc add dev eth0 root tbf rate "$network" burst 256kb latency 50ms ||
      die "the rate '$network' cannot be set"
  done
  scale=(--gflop 1 --repetitions 5)
  ((quick == 0)) || scale=(--gflop 0.3 --repetitions 3)
  table "tcp-$network" --hosts "${holder[0]},${holder[1]}" --ratios 0 --ranks 2 "${scale[@]}"
  exit
fi

table timer-ring --timer --ranks 4,8 --ablations
if ((quick)); then
  table products --ranks 2 --products FC-2 --gflop 0.3 --repetitions 3
else
  table timer-direct --timer --direct --ranks 4,8
  table timer-host --host-timer --ranks 2,4,8 --ablations
  table products --ranks 2 --ablations
  table products-crowded --ranks 4,8 --products FC-2
  table operators --ranks 2 --operators --types float,half,bfloat16 --products FC-2 --ratios 0.5,1,2
  table shared-memory --ranks 2 --ratios 0
fi

printf '\n'
cat "$log"
awk '/: sub-layer:/ { n++; text = text sprintf("%s%s", n > 1 ? "; " : "", $0) } END { print "summary: " text }' "$log"
