#!/bin/sh
# The first process of a virtual machine: mounts a root directory of the host, read-only, and what a
# process expects, and starts guest.py, or INIT, with the directory made writable.
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
while read -r module; do
	insmod "/modules/$module" || echo "no module $module"
done </modules/list

# shared TAG DIRECTORY [OPTION]
shared() {
	mkdir -p "$2"
	if [ -e /modules/9p ]; then
		mount -t 9p -o "trans=virtio,version=9p2000.L,msize=262144$3" "$1" "$2"
	else
		mount -t virtiofs "$1" "$2"
	fi
}
shared job /job
# shellcheck disable=SC1091 # written by machines.py
. /job/environment
shared root /root ,ro,cache=loose || exec sh
if [ -n "$INIT" ]; then
	mkdir /upper
	mount -t tmpfs upper /upper
	mkdir /upper/files /upper/work
	mount -t overlay -o lowerdir=/root,upperdir=/upper/files,workdir=/upper/work root /root
	cp /job/*.service /root/etc/systemd/system
else
	for directory in tmp var/tmp run var/lib etc/sysctl.d mnt; do
		mount -t tmpfs -o mode=1777 tmpfs "/root/$directory"
	done
	for directory in run var/lib etc/sysctl.d; do
		chmod 755 "/root/$directory"
	done
fi
mount --move /job /root/mnt
ifconfig lo 127.0.0.1 up
[ -e "/root$SOURCE/dev" ] || shared source "/root$SOURCE" ,ro,cache=loose
for directory in dev proc sys; do
	mount --move "/$directory" "/root/$directory"
done
# shellcheck disable=SC2086 # the words of a command
exec switch_root /root ${INIT:-/usr/bin/python3 "$SOURCE/tests/machines/guest.py"}
