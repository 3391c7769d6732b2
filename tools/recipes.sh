#!/usr/bin/env bash
# Writes the recipes of packaging/ for the archive of `make dist` to out/recipes: with its version,
# address and checksum. URL and HOMEPAGE: where it will be found; else where it lies here.
# MAINTAINER: who answers for the packages, else who made the commit.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^project(hakmem VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
archive=$PWD/out/hakmem-$version.tar.gz
url=${URL:-file://$archive}
homepage=${HOMEPAGE:-${url%/*}}
if [ ! -f "$archive" ]; then
    echo "recipes: $archive is missing: make dist writes it, in a clone" >&2
    exit 1
fi
sha256=$(sha256sum "$archive" | cut -d ' ' -f 1)
day=$(LC_ALL=C date -u -r "$archive" '+%a %b %d %Y')
committer=$(git log -1 --format='%an <%ae>' 2> /dev/null || echo 'The HAKMEM authors')
maintainer=${MAINTAINER:-$committer}

# For the right side of a substitution by sed.
plain() {
    printf '%s' "$1" | sed 's/[&|\\]/\\&/g'
}

rm -rf out/recipes
for folder in conan rpm; do
    mkdir -p "out/recipes/$folder"
    for file in packaging/$folder/*; do
        sed -e "s|@VERSION@|$version|g" -e "s|@URL@|$(plain "$url")|g" \
            -e "s|@HOMEPAGE@|$(plain "$homepage")|g" \
            -e "s|@SHA256@|$sha256|g" -e "s|@DAY@|$day|g" \
            -e "s|@MAINTAINER@|$(plain "$maintainer")|g" "$file" \
            > "out/recipes/$folder/${file##*/}"
    done
done
ls -d out/recipes/*
