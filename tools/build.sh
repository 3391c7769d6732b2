#!/usr/bin/env bash
# Builds the named presets of CMakePresets.json in out/<preset>, quietly unless something fails.
# PRESET:TARGET,TARGET builds only these of it. It fetches what the preset needs (tools/setup.sh).
# Of two builds of one preset at a time, the second waits. --configure PRESET... builds nothing, but
# CTest knows the tests then. CMAKE_BUILD_PARALLEL_LEVEL compilers run at a time, else one for each
# processor.
set -euo pipefail
cd "$(dirname "$0")/.."

builds=yes
if [ "${1-}" = --configure ]; then
    builds=
    shift
fi
generator=Ninja
command -v ninja > /dev/null || generator="Unix Makefiles"

for word in "$@"; do
    preset=${word%%:*}
    targets=()
    if [ "$preset" != "$word" ]; then
        IFS=, read -r -a targets <<< "${word#*:}"
        targets=(--target "${targets[@]}")
    fi
    case $preset in
    musl) need=musl packages=musl-tools ;;
    aarch64) need=aarch64 packages="gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user" ;;
    fuzz) need=fuzzer packages="clang and libclang-rt-dev" ;;
    *) need='' ;;
    esac
    tools/setup.sh cmake ${need:+"$need"}
    if [ -n "$need" ] && ! tools/setup.sh --has "$need"; then
        echo "build: out/$preset needs $packages, as Debian and Ubuntu call them" >&2
        exit 1
    fi
    [ -z "$builds" ] || echo "build: out/$preset"
    log=out/$preset/build.log
    mkdir -p "out/$preset"
    exec 9> "out/$preset/build.lock"
    if command -v flock > /dev/null && ! flock -n 9; then
        echo "build: waits for another build of out/$preset"
        flock 9 || true # not every file system has locks
    fi
    if ! grep -qs "^CMAKE_GENERATOR:INTERNAL=$generator$" "out/$preset/CMakeCache.txt"; then
        rm -rf "out/$preset/CMakeCache.txt" "out/$preset/CMakeFiles" # of another one, or of none
    fi
    if ! { cmake --preset "$preset" -G "$generator" \
        && { [ -z "$builds" ] || cmake --build --preset "$preset" \
            -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" "${targets[@]}"; }; } \
        > "$log" 2>&1 9>&-; then # a compiler cache that stays must not keep the lock
        cat "$log" >&2
        exit 1
    fi
    grep 'warning:' "$log" | sort -u || true
    exec 9>&-
done
