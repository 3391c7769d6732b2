#!/usr/bin/env bash
# Builds the packages for Debian and Ubuntu from the last commit, in out/deb: for this processor,
# or for the ARCHITECTURES that are named. Another one than this needs its cross compiler. lintian
# looks at all of them. Who answers for them: DEBFULLNAME and DEBEMAIL, or else who made the commit.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ ! -e .git ]; then
    echo "deb: packages are made of a commit, and this folder is no git repository: use a clone" >&2
    exit 1
fi
version=$(sed -n 's/^project(hakmem VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
maintainer="${DEBFULLNAME:-$(git log -1 --format=%an)} <${DEBEMAIL:-$(git log -1 --format=%ae)}>"
tree=out/deb/hakmem-$version
rm -rf out/deb
mkdir -p "$tree"
git archive HEAD | tar -x -C "$tree"
cp -r packaging/debian "$tree/debian"
sed -i "s/@maintainer@/$maintainer/" "$tree/debian/control"
release=unstable # Ubuntu's lintian refuses it: there a release is called by its own name
id=$(. /etc/os-release && echo "${ID:-}")
[ "$id" != ubuntu ] || release=$(. /etc/os-release && echo "$VERSION_CODENAME")
cat > "$tree/debian/changelog" << END
hakmem ($version) $release; urgency=medium

  * See CHANGELOG.md.

 -- $maintainer  $(git log -1 --format=%aD)
END

build() { # processor, options of dpkg-buildpackage
    local log=out/deb/build-$1.log
    if ! (cd "$tree" && dpkg-buildpackage -b -us -uc "${@:2}") > "$log" 2>&1; then
        tail -40 "$log" >&2
        exit 1
    fi
}

here=$(dpkg --print-architecture)
for processor in ${ARCHITECTURES:-$here}; do
    if [ "$processor" = "$here" ]; then
        build "$here"
    else # what it is built with is of this processor, and was looked for above
        build "$processor" "-a$processor" -d
    fi
done
rm -rf "$tree"
as_root=()
[ "$(id -u)" != 0 ] || as_root=(--allow-root)
lintian "${as_root[@]}" --fail-on error,warning out/deb/*.changes
ls out/deb/*.deb
