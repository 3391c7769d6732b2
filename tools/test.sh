#!/usr/bin/env bash
# Builds the named variants, or all that this machine can build, and tests them in one ctest run,
# so that one summary ends the output. The first argument says which tests: those that take seconds
# (quick), those that take longer (slow), or a few that say soon whether a change holds (check).
set -euo pipefail
cd "$(dirname "$0")/.."

kind=$1
shift
builds=("$@")
case $kind in
quick) choice=(-LE slow) ;;
slow) choice=(-L slow) ;;
check)
    choice=(-LE slow -R '/(unit|api|preload|shape|tidy)')
    builds=(release checked)
    ;;
esac
if [ ${#builds[@]} = 0 ]; then
    builds=(release checked sanitised tsan)
    for need in aarch64 musl fuzzer; do
        if tools/setup.sh --has $need; then
            builds+=("${need/fuzzer/fuzz}")
        fi
    done
fi
tools/build.sh "${builds[@]}"
echo "subdirs(${builds[*]})" > out/CTestTestfile.cmake
ctest --test-dir out --output-on-failure --no-tests=error -j "$(nproc)" "${choice[@]}"
