"""Allocators and programs that are wrong in one way each, for the tests of the laboratory."""

import subprocess
from pathlib import Path

import pytest
from hakmem_lab import ROOT
from hakmem_lab.measure.allocators import Allocator
from hakmem_lab.measure.subject import Cell, Subject

needs_history = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git repository")

# Hands all calls to the C library and keeps a clock of its own: so many ns per malloc.
ALLOCATOR = """
#include <stddef.h>
void *__libc_malloc(size_t size);
static unsigned long calls;
void *malloc(size_t size) { calls++; return __libc_malloc(size); }
double allocator_clock_ns(void) { return (double)calls * NS_PER_MALLOC; }
"""

# A benchmark program whose time is the allocator's clock, on a machine that gets slower and faster
# by a third within a few runs and adds 1 % of its own to each. Nothing in it depends on real time.
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
double allocator_clock_ns(void) __attribute__((weak));
int main(int count, char **words)
{
    FILE *file = fopen(RUNS_FILE, "a+");
    unsigned run = 0;
    for (rewind(file); fgetc(file) != EOF;) run++;
    fputc('.', file);
    fclose(file);
    void *volatile block;
    double before = allocator_clock_ns ? allocator_clock_ns() : 0;
    for (int i = 0; i < 1000; i++) { block = malloc(16); free(block); }
    double ns = allocator_clock_ns ? (allocator_clock_ns() - before) / 1000 : 100;
    unsigned mixed = (run + 1) * 2654435761u;
    mixed ^= mixed >> 15;
    mixed *= 2246822519u;
    mixed ^= mixed >> 13;
    double mood = 1 + 0.3 * sin(run / 7.0), own = 1 + 0.01 * (mixed % 2001 / 1000.0 - 1);
    const char *size = count > 1 ? strchr(words[1], '=') + 1 : "0";
    int misreads = getenv("MISREADS_BY") ? atoi(getenv("MISREADS_BY")) : 0;
    Dl_info owner;
    dladdr(dlsym(RTLD_DEFAULT, "malloc"), &owner);
    printf("{\"parameters\": {\"size\": %d}, \"operations\": 1000, \"ns_per_operation\": %f, "
           "\"peak_rss_kib\": 1, \"end_rss_kib\": 1, \"malloc_owner\": \"%s\", "
           "\"hakmem_engaged\": false}\n", atoi(size) + MISREADS_BY + misreads, ns * mood * own,
           owner.dli_fname);
    return 0;
}
"""


def compiled(folder: Path, name: str, source: str, *flags: str) -> Path:
    file, target = folder / f"{name}.c", folder / name
    file.write_text(source)
    subprocess.run(["cc", "-O1", "-fno-builtin", *flags, "-o", target, file, "-ldl", "-lm"],
                   check=True)
    return target


def allocator(folder: Path, name: str, ns_per_malloc: float) -> Allocator:
    library = compiled(folder, f"lib{name}.so", ALLOCATOR, "-shared", "-fPIC",
                       f"-DNS_PER_MALLOC={ns_per_malloc}")
    return Allocator(name, "of a test", (library,), str(library))


def absent(folder: Path) -> Allocator:
    """A library that can be preloaded and serves nothing."""
    library = compiled(folder, "libabsent.so", "int nothing;\n", "-shared", "-fPIC")
    return Allocator("absent", "of a test", (library,), str(library))


def cell(folder: Path, misreads_by: int = 0) -> Cell:
    program = compiled(folder, "paced", PROGRAM, f"-DMISREADS_BY={misreads_by}",
                       f'-DRUNS_FILE="{folder}/runs"')
    return Cell("paced", "own", Subject((str(program), "--size=16"), has_json=True))
