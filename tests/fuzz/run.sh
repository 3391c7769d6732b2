#!/usr/bin/env bash
# Runs the fuzzers of out/fuzz: heap, refusals (heap on the fake kernel), options and policy.
#
#   run.sh box NAME SECONDS    from the seeds, with new finds forgotten: what a test does
#   run.sh open                all at once until one finds something or Ctrl-C: make fuzz
#   run.sh seeds               makes tests/fuzz/seeds from what the open run has gathered
#
# An input that breaks something is saved in out/fuzz/crashes; tests/fuzz/replay.c and the fuzzer
# itself repeat it when given its path.
set -euo pipefail
cd "$(dirname "$0")/../.."

all=(heap refusals options policy)
crashes=out/fuzz/crashes
mkdir -p "$crashes"

# More than 2048 bytes, 512 calls, find little more and take longer. A call of the allocator takes
# no second, an input of 4096 none of 60 even on a machine with much else to do.
fuzz() { # name, corpus, further options
    local name=$1 corpus=$2
    mkdir -p "$corpus"
    "out/fuzz/fuzz_$name" -max_len=2048 -timeout=60 -rss_limit_mb=2048 -verbosity=1 \
        "-artifact_prefix=$crashes/$name-" "${@:3}" "$corpus" "tests/fuzz/seeds/$name"
}

case $1 in
box)
    corpus=$(mktemp -d)
    trap 'rm -rf "$corpus"' EXIT
    fuzz "$2" "$corpus" -seed=1 "-max_total_time=$3" -print_final_stats=1 -close_fd_mask=1
    ;;
open)
    echo "fuzz: crashes go to $crashes, what is learnt to out/fuzz/corpus, lines to out/fuzz/*.log"
    trap 'kill $(jobs -p) 2> /dev/null' EXIT
    for name in "${all[@]}"; do
        fuzz "$name" "out/fuzz/corpus/$name" > "out/fuzz/$name.log" 2>&1 &
    done
    HAKMEM_MODE=debug fuzz heap out/fuzz/corpus/heap -reload=1 > out/fuzz/heap-debug.log 2>&1 &
    wait -n
    echo "fuzz: one has ended; see the last lines of out/fuzz/*.log and $crashes" >&2
    exit 1
    ;;
seeds)
    for name in "${all[@]}"; do
        rm -rf "out/fuzz/seeds/$name"
        mkdir -p "out/fuzz/seeds/$name"
        # Edges only: an input for each count of each edge would be a thousand.
        "out/fuzz/fuzz_$name" -merge=1 -use_counters=0 -max_len=2048 "out/fuzz/seeds/$name" \
            "out/fuzz/corpus/$name" "tests/fuzz/seeds/$name" 2> /dev/null
        rm -rf "tests/fuzz/seeds/$name"
        mv "out/fuzz/seeds/$name" "tests/fuzz/seeds/$name"
        du -sb "tests/fuzz/seeds/$name"
    done
    ;;
esac
