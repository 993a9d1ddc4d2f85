#!/usr/bin/env bash
# Runs a command as root in a guest, an emulated PC with a kernel that has Soft-RoCE; its root is the host's, and what it changes there is
# lost.
#
#   boot.sh FOLDER TSC_KHZ COMMAND...    FOLDER: as prepare.sh made it; TSC_KHZ: how fast this processor's counter runs
#
# The exit status is the command's; a guest that is lost at boot is started again; 125: three were. No /dev/kvm is needed.
set -uo pipefail
folder=$1 tsc_khz=$2
shift 2
boot_limit=40 # seconds until the guest must be ready

run_guest() {
  exec qemu-system-x86_64 -M pc,usb=off,hpet=off -nodefaults -vga none -nographic -monitor none -no-reboot \
    -accel tcg,thread=multi,tb-size=256 -cpu qemu64 -smp 2 -m "${GUEST_MEMORY:-1536}" \
    -kernel "$folder/vmlinux" -initrd "$folder/initrd" -serial "file:$1" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable tsc_early_khz=$tsc_khz no_timer_check \
cryptomgr.notests nowatchdog audit=0 random.trust_cpu=on rcupdate.rcu_expedited=1 i8042.noaux i8042.nokbd job=\"$2\"" \
    -fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap \
    -device virtio-9p-pci,fsdev=host,mount_tag=host -device virtio-rng-pci -device isa-debug-exit,iobase=0xf4,iosize=0x04
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for attempt in 1 2 3; do
  : >"$log"
  run_guest "$log" "$*" &
  guest=$!
  trap 'kill "$guest" 2>/dev/null; rm -f "$log"' EXIT
  for ((i = 0; i < boot_limit * 2; ++i)); do
    grep -aq 'guest: ready' "$log" && break
    kill -0 "$guest" 2>/dev/null || break
    sleep 0.5
  done
  if ! grep -aq 'guest: ready' "$log"; then
    echo "attempt $attempt: the guest was lost"
    tail -n 20 "$log"
    kill "$guest" 2>/dev/null
    wait "$guest"
    continue
  fi
  tail -c +1 -f --pid="$guest" "$log" | tr -d '\r'
  wait "$guest"
  status=$?
  ((status & 1)) || exit 125 # the guest ended without a word
  exit $((status >> 1))
done
exit 125
