#!/usr/bin/env bash
# version.sh X.Y.Z: writes the version of the next release into each file that holds one, and dates
# the entry of CHANGELOG.md. Every other place takes the version from CMakeLists.txt. Nothing is
# committed. docs/releasing.md says what a version number promises.
set -euo pipefail
cd "$(dirname "$0")/.."

refuse() {
    echo "version: $1" >&2
    exit 1
}

# File, expression of sed: the expression changes the file, or the file holds its result already.
set_in() {
    sed -E "$2" "$1" > "$changed"
    cmp -s "$1" "$changed" || cat "$changed" > "$1"
}

number='(0|[1-9][0-9]*)'
[ $# = 1 ] && [[ $1 =~ ^$number\.$number\.$number$ ]] \
    || refuse "give one version of three numbers, as in: tools/version.sh 1.2.3"
version=$1
IFS=. read -r major minor patch <<< "$version"
now=$(sed -n 's/^project(hakmem VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
printf '%s\n%s\n' "$now" "$version" | sort -C -V || refuse "$version is older than $now"
changes=$(git status --porcelain) || refuse "this folder is no git repository: use a clone"
[ -z "$changes" ] || refuse "commit or remove what git status shows first"
grep -q '^## \[Unreleased\]$' CHANGELOG.md \
    || refuse "CHANGELOG.md has no entry with the heading '## [Unreleased]'"

changed=$(mktemp)
trap 'rm -f "$changed"' EXIT
set_in CMakeLists.txt "s/^(project\(hakmem VERSION )[0-9.]+/\1$version/"
set_in Cargo.toml "s/^version = \"[0-9.]+\"$/version = \"$version\"/"
for part in MAJOR:$major MINOR:$minor PATCH:$patch; do
    set_in include/hakmem.h "s/^(#define HAKMEM_VERSION_${part%:*}) [0-9]+$/\1 ${part#*:}/"
done
set_in include/hakmem.h "s|^/\* \"[0-9.]+\", static|/* \"$version\", static|"
set_in CHANGELOG.md "s/^## \[Unreleased\]$/## [$version] – $(date -u +%F)/"
git diff --stat
