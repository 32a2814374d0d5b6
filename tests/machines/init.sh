#!/bin/sh
# The first process of a virtual machine: mounts the root directory of the host, read-only, and what
# a process expects, and starts guest.py.
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
while read -r module; do
	insmod "/modules/$module" || echo "no module $module"
done </modules/list
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=262144 root /root || exec sh
for directory in tmp var/tmp run var/lib etc/sysctl.d mnt; do
	mount -t tmpfs -o mode=1777 tmpfs "/root/$directory"
done
for directory in run var/lib etc/sysctl.d; do
	chmod 755 "/root/$directory"
done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 job /root/mnt
for directory in dev proc sys; do
	mount --move "/$directory" "/root/$directory"
done
ifconfig lo 127.0.0.1 up
# shellcheck disable=SC1091 # written by machines.py
. /root/mnt/environment
mkdir -p "$SOURCE"
[ -e "$SOURCE/dev" ] || mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose source "$SOURCE"
exec switch_root /root /usr/bin/python3 "$SOURCE/tests/machines/guest.py"
