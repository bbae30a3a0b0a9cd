#!/usr/bin/env bash
# Installs what `cargo xtask dist` has made, each where nothing else is, and uses it: dist.sh DIST FOLDER [MIRROR].
#   the archive in an empty folder and as an image (buildah); the wheel in a venv; the Debian package in a new Debian of debootstrap's (as root)
set -euo pipefail

dist=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
mirror=${3:-}
server=
finish() {
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
    umount "$folder/debian/mnt/shelf" "$folder/debian/dev/fuse" "$folder/debian/proc" 2>/dev/null || true
    rm -rf --one-file-system "$folder"
}
trap finish EXIT

(cd "$dist" && sha256sum --quiet --check SHA256SUMS)

# An array by `run` (words before the program's arguments), its files in `place` below `root`: made, served, written and read by
# qemu-io.
use() { # root place run...
    local root=$1 place=$2
    shift 2
    mkdir -p "$root$place"
    truncate -s 64M "$root$place"/d{0..3}.img
    "$@" array create raid5:3+1 "$place"/d0.img "$place"/d1.img "$place"/d2.img "$place"/d3.img >/dev/null
    "$@" array serve "$place"/d0.img "$place"/d1.img "$place"/d2.img "$place"/d3.img --nbd "$place/s.sock" --control "$place/c.sock" >/dev/null &
    server=$!
    for _ in $(seq 100); do
        [ ! -S "$root$place/s.sock" ] || break
        sleep 0.1
    done
    local disk="nbd+unix:///?socket=$root$place/s.sock"
    local said
    said=$(qemu-io -f raw "$disk" -c 'write -P 0x5a 1M 4M' -c 'read -P 0x5a 1M 4M' -c flush 2>&1)
    case $said in *failed*) echo "$said"; exit 1 ;; esac
    "$@" array status "$place/c.sock" >/dev/null
    "$@" array stop "$place/c.sock" >/dev/null
    wait "$server"
    server=
    "$@" array check "$place"/d0.img "$place"/d1.img "$place"/d2.img "$place"/d3.img | tail -1
    rm -f "$root$place"/d?.img
}

archive=$(echo "$dist"/levelhead-*-linux-musl.tar.gz)
mkdir -p "$folder/archive"
tar -xzf "$archive" -C "$folder/archive" --strip-components=1
file -L "$folder/archive/usr/bin/levelhead" 2>/dev/null | grep -Eq 'static' || ldd "$folder/archive/usr/bin/levelhead" 2>&1 | grep -q 'static'
use "" "$folder/work" "$folder/archive/usr/bin/levelhead"
"$folder/archive/usr/bin/levelhead-lab" replay --synthetic count=100 >/dev/null
echo "dist: the archive is good"

if command -v buildah >/dev/null; then
    buildah_here() { # verb argument...
        local verb=$1
        shift
        buildah --root "$folder/images" --runroot "$folder/run" --storage-driver vfs "$verb" "$@"
    }
    buildah_here build --isolation chroot --quiet --tag levelhead "$folder/archive" >/dev/null
    container=$(buildah_here from localhost/levelhead)
    use "$folder/image" /srv buildah_here run --isolation chroot --volume "$folder/image/srv:/srv" "$container" -- /usr/bin/levelhead
    echo "dist: the image is good"
else
    echo "dist: the image is left out: buildah is not there"
fi

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-index "$dist"/levelhead-*.whl
"$folder/venv/bin/levelhead" --version
use "" "$folder/work" "$folder/venv/bin/levelhead"
"$folder/venv/bin/levelhead-lab" study list >/dev/null
echo "dist: the wheel is good"

if [ "$(id -u)" != 0 ]; then
    echo "dist: the Debian package is left out: debootstrap needs root"
    exit 0
fi
root=$folder/debian
debootstrap --variant=minbase --include=systemd,man-db stable "$root" ${mirror:+"$mirror"} >"$folder/debootstrap.log" 2>&1 ||
    { tail -5 "$folder/debootstrap.log"; exit 1; }
cp "$dist"/levelhead_*_amd64.deb "$root/srv/levelhead.deb"
chroot "$root" dpkg -i /srv/levelhead.deb >/dev/null
mount -t proc proc "$root/proc"
chroot "$root" levelhead --version
chroot "$root" getent group levelhead >/dev/null
chroot "$root" man -w levelhead-array-serve >/dev/null
chroot "$root" systemd-analyze verify /usr/lib/systemd/system/levelhead@.service /usr/lib/systemd/system/levelhead-watch.service
use "$root" /srv chroot "$root" levelhead
if [ -e /dev/fuse ]; then
    mkdir -p "$root/mnt/shelf"
    touch "$root/dev/fuse"
    [ -c "$root/dev/fuse" ] || mount --bind /dev/fuse "$root/dev/fuse"
    chroot "$root" levelhead fs mkfs /srv/shelf.img --size 64MiB >/dev/null
    chroot "$root" levelhead fs mount /srv/shelf.img /mnt/shelf >/dev/null
    echo text >"$root/mnt/shelf/file"
    chroot "$root" levelhead fs umount /mnt/shelf >/dev/null
    chroot "$root" fsck.levelhead -n /srv/shelf.img
fi
chroot "$root" dpkg -r levelhead >/dev/null
[ ! -e "$root/usr/bin/levelhead" ]
echo "dist: the Debian package is good"
