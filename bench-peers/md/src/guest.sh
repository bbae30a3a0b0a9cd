#!/bin/busybox sh
# The guest's first process. The kernel hands it the words of its command line that it does not know
# itself as environment: md_system, md_chunk_kib, md_disks and md_load.
b=/bin/busybox
say() { echo "$*" > /dev/ttyS1; }
fail() { say "trouble $*"; $b cat /log; $b poweroff -f; }
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
$b stty -F /dev/ttyS1 raw
for module in $($b cat /modules/order); do
    $b insmod "/modules/$module" > /log 2>&1 || fail "module $module"
done
disks=$(for letter in $(echo "$md_disks" | $b tr , ' '); do echo "/dev/vd$letter"; done)
for disk in $disks; do
    for _ in $($b seq 100); do [ -b "$disk" ] && break; $b usleep 50000; done
    [ -b "$disk" ] || fail "no disk $disk"
done
case $md_system in
md)
    # shellcheck disable=SC2086
    /bin/mdadm --create /dev/md0 --run --assume-clean --level=5 --raid-devices=6 --metadata=1.2 \
        --chunk="$md_chunk_kib" --bitmap=none $disks < /dev/null > /log 2>&1 || fail "mdadm"
    # MD writes that the array is clean when nothing has been written for a while.
    $b sleep 2
    devices=/dev/md0
    ;;
ours) devices=$disks ;;
*) fail "no system $md_system" ;;
esac
say ready
# shellcheck disable=SC2046,SC2086
/bin/client $(echo "$md_load" | $b tr , ' ') $devices > /dev/ttyS1
$b poweroff -f
