#!/usr/bin/env bash
# apt_unpack.sh PACKAGE FOLDER: unpacks a package of the distribution into FOLDER and prints its
# version. It needs no root and installs nothing. Where the machine's lists do not know the package
# or are of a release that is gone, lists of our own are fetched into out/apt.
set -euo pipefail
package=$1
mkdir -p "$2"
folder=$(realpath "$2")
own=$(cd "$(dirname "$0")/.." && pwd)/out/apt
mkdir -p "$own/lists/partial" "$own/archives/partial"
own_lists=(-o "Dir::State::lists=$own/lists")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

apt() { # with a cache of what is in the lists, which a user cannot keep in the system's place
    apt-get -qq -o "Dir::Cache=$own" -o "APT::Sandbox::User=" "$@" 2> why
}

if ! apt download "$package" && ! apt "${own_lists[@]}" download "$package"; then
    apt "${own_lists[@]}" -o Acquire::Languages=none update > /dev/null \
        && apt "${own_lists[@]}" download "$package" || { tail -n 1 why >&2; exit 1; }
fi
dpkg-deb -x ./*.deb "$folder"
dpkg-deb -f ./*.deb Version
