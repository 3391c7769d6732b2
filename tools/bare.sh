#!/usr/bin/env bash
# Runs a command on a machine that has exactly what docs/start.md names, as an ordinary user, in a
# clone of the last commit: bare.sh make test. Root is needed to make that machine, a Debian or
# Ubuntu of this machine's release in out/bare, entered by namespaces of mounts and of processes.
# A later run finds it there. The command has this machine's network and environment. What a command
# that failed has left is in out/bare/*/home.
set -euo pipefail
cd "$(dirname "$0")/.."

enter() { # root, command...: the first process in namespaces of its own
    local root=$1 file
    shift
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl /usr/share/ca-certificates \
        /usr/local/share/ca-certificates; do # how this machine reaches PyPI and Debian
        [ -e "$file" ] || continue
        if [ -d "$file" ]; then
            mkdir -p "$root$file"
        else
            rm -f "$root$file"
            touch "$root$file"
        fi
        mount --bind "$file" "$root$file"
    done
    cd "$root"
    pivot_root . . # not chroot, in which the kernel makes no namespaces of users
    umount -l .
    cd /home/hakmem
    exec setpriv --reuid=65534 --regid=65534 --clear-groups \
        env -u LD_PRELOAD -u TMPDIR HOME=/home PATH=/usr/bin:/bin "$@"
}

if [ "$1" = --enter ]; then
    enter "${@:2}"
fi
if [ "$(id -u)" != 0 ]; then
    echo "bare: only root can make a machine" >&2
    exit 1
fi

named=$(sed -n 's/^The commands need .* with \(.*\), and run as any user.*/\1/p' docs/start.md)
named=${named/ and /, }
packages=${named//, /,}
: "${packages:?docs/start.md does not say what it needs}"
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
root=$PWD/out/bare/$release,$packages
if [ ! -e "$root" ]; then
    tools/setup.sh mmdebstrap
    echo "bare: making a $release with ${packages//,/, }"
    mkdir -p out/bare
    rm -rf out/bare/*
    mapfile -t sources < <(find /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources \
        /etc/apt/sources.list.d/ubuntu.sources -size +0 2> /dev/null) # none: the usual ones
    # The headers of the C library: gcc recommends them, and compiles nothing without.
    mmdebstrap --quiet --variant=minbase --include="$packages,libc6-dev" "$release" "$root.new" \
        "${sources[@]}"
    mv "$root.new" "$root"
fi
rm -rf "$root/home" "$root"/tmp/*
mkdir "$root/home"
git clone -q --no-local "$PWD" "$root/home/hakmem"
chown -R 65534:65534 "$root/home"
unshare --mount --pid --fork --kill-child "$PWD/tools/bare.sh" --enter "$root" "$@"
rm -rf "$root/home"
