#!/usr/bin/env bash
# Everything of a release, made of the last commit, in out/artifacts: the source archive, packages
# for Debian, wheels, the crate, recipes, and SHA256SUMS, which gpg signs if it has a secret key
# (GPG_KEY: which one). URL, HOMEPAGE and MAINTAINER are for the recipes (tools/recipes.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

changes=$(git status --porcelain 2> /dev/null) || {
    echo "artifacts: they are made of a commit, and this folder is no git repository:" \
        "use a clone" >&2
    exit 1
}
if [ -n "$changes" ]; then
    echo "artifacts: they are made of a commit: commit or remove what git status shows first" >&2
    exit 1
fi

to=out/artifacts
rm -rf "$to" out/crate/package # there an earlier version may lie
mkdir -p "$to"
version=$(sed -n 's/^project(hakmem VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
say() {
    echo "artifacts: $1"
}

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) # a second run makes the same files
export SOURCE_DATE_EPOCH
say "source archive and recipes, which fetch it from ${URL:-out: set URL for a release}"
make -s recipes > /dev/null
cp "out/hakmem-$version.tar.gz" "$to"
cp out/recipes/*/* packaging/container/Containerfile "$to"
say "packages for Debian and Ubuntu"
ARCHITECTURES=$(printf '%s\n' "$(dpkg --print-architecture)" arm64 | sort -u | xargs)
ARCHITECTURES=$ARCHITECTURES tools/deb.sh > /dev/null
cp out/deb/*.deb "$to"
say "wheels"
python3 tools/wheel.py > /dev/null
cp out/wheel/*.whl "$to"
say "crate"
cargo package --quiet --target-dir out/crate
cp out/crate/package/*.crate "$to"

(cd "$to" && sha256sum -- * > SHA256SUMS)
if [ -n "$(gpg --batch --list-secret-keys --with-colons "${GPG_KEY:---}" 2> /dev/null)" ]; then
    gpg --batch --yes --armor --detach-sign ${GPG_KEY:+--local-user "$GPG_KEY"} "$to/SHA256SUMS"
    say "SHA256SUMS is signed"
else
    say "SHA256SUMS is not signed: gpg has no secret key${GPG_KEY:+ $GPG_KEY}"
fi
ls "$to"/*
