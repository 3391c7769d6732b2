#!/usr/bin/env bash
# install.sh install|uninstall: what `make install` and `make uninstall` do with PREFIX, DESTDIR,
# DEBUG=1 and BUILD, the folder of the build. What was installed is listed in share/hakmem/installed
# below PREFIX, so that it can be removed without the build.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:/usr/sbin:/sbin" # ldconfig, for users too

prefix=$(realpath -m "${PREFIX:-/usr/local}")
destdir=${DESTDIR:-}
[ -z "$destdir" ] || destdir=$(realpath -m "$destdir")
export DESTDIR="$destdir"
list=$destdir$prefix/share/hakmem/installed

stop() {
    echo "$*" >&2
    exit 1
}

may_write() { # to a folder, or to the nearest one above it that there is
    local folder=$1
    until [ -e "$folder" ]; do
        folder=$(dirname "$folder")
    done
    [ -d "$folder" ] && [ -w "$folder" ]
}

is_known() { # folder: as the library that the loader finds, maybe by another path
    local path
    ldconfig -p 2> /dev/null | sed -n 's/^\tlibhakmem\.so\.0 .*=> //p' | {
        while read -r path; do
            [ ! "$path" -ef "$1/libhakmem.so.0" ] || exit 0
        done
        exit 1
    }
}

tell_the_loader() { # folder of the library
    if [ -n "$destdir" ]; then
        echo "install: run ldconfig once the library is in $1"
    elif ! { [ "$(id -u)" = 0 ] && command -v ldconfig > /dev/null && ldconfig && is_known "$1"; }
    then
        echo "install: ldconfig does not know $1: programs linked with -lhakmem need" \
            "-Wl,-rpath,$1, or LD_LIBRARY_PATH=$1"
    fi
}

install() {
    local build=${BUILD:-out/release} folder library
    for folder in bin lib include share; do
        may_write "$destdir$prefix/$folder" \
            || stop "install: you may not write to $destdir$prefix/$folder: install as root," \
                "or to a place of yours: make install PREFIX=\$HOME/.local"
    done
    # Where libraries lie depends on the prefix, so it is told to the build.
    cmake -S . -B "$build" -DCMAKE_INSTALL_PREFIX="$prefix" > "$build/install.log" 2>&1 \
        && cmake --install "$build" >> "$build/install.log" 2>&1 \
        || stop "install: cmake failed; $build/install.log says why"
    grep . "$build/install_manifest.txt" > "$build/installed"
    library=$(grep '/libhakmem\.so\.0$' "$build/installed")
    if [ -n "${DEBUG:-}" ]; then
        cmake --install "$build" --component debug >> "$build/install.log" 2>&1 \
            || stop "install: cmake failed; $build/install.log says why"
        cat "$build/install_manifest_debug.txt" >> "$build/installed"
        echo >> "$build/installed"
    fi
    echo "$prefix/share/hakmem/installed" >> "$build/installed"
    if [ -f "$list" ]; then # what an earlier one had put there and this one has not
        { grep -vxFf "$build/installed" "$list" || true; } | while read -r file; do
            rm -f "$destdir$file"
        done
    fi
    cp "$build/installed" "$list"
    echo "install: $(wc -l < "$list") files in $destdir$prefix"
    tell_the_loader "$(dirname "$library")"
}

uninstall() {
    local file folder
    [ -f "$list" ] || stop "uninstall: nothing was installed in $destdir$prefix by make install"
    may_write "$(dirname "$list")" \
        || stop "uninstall: you may not write to $destdir$prefix: try as root"
    mapfile -t files < "$list"
    for file in "${files[@]}"; do
        rm -f "$destdir$file"
        folder=$(dirname "$file")
        while [[ ${folder#"$prefix"} == *hakmem* || $folder == */.debug ]]; do # folders of ours
            rmdir "$destdir$folder" 2> /dev/null || break
            folder=$(dirname "$folder")
        done
    done
    if [ -z "$destdir" ] && [ "$(id -u)" = 0 ] && command -v ldconfig > /dev/null; then
        ldconfig
    fi
    echo "uninstall: ${#files[@]} files removed from $destdir$prefix"
}

case ${1-} in
install | uninstall) "$1" ;;
*) stop "usage: install.sh install|uninstall" ;;
esac
