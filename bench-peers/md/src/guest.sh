#!/bin/busybox sh
# The guest's first process. The kernel hands it the words of its command line that it does not know
# itself as environment: md_system, md_chunk_kib, md_disks and md_load; with md_tags, the mode of dm-integrity below MD, and
# with md_closed, the kinds of closed loops, which run one after the other.
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
# Calls "$1" for all disks at once, each with the disk and the name of its dm-integrity device.
on_each() {
    for disk in $disks; do
        "$1" "$disk" "tags-${disk#/dev/}" >> /log 2>&1 || echo "$disk" >> /failed &
    done
    wait
    [ ! -e /failed ] || fail "$1"
}
format_tags() {
    /bin/integritysetup format --batch-mode --integrity crc32c --sector-size 4096 --journal-size 2097152 \
        --interleave-sectors 8192 "$1"
}
open_tags() {
    # shellcheck disable=SC2086
    /bin/integritysetup open --integrity crc32c $tags_option "$1" "$2"
}
close_tags() {
    /bin/integritysetup status "$2" | $b grep -q 'failures: *0$' || { echo "$2 has failures"; return 1; }
    /bin/integritysetup close "$2"
}
# Prints the counters of all disks, and then "$1".
point() {
    for disk in $disks; do say disk $($b cat "/sys/block/${disk#/dev/}/stat"); done
    say "$1"
}
# Waits until nothing is left to write, prints the counters, and starts MD and dm-integrity again.
settle() {
    $b sleep 30
    if [ "$md_system" = md ]; then
        /bin/mdadm --stop /dev/md0 < /dev/null > /log 2>&1 || fail "mdadm --stop"
        [ -z "$md_tags" ] || on_each close_tags
    fi
    point "$1"
    if [ "$md_system" = md ]; then
        [ -z "$md_tags" ] || on_each open_tags
        # shellcheck disable=SC2086
        /bin/mdadm --assemble /dev/md0 $members < /dev/null > /log 2>&1 || fail "mdadm --assemble"
    fi
}
members=$disks
if [ -n "$md_tags" ]; then
    case $md_tags in
    journal) tags_option= ;;
    bitmap) tags_option=--integrity-bitmap-mode ;;
    direct) tags_option=--integrity-no-journal ;;
    *) fail "no mode $md_tags" ;;
    esac
    $b mkdir -p /run /dev/mapper
    # Without udev the library makes the nodes of devices itself.
    export DM_DISABLE_UDEV=1
    # The default, 2 % of memory, would hold nearly all tags of such small drives, which are 11 MiB.
    echo 262144 > /sys/module/dm_bufio/parameters/max_cache_size_bytes
    on_each format_tags
    on_each open_tags
    members=$(for disk in $disks; do echo "/dev/mapper/tags-${disk#/dev/}"; done)
fi
case $md_system in
md)
    # shellcheck disable=SC2086
    /bin/mdadm --create /dev/md0 --run --assume-clean --level=5 --raid-devices=6 --metadata=1.2 \
        --chunk="$md_chunk_kib" --bitmap=none $members < /dev/null > /log 2>&1 || fail "mdadm"
    # MD writes that the array is clean when nothing has been written for a while.
    $b sleep 2
    devices=/dev/md0
    ;;
ours) devices=$disks ;;
*) fail "no system $md_system" ;;
esac
say ready
load=$(echo "$md_load" | $b tr , ' ')
for kind in $(echo "$md_closed" | $b tr , ' '); do
    point "$kind-begun"
    # shellcheck disable=SC2086
    /bin/client closed "$kind" $load $devices > /dev/ttyS1
    point "$kind-ended"
    settle "$kind-settled"
done
# shellcheck disable=SC2086
[ -n "$md_closed" ] || /bin/client $load $devices > /dev/ttyS1
$b poweroff -f
