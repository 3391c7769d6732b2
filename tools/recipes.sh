#!/usr/bin/env bash
# Writes the recipes of packaging/ for the archive of `make dist` to out/recipes: with its version,
# address and checksums. URL and HOMEPAGE: where it will be found; else where it lies here.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^project(hakmem VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
archive=$PWD/out/hakmem-$version.tar.gz
url=${URL:-file://$archive}
homepage=${HOMEPAGE:-${url%/*}}
if [ ! -f "$archive" ]; then
    echo "recipes: $archive is missing: make dist writes it" >&2
    exit 1
fi
sha256=$(sha256sum "$archive" | cut -d ' ' -f 1)
sha512=$(sha512sum "$archive" | cut -d ' ' -f 1)

rm -rf out/recipes
for folder in alpine conan homebrew nix rpm spack vcpkg; do
    mkdir -p "out/recipes/$folder"
    for file in packaging/$folder/*; do
        sed -e "s|@VERSION@|$version|g" -e "s|@URL@|$url|g" -e "s|@HOMEPAGE@|$homepage|g" \
            -e "s|@SHA256@|$sha256|g" -e "s|@SHA512@|$sha512|g" "$file" \
            > "out/recipes/$folder/${file##*/}"
    done
done
ls -d out/recipes/*
