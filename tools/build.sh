#!/usr/bin/env bash
# Builds the named presets of CMakePresets.json in out/<preset>, quietly unless something fails.
set -euo pipefail
cd "$(dirname "$0")/.."

for preset in "$@"; do
    echo "build: out/$preset"
    log=out/$preset/build.log
    mkdir -p "out/$preset"
    if ! { cmake --preset "$preset" && cmake --build --preset "$preset"; } > "$log" 2>&1; then
        cat "$log" >&2
        exit 1
    fi
    grep 'warning:' "$log" | sort -u || true
done
