#!/bin/busybox sh
# The guest's first process: loads the modules, makes the host's file system its own (changes stay in memory), runs the job named on the
# kernel's command line, and ends the guest with the job's status.
export PATH=/bin
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /host /changes /root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
while read -r module; do insmod "/modules/$module" || echo "guest: no $module"; done </modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose host /host
mount -t tmpfs tmpfs /changes
mkdir /changes/upper /changes/work
mount -t overlay -o lowerdir=/host,upperdir=/changes/upper,workdir=/changes/work overlay /root
for folder in proc sys dev; do
  mkdir -p "/root/$folder"
  mount --rbind "/$folder" "/root/$folder"
done
mount -t tmpfs tmpfs /root/run
echo "guest: ready after $(cut -d' ' -f1 /proc/uptime) s"
job=$(sed -n 's/.*job="\([^"]*\)".*/\1/p' /proc/cmdline)
# shellcheck disable=SC2086  # a command line
PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot /root $job
status=$?
echo "guest: the job ended with $status after $(cut -d' ' -f1 /proc/uptime) s"
printf "\\x$(printf %02x $status)" | dd of=/dev/port bs=1 seek=244 count=1 2>/dev/null  # the exit device
poweroff -f
