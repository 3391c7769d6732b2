#!/usr/bin/env python3
"""Compares allocators on one benchmark or on a preset: a stop-gap before the laboratory.

    compare.py [--pairs N] [--allocators NAMES] [--csv FILE] PROGRAM [ARGUMENT]...
    compare.py [--pairs N] [--allocators NAMES] [--csv FILE] --preset quick|families

All allocators run in turn, N times; each run proves which one served it. Ratios are throughput of
the allocator over that of hakmem, round by round. Net is ns/op less the floor's median.
"""
import argparse
import csv
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRESETS = {
    "quick": """
        bench_random_mixed 10000000 256 42
        bench_random_mixed 10000000 8192 42
        bench_mid_large_mt 2 40000 2048 42
        bench_vm_mixed 20000 256 42
        bench_tiny_hot 32 100 600000
        larson 1 8 128 1024 100 42 2
        bench_producer_consumer 1 100 1""",
    "families": """
        bench_random_mixed 100000 256 42
        bench_random_mixed 10000000 256 42
        bench_random_mixed 10000000 8192 42
        bench_random_mixed 10000000 200000 42
        bench_random_mixed 10000000 256 42 --min-size=128 --max-size=128
        bench_random_mixed 10000000 256 42 --min-size=256 --max-size=256
        bench_random_mixed 10000000 256 42 --min-size=512 --max-size=512
        bench_random_mixed 10000000 256 42 --min-size=1024 --max-size=1024
        bench_mid_large_mt 1 40000 2048 42
        bench_mid_large_mt 2 40000 2048 42
        bench_mid_large_mt 4 40000 2048 42
        bench_mid_large_mt 8 40000 2048 42
        bench_vm_mixed 20000 256 42
        bench_tiny_hot 32 100 60000
        bench_tiny_hot 64 100 60000
        bench_tiny_hot 32 1000 60000
        larson 2 8 128 1024 100 42 1
        larson 2 8 128 1024 100 42 2
        larson 2 8 128 1024 100 42 8
        larson 2 8 1024 10000 100 42 1
        larson 2 8 1024 10000 100 42 4
        larson 2 8 1024 10000 100 42 8
        bench_producer_consumer 1 100 2
        bench_producer_consumer 1 4096 2
        bench_producer_consumer 4 100 2
        bench_migrate 1 5000000 4096 42
        bench_migrate 2 5000000 4096 42
        bench_migrate 8 1000000 4096 42
        bench_ring 2 100 100000
        bench_ring 8 100 20000
        bench_false_sharing 2 20000 1000 8 --kind=active
        bench_false_sharing 2 20000 1000 8 --kind=passive
        bench_calloc 256 100 20000 --blocks=reused
        bench_calloc 256 100 10000 --blocks=fresh
        bench_realloc_growth 5 2
        bench_aligned 3000000 256 42
        bench_tail 2 1000000 8192 42
        bench_startup 200""",
}
COLUMNS = ["time", "round", "allocator", "version", "environment", "command", "program",
           "parameters", "operations", "seconds", "ns_per_operation", "peak_rss_kib", "end_rss_kib",
           "malloc_owner", "hakmem_engaged", "commit", "dirty", "machine", "figures"]


def find_allocators(names, builds):
    """The rows of the wanted allocators: preload, environment, version, and who must own malloc."""
    file = ROOT / "out" / "peers" / "peers.json"
    rows = {row["name"]: row for row in (json.loads(file.read_text()) if file.exists() else [])}
    rows.setdefault("system", {"preload": "", "environment": {}, "path": "libc.so.6",
                               "version": " ".join(platform.libc_ver())})
    for name, library in (("hakmem", "libhakmem.so"), ("floor", "libfloor.so")):
        path = str(builds / library)
        rows[name] = {"preload": path, "environment": {}, "path": path, "version": "this tree"}
    found = {}
    for name in names or rows:
        label, _, path = name.partition("=")
        if path:
            rows[label] = {"preload": path, "environment": {}, "path": path, "version": "given"}
        if label not in rows:
            sys.exit(f"compare.py: no allocator '{label}'; there are {', '.join(rows)}")
        if all(Path(part).exists() for part in rows[label]["preload"].split(":") if part):
            found[label] = rows[label]
        elif names:
            sys.exit(f"compare.py: {rows[label]['preload']} is not built")
    return found


