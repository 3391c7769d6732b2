#!/usr/bin/env bash
# Builds the packages for Debian and Ubuntu from the last commit, in out/deb, and has lintian look
# at them. Who answers for them: DEBFULLNAME and DEBEMAIL, or else who made the commit.
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
log=out/deb/build.log
if ! (cd "$tree" && dpkg-buildpackage -b -us -uc) > "$log" 2>&1; then
    tail -40 "$log" >&2
    exit 1
fi
rm -rf "$tree"
as_root=()
[ "$(id -u)" != 0 ] || as_root=(--allow-root)
lintian "${as_root[@]}" --fail-on error,warning out/deb/*.changes
ls out/deb/*.deb
