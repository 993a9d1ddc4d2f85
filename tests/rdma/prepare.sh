#!/usr/bin/env bash
# Makes what the guest boots from: Debian's kernel, unpacked, and an initial file system of busybox and the kernel modules needed.
#
#   prepare.sh FOLDER     leaves FOLDER/vmlinux and FOLDER/initrd; does nothing where they are
#
# The kernel's package is downloaded and unpacked in FOLDER, never installed. Exit status 77: it or a program is not to be had.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
folder=$1

unavailable() {
  echo "skipped: $*"
  exit 77
}

# The payload of a bzImage is found by its header's fields; without it, the guest need not decompress it.
unpack_kernel() {
  local sectors offset length
  sectors=$(od -An -tu1 -j497 -N1 "$1")
  offset=$(od -An -tu4 -j584 -N4 "$1")
  length=$(od -An -tu4 -j588 -N4 "$1")
  xz -dc --single-stream < <(tail -c +$(((sectors + 1) * 512 + offset + 1)) "$1" | head -c "$length")
}

# Modules with what they depend on, in the order in which they can be loaded.
pack_modules() {
  local release=$1 module file name
  mkdir -p initial/modules
  for module in virtio_pci virtio_rng 9pnet_virtio 9p overlay veth sch_netem crc32_generic rdma_rxe; do
    modprobe -d package -S "$release" --show-depends "$module" | awk '$1 == "insmod" { print $2 }'
  done | awk '!seen[$0]++' | while read -r file; do
    name=$(basename "$file" .xz)
    case $file in
      *.xz) xz -dc "$file" >"initial/modules/$name" ;;
      *) cp "$file" "initial/modules/$name" ;;
    esac
    echo "$name"
  done >initial/modules/order
}

[ -f "$folder/vmlinux" ] && [ "$folder/initrd" -nt "$here/init.sh" ] && [ "$folder/initrd" -nt "$0" ] && exit 0
for program in qemu-system-x86_64 busybox cpio modprobe depmod xz apt-get dpkg; do
  command -v "$program" >/dev/null || unavailable "no $program; scripts/packages.txt names its package"
done
mkdir -p "$folder"
cd "$folder"
if ! [ -d package/boot ]; then
  package=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
  [ -n "$package" ] || unavailable "no kernel package is known: apt-get update"
  apt-get -q download "$package" || unavailable "the package $package cannot be downloaded"
  rm -rf unpacked
  dpkg -x "$package"_*.deb unpacked
  rm "$package"_*.deb
  mv unpacked package
fi
release=$(basename package/lib/modules/*)
depmod -b package "$release"
rm -rf initial
mkdir -p initial/bin
cp "$(command -v busybox)" initial/bin/busybox
ln -s busybox initial/bin/sh
cp "$here/init.sh" initial/init
chmod 755 initial/init
pack_modules "$release"
(cd initial && find . -mindepth 1 | cpio --quiet -o -H newc -R 0:0) >initrd
unpack_kernel "package/boot/vmlinuz-$release" >vmlinux.part
mv vmlinux.part vmlinux
rm -rf initial
