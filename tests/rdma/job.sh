#!/bin/bash
# In the guest: two RDMA devices at the ends of a wire, which the program's ranks use; its TCP goes over loopback.
#
#   job.sh PROGRAM [ARGUMENT...]      ends the program after 280 s
set -euo pipefail
ulimit -l unlimited
ip link set lo up
ip link add wire0 type veth peer name wire1
for end in 0 1; do
  sysctl -q "net.ipv4.conf.wire$end.accept_local=1" "net.ipv4.conf.wire$end.rp_filter=0"
  ip link set "wire$end" mtu 4200 up
  ip addr add "10.7.0.$((end + 1))/24" dev "wire$end"
done
for end in 0 1; do rdma link add "rxe$end" type rxe netdev "wire$end"; done
exec timeout -k 5 280 "$@"
