#!/usr/bin/env bash
# What one program made and used, the other one opens, uses and leaves right: upgrades.sh OLD NEW.
# An array, which the new program converts for the other one, also after a kill -9 of its server and a start, and, where FUSE is, a filesystem; each first made by the old, then by the new one.
set -euo pipefail

old=$(realpath "$1")
new=$(realpath "$2")
folder=$(mktemp -d)
export XDG_RUNTIME_DIR=$folder
cd "$folder"
server=
finish() {
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
    umount mnt 2>/dev/null || true
    cd /
    rm -rf "$folder"
}
trap finish EXIT

readonly uri="nbd+unix:///?socket=$folder/s.sock"

serve() { # program
    "$1" array serve d?.img --nbd "$folder/s.sock" >serve.log 2>&1 &
    server=$!
    for _ in $(seq 100); do
        [ ! -S s.sock ] || return 0
        sleep 0.1
    done
    cat serve.log
    return 1
}

stop() { # signal
    kill "-$1" "$server"
    wait "$server" || [ "$1" = KILL ]
    server=
    rm -f s.sock
}

has() { # file with what was written last, from the start on
    nbdcopy "$uri" back
    cmp -n "$(stat -c %s "$1")" "$1" back
}

convert() { # the program that is to have the array
    local to=2
    [ "$1" != "$new" ] || to=3
    "$new" array upgrade --to "$to" d?.img >/dev/null
}

array() { # the program that makes it, the other one
    rm -f d?.img
    truncate -s 64M d{0..5}.img
    "$1" array create eraid:5+1,e=2,chunk=8KiB d?.img >/dev/null
    head -c 8M /dev/urandom >first
    serve "$1"
    nbdcopy first "$uri"
    stop INT
    head -c 4M /dev/urandom >second
    convert "$2"
    serve "$2"
    has first
    nbdcopy second "$uri"
    stop INT
    convert "$1"
    serve "$1"
    has second
    nbdcopy first "$uri"
    stop KILL
    if convert "$2" 2>/dev/null; then
        echo "an array that was not stopped cleanly was converted"
        return 1
    fi
    serve "$1"
    has first
    stop INT
    convert "$2"
    serve "$2"
    has first
    stop INT
    "$2" array check d?.img | grep -q 'nothing is wrong'
}

filesystem() { # the program that makes it, the other one
    rm -f a.img
    mkdir -p mnt
    "$1" fs mkfs a.img --size 256MiB >/dev/null
    head -c 3M /dev/urandom >first
    local program
    for program in "$1" "$2" "$1"; do
        "$program" fs mount a.img mnt >/dev/null
        [ ! -e mnt/first ] || cmp mnt/first first
        cp first mnt/first
        "$program" fs umount mnt >/dev/null
    done
    "$2" fs check a.img | grep -q 'clean$'
}

array "$old" "$new"
array "$new" "$old"
echo "upgrades: arrays good"
if [ -e /dev/fuse ] && [ "$(id -u)" = 0 ]; then
    filesystem "$old" "$new"
    filesystem "$new" "$old"
    echo "upgrades: filesystems good"
else
    echo "upgrades: filesystems left out: no FUSE here"
fi
