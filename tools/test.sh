#!/usr/bin/env bash
# Builds every variant and tests them all in one ctest run, so that one summary ends the output.
set -euo pipefail
cd "$(dirname "$0")/.."

builds=(release checked sanitised tsan)
if tools/setup.sh --has aarch64; then
    builds+=(aarch64)
fi
if tools/setup.sh --has fuzzer; then
    builds+=(fuzz)
fi
tools/build.sh "${builds[@]}"
echo "subdirs(${builds[*]})" > out/CTestTestfile.cmake
ctest --test-dir out --output-on-failure --no-tests=error -j "$(nproc)"
