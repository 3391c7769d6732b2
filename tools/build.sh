#!/usr/bin/env bash
# Builds the named presets of CMakePresets.json in out/<preset>, quietly unless something fails.
# PRESET:TARGET,TARGET builds only these of it.
set -euo pipefail
cd "$(dirname "$0")/.."

for word in "$@"; do
    preset=${word%%:*}
    targets=()
    if [ "$preset" != "$word" ]; then
        IFS=, read -r -a targets <<< "${word#*:}"
        targets=(--target "${targets[@]}")
    fi
    echo "build: out/$preset"
    log=out/$preset/build.log
    mkdir -p "out/$preset"
    if ! { cmake --preset "$preset" && cmake --build --preset "$preset" "${targets[@]}"; } \
        > "$log" 2>&1; then
        cat "$log" >&2
        exit 1
    fi
    grep 'warning:' "$log" | sort -u || true
done
