#!/usr/bin/env bash
# The binary interface of libhakmem.so on x86-64 with glibc: abi.sh compares that of the checkout
# with packaging/abi, and abi.sh write records it there. Both build the library with its types, in
# the folder that a second word names, out/abi if there is none. The status is 0 if nothing has
# changed, and 77 where this machine cannot tell.
set -euo pipefail
cd "$(dirname "$0")/.."

record=packaging/abi/libhakmem.so.0.abi
folder=${2:-out/abi}
if [ "$(uname -m)" != x86_64 ] || ! tools/setup.sh --has abi; then
    echo "abi: not compared: this takes x86-64 and abidw of the package abigail-tools" >&2
    exit 77
fi
mkdir -p "$folder"
if ! { cmake -S . -B "$folder" -DCMAKE_BUILD_TYPE=Debug -DHAKMEM_LIBRARY_ONLY=ON \
    -DCMAKE_C_FLAGS_DEBUG="-O0 -g \"-ffile-prefix-map=$PWD/=\"" \
    && cmake --build "$folder" --target hakmem -j "$(nproc)"; } > "$folder/build.log" 2>&1; then
    cat "$folder/build.log" >&2
    exit 1
fi
# Without what depends on where it was built, and without what FILE is in this C library.
printf '[suppress_type]\n  name_regexp = ^_IO_\n  drop = yes\n' > "$folder/dropped"
abidw --exported-interfaces-only --suppressions "$folder/dropped" --type-id-style hash \
    --no-corpus-path --no-comp-dir-path --no-show-locs "$folder/libhakmem.so" > "$folder/now.abi"
if [ "${1:-}" = write ]; then
    cp "$folder/now.abi" "$record"
    echo "$record"
elif ! abidiff --no-show-locs "$record" "$folder/now.abi"; then
    echo "abi: the interface is not the recorded one. What is new belongs to the record:" \
        "tools/abi.sh write. What goes or changes belongs to a new major version:" \
        "docs/releasing.md" >&2
    exit 1
fi