def run_once(builds, words, name, row):
    """One run; returns its JSON line after checking who served it."""
    program = builds / f"{words[0]}_system"
    floor = builds / f"{words[0]}_floor"
    is_linked = name == "floor" and not Path(row["preload"]).exists() and floor.exists()
    command = [str(floor if is_linked else program), *words[1:], "--json"]
    environment = dict(os.environ, **row["environment"])
    if row["preload"] and not is_linked:
        environment["LD_PRELOAD"] = row["preload"]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False,
                          timeout=600)
    if done.returncode != 0:
        return {"failure": f"status {done.returncode}: {done.stderr.strip()[-200:]}"}
    result = json.loads(next(line for line in done.stdout.splitlines() if line[:1] == "{"))
    wanted = command[0] if is_linked else row["path"]
    owner = Path(result["malloc_owner"])
    if owner.resolve() != Path(wanted).resolve() and owner.name != wanted:
        sys.exit(f"compare.py: {name} was not engaged: malloc belongs to {owner}")
    if name == "hakmem" and not result["hakmem_engaged"]:
        sys.exit(f"compare.py: hakmem was not engaged: {owner} is not HAKMEM")
    return result


def git(*words):
    """The output of git, or nothing if this is no checkout."""
    return subprocess.run(["git", *words], text=True, capture_output=True, check=False,
                          cwd=ROOT).stdout.strip()


def csv_row(words, name, row, number, result):
    """All that a reader needs to run this again."""
    known = {key: result[key] for key in COLUMNS if key in result}
    known["malloc_owner"] = Path(known.get("malloc_owner", "")).name
    others = {key: value for key, value in result.items()
              if key not in COLUMNS and key not in ("operation", "failure")}
    return {**known, "time": time.strftime("%Y-%m-%dT%H:%M:%S"), "round": number, "allocator": name,
            "version": row["version"], "environment": json.dumps(row["environment"]),
            "command": " ".join(words), "commit": COMMIT, "dirty": DIRTY, "machine": MACHINE,
            "parameters": json.dumps(result.get("parameters", {})),
            "figures": json.dumps(others) if "failure" not in result else result["failure"]}


def compare(builds, words, allocators, rounds, writer):
    """Runs one benchmark on all allocators in turn and prints its table."""
    runs = {name: [] for name in allocators}
    for number in range(rounds):
        for name, row in allocators.items():
            result = run_once(builds, words, name, row)
            runs[name].append(result)
            if writer:
                writer.writerow(csv_row(words, name, row, number, result))
    print(f"\n{' '.join(words)}   ({rounds} rounds{', a smoke test' if rounds < 10 else ''})")
    base = "hakmem" if "hakmem" in allocators else "system"
    print(f"{'allocator':18} {'M op/s':>9} {'ns/op':>10} {'net ns/op':>10} {'peak MB':>8}"
          f"   against {base} (min .. max)")
    cost = {name: [run.get("ns_per_operation") for run in runs[name]] for name in runs}
    floor_ns = None if None in cost.get("floor", [None]) else statistics.median(cost["floor"])
    for name in allocators:
        if None in cost[name]:
            print(f"{name:18} failed: {next(r['failure'] for r in runs[name] if 'failure' in r)}")
            continue
        middle = statistics.median(cost[name])
        net = f"{middle - floor_ns:10.2f}" if floor_ns is not None else f"{'':10}"
        peak = statistics.median(run["peak_rss_kib"] for run in runs[name]) / 1024
        line = f"{name:18} {1000 / middle:9.2f} {middle:10.2f} {net} {peak:8.1f}   "
        if base in cost and None not in cost[base]:
            ratios = [ours / theirs for ours, theirs in zip(cost[base], cost[name])]
            line += f"{statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f})"
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=3, help="rounds; a claim needs 10")
    parser.add_argument("--allocators", help="names, or NAME=LIBRARY, separated by commas")
    parser.add_argument("--preset", choices=PRESETS)
    parser.add_argument("--builds", type=Path, default=ROOT / "out" / "release")
    parser.add_argument("--csv", type=Path, default=ROOT / "out" / "compare.csv")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    if bool(arguments.preset) == bool(arguments.command) or arguments.pairs < 1:
        parser.error("give a program or a preset, and at least one round")
    names = arguments.allocators.split(",") if arguments.allocators else []
    allocators = find_allocators(names, arguments.builds.resolve())
    preset = PRESETS.get(arguments.preset, "").strip().splitlines()
    commands = [line.split() for line in preset] or [arguments.command]
    if missing := [c[0] for c in commands if not (arguments.builds / f"{c[0]}_system").exists()]:
        sys.exit(f"compare.py: not built in {arguments.builds}: {', '.join(missing)}")
    arguments.csv.parent.mkdir(parents=True, exist_ok=True)
    with arguments.csv.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if file.tell() == 0:
            writer.writeheader()
        for words in commands:
            compare(arguments.builds.resolve(), words, allocators, arguments.pairs, writer)
            file.flush()


COMMIT, DIRTY = git("rev-parse", "--short", "HEAD"), bool(git("status", "--porcelain"))
KERNEL = platform.release().split("-")[0]
MACHINE = f"{platform.machine()}, Linux {KERNEL}, {os.cpu_count()} processors"

if __name__ == "__main__":
    main()
