# Sourced by scripts that measure (out: a folder of theirs): two hosts on this machine, and what the network between them makes possible.
#
# The hosts are network namespaces, each held by a process that sleeps and gone with it. mpirun believes in them: it starts its
# daemons by an "agent", in place of ssh, that enters the namespace of the address it is given.

for tool in ip iperf3 nsenter unshare; do
  command -v $tool > /dev/null || { echo "${0##*/}: --network needs $tool (Debian: iproute2 iperf3 util-linux)" >&2; exit 1; }
done

address=(10.7.0.1 10.7.0.2)
holder=()
for host in 0 1; do
  unshare --net --uts sh -c "hostname host$host && ip link set lo up && exec sleep infinity" &
  holder+=($!)
done
trap 'kill "${holder[@]}" "${servers[@]}" 2> /dev/null' EXIT
servers=()

# on HOST COMMAND...
on() {
  local host=$1
  shift
  nsenter -t "${holder[host]}" -n -u "$@"
}

# Repeats a command for some seconds until it succeeds.
until_done() {
  local tries
  for ((tries = 0; tries < 100; ++tries)); do
    "$@" > /dev/null 2>&1 && return
    sleep 0.1
  done
  echo "${0##*/}: --network: $* does not succeed" >&2
  exit 1
}

has_loopback() { on "$1" ip -br link show up dev lo | grep -q lo && [ "$(on "$1" hostname)" = "host$1" ]; }
has_carrier() { on "$1" ip -br link show dev eth0 | grep -q ' UP '; }

for host in 0 1; do until_done has_loopback $host; done
on 0 ip link add eth0 type veth peer name eth0 netns "${holder[1]}" || exit 1
for host in 0 1; do
  on $host ip addr add "${address[host]}/24" dev eth0 && on $host ip link set eth0 up || exit 1
done
for host in 0 1; do until_done has_carrier $host; done

agent=$out/network_agent
cat > "$agent" << END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
[ "\$1" = ${address[0]} ] && holder=${holder[0]} || holder=${holder[1]}
shift
exec nsenter -t \$holder -n -u sh -c "\$*"
END
chmod +x "$agent"
agent=$(realpath "$agent")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Sets launch: the command that starts so many ranks, half of them on each host.
network_launcher() {
  local slots=$((($1 + 1) / 2))
  launch=(nsenter -t "${holder[0]}" -n -u mpirun -n "$1" --host "${address[0]}:$slots,${address[1]}:$slots" --bind-to none
    --mca plm_rsh_agent "$agent" --mca oob_tcp_if_include eth0 --mca btl tcp,self --mca btl_tcp_if_include eth0)
}

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# Of iperf3, one stream each way: the mean of both directions, in GB/s.
iperf_bandwidth() {
  on 1 iperf3 -s -1 -B "${address[1]}" > /dev/null &
  local server=$!
  servers=($server)
  local tries
  for ((tries = 0; tries < 20; ++tries)); do
    sleep 0.1
    on 0 iperf3 -c "${address[1]}" --bidir -t 2 -f m 2> /dev/null > "$out/iperf.log" && break
  done
  wait $server
  awk '/receiver/ { for (i = 1; i < NF; ++i) if ($(i + 1) == "Mbits/sec") { sum += $i; ++n } } END { if (n) print sum / n / 8000 }' \
    "$out/iperf.log"
}

# one PROGRAM SIZE COLUMN: a figure of one size, without the baseline; 6 is the time, 8 the bus bandwidth.
one() {
  local launch
  network_launcher 2
  "${launch[@]}" "$build/perf/$1_perf" -b "$2" -e "$2" -d float -w 5 -n "$4" | awk -v column="$3" '$3 == "float" { print $column }'
}

ping_pong() {
  on 1 "$build/perf/ping_pong" listen "${address[1]}" 5001 &
  servers=($!)
  on 0 "$build/perf/ping_pong" connect "${address[1]}" 5001 8 20000
  wait "${servers[0]}"
}

# Prints bandwidth and latency beside those of the network, measured in turn.
network_limits() {
  local round rounds=5 peak=() gather=() exchange=() ping=() latency=()
  [ "$factor" -eq 4 ] || rounds=3
  for ((round = 0; round < rounds; ++round)); do
    peak+=("$(iperf_bandwidth)")
    gather+=("$(one all_gather 64M 8 20)")
    exchange+=("$(one sendrecv 64M 8 20)")
    ping+=("$(ping_pong)")
    latency+=("$(one all_reduce 8 6 5000)")
  done
  local m_peak m_gather m_exchange m_ping m_latency
  m_peak=$(printf '%s\n' "${peak[@]}" | median)
  m_gather=$(printf '%s\n' "${gather[@]}" | median)
  m_exchange=$(printf '%s\n' "${exchange[@]}" | median)
  m_ping=$(printf '%s\n' "${ping[@]}" | median)
  m_latency=$(printf '%s\n' "${latency[@]}" | median)
  awk -v p="$m_peak" -v g="$m_gather" -v e="$m_exchange" -v h="$m_ping" -v l="$m_latency" 'BEGIN {
    printf "64 MiB, both ways at once, GB/s each way: iperf3 %.2f, all-gather %.2f (%.0f%%), send/recv %.2f (%.0f%%)\n",
           p, g, 100 * g / p, e, 100 * e / p
    printf "8 B, us: half a round trip of a plain TCP connection %.2f, all-reduce %.2f (%.2fx)\n", h, l, l / h
  }' | tee -a "$out/compare.txt"
}
