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
own_lists=(-o "Dir::State::lists=$own/lists" -o "Dir::Cache=$own" -o "APT::Sandbox::User=")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

download() {
    apt-get -qq -o "APT::Sandbox::User=" "$@" download "$package" 2> why
}

if ! download && ! download "${own_lists[@]}"; then
    apt-get -qq "${own_lists[@]}" -o Acquire::Languages=none update > why 2>&1 \
        && download "${own_lists[@]}" || { tail -n 1 why >&2; exit 1; }
fi
dpkg-deb -x ./*.deb "$folder"
dpkg-deb -f ./*.deb Version
