#!/usr/bin/env python3
"""Counts the cache lines that move between processors for a block that changes threads.

    lines.py [ALLOCATORS [WORKLOAD-THREADS ...]]

ALLOCATORS as `./hakmem bench --allocators` takes them; without any, the section of counted.md is
printed (make docs). The rows go to bench/lines.csv.

The threads of bench/programs/lines.c run in lockstep under ptrace. Their calls of the allocator are
stepped through instruction by instruction, and each access to memory goes to simulated caches, one
per thread (coherence.py). It needs capstone, and pyelftools.
"""

import bisect
import csv
import ctypes
import io
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from coherence import LINE, Caches

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "out/release/lines"
TABLE = "bench/lines.csv"
FIELDS = ("workload", "threads", "allocator", "version", "blocks", "place", "by", "moved",
          "claimed")
OURS = "hakmem"
CELLS = (("handover", 2), ("burst", 2), ("ring", 2), ("larson", 2),
         ("shared", 2), ("handover", 8), ("ring", 8), ("larson", 8), ("shared", 8),
         ("handover", 32), ("ring", 32), ("larson", 32), ("shared", 32),
         ("handover", 128), ("ring", 128), ("larson", 128), ("shared", 128))
WARM_UP = 10000  # blocks that are made before any instruction is stepped
BLOCKS, OF_A_THREAD = 2000, 250  # counted per cell, at least; before them as many that are not

READY, BEGIN, BLOCK, END = range(4)  # event_t of lines.c
TRACEME, CONT, SINGLESTEP, GETREGS, SETREGS, SETOPTIONS = 0, 7, 9, 12, 13, 0x4200
CLONE, EXITKILL = 1 << 3, 1 << 20
WALL = 0x40000000
BREAKPOINT = 0xCC

HEAD = """
# Counted: cache lines that move between processors

A cache line that another processor has written costs as much as many instructions, and more
the farther apart the two processors are. A time tells neither how many lines move nor which. Here
the threads run in lockstep under ptrace, each instruction of the allocator is stepped, and each
access goes to simulated caches, one per thread.

* **moved**: lines that came from the cache of another processor. **claimed**: lines that a
  processor had and wrote to, so that the copies of others became invalid. Both cost a message to
  another processor. Figures are per allocated block.
* **The caches** keep each other coherent (MESI) and have room for everything. What comes from
  memory, and what the program does between its calls, is not counted.
* **The least**: a block that is written here, read and freed there and written here again moves at
  least once, and is claimed once.
* **handover**: the first thread allocates blocks of 64 bytes, the others free them. **burst**: the
  same, with 500 blocks on their way. **ring**: each frees what the thread before it has allocated.
  **shared**: all replace blocks of one array at random. **larson**: each replaces blocks of 16 to
  512 bytes in an array, which it passes on.
* **Where**: "own memory" is what the allocator has mapped for itself. Of HAKMEM that is magazines,
  where `malloc` and `free` use it: eight pointers to blocks are a line. Other names are variables.
* **Lockstep**: no thread ever waits for a lock, since calls of two threads never overlap. What
  contention adds is not in the figures.
* **Short runs**: a line that the stepped part meets for the first time counts as if it came from
  memory. With more than two threads this makes the figures lower than they would be.
* **Processors**: each thread has a cache of its own, but the allocator sees the two processors of
  the machine. What it splits by the number of processors is split for two.

`tools/lines.py ALLOCATORS [WORKLOAD-THREADS …]` runs them, keeps the rows in `bench/lines.csv` and
prints this page.

"""


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
        "fs_base gs_base ds es fs gs").split()]


libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request: int, pid: int, data: object = None) -> None:
    if libc.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request} of {pid}")


@dataclass
class Operand:
    """An access of one instruction."""
    base: str
    index: str
    scale: int
    offset: int
    segment: str
    size: int
    writes: bool  # it may read, too

    def address(self, registers: Registers) -> int:
        at = self.offset
        if self.base:
            at += getattr(registers, self.base)
        if self.index:
            at += getattr(registers, self.index) * self.scale
        if self.segment:
            at += registers.fs_base
        return at & 0xFFFFFFFFFFFFFFFF


def is_write(mnemonic: str, is_first: bool) -> bool:
    """Of instructions that capstone takes for reading: exchanges, and vectors that are stored."""
    name = mnemonic.rpartition(" ")[2]
    return "xchg" in name or name == "prefetchw" or is_first and name.startswith(
        ("mov", "vmov", "pextr", "vpextr", "vextract", "stmxcsr", "xsave", "fxsave"))


class Decoder:
    """The accesses of instructions, but for those that push and pop: stacks are their threads'."""

    def __init__(self) -> None:
        import capstone
        self.capstone = capstone
        self.engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self.engine.detail = True

    def operands(self, code: bytes, at: int) -> list[Operand]:
        x86 = self.capstone.x86
        instruction = next(self.engine.disasm(code, at, 1), None)
        if instruction is None or instruction.mnemonic in ("lea", "nop", "endbr64"):
            return []
        found = []
        for each in instruction.operands:
            if each.type != x86.X86_OP_MEM:
                continue
            names = [instruction.reg_name(register) or "" for register in
                     (each.mem.base, each.mem.index, each.mem.segment)]
            base, index, segment = names
            offset = each.mem.disp
            if base == "rip":
                base, offset = "", offset + at + instruction.size
            if not (base in WORDS and index in WORDS and segment in SEGMENTS):
                raise ValueError(f"not understood: {instruction.mnemonic} {instruction.op_str}")
            writes = bool(each.access & self.capstone.CS_AC_WRITE) or \
                is_write(instruction.mnemonic, each is instruction.operands[0])
            found.append(Operand(base, index, each.mem.scale, offset, segment * (segment == "fs"),
                                 each.size, writes))
        return found


WORDS = {"", *"rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15".split()}
SEGMENTS = {"", "fs", "ds", "es", "ss", "cs"}


class Places:
    """Names for addresses: symbols of the files that a process has mapped."""

    def __init__(self, pid: int) -> None:
        self.starts: list[int] = []
        self.names: list[tuple[int, str]] = []  # the end, and the name
        found: dict[int, tuple[int, str]] = {}
        bases: dict[str, int] = {}
        self.areas: list[tuple[int, int, str]] = []
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            words = line.split(None, 5)
            start, end = (int(text, 16) for text in words[0].split("-"))
            path = words[5] if len(words) > 5 else ""
            self.areas.append((start, end, path))
            if path.startswith("/") and path not in bases:
                bases[path] = start - int(words[2], 16)
        for path, base in bases.items():
            for start, size, name in symbols(path):
                found[base + start] = (base + start + size, name)
        for start in sorted(found):
            self.starts.append(start)
            self.names.append(found[start])

    def name(self, address: int) -> str:
        index = bisect.bisect_right(self.starts, address) - 1
        if index >= 0 and address < self.names[index][0]:
            return self.names[index][1]
        return ""

    def area(self, address: int) -> str:
        for start, end, path in self.areas:
            if start <= address < end:
                return Path(path).name if path.startswith("/") else path
        return ""


def symbols(path: str) -> list[tuple[int, int, str]]:
    """Functions and variables of a library or program: address, size, name."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return []
        file.seek(0)
        return [(each["st_value"], max(1, each["st_size"]), each.name)
                for section in ELFFile(file).iter_sections()
                if isinstance(section, SymbolTableSection)
                for each in section.iter_symbols()
                if each["st_info"]["type"] in ("STT_FUNC", "STT_OBJECT", "STT_GNU_IFUNC")
                and each["st_shndx"] != "SHN_UNDEF"]


@dataclass
class Count:
    """What one run costs, by where the line is and who has touched it."""
    blocks: int = 0
    moved: Counter = field(default_factory=Counter)
    claimed: Counter = field(default_factory=Counter)


class Run:
    """One run of the program, to its end."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        self.main = os.fork()
        if self.main == 0:
            try:
                null = os.open(os.devnull, os.O_RDONLY)
                os.dup2(null, 0)
                ptrace(TRACEME, 0)
                os.execve(words[0], words, environment)
            finally:
                os._exit(127)
        self.threads: list[int] = []
        self.registers = Registers()
        self.memory = -1
        self.decoder = Decoder()
        self.known: dict[int, list[Operand] | None] = {}  # by address; None: a breakpoint
        self.block_lines: set[int] = set()
        self.caches = Caches()

    def wait(self, which: int) -> tuple[int, int]:
        """Until a thread stops or ends: its number, and the signal; 0 where it has ended."""
        while True:
            pid, status = os.waitpid(which, WALL)
            if not os.WIFSTOPPED(status):
                if os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) != 0:
                    raise RuntimeError(f"the program ended with {status}")
                return pid, 0
            if status >> 16 == 0:
                return pid, os.WSTOPSIG(status)
            ptrace(CONT, pid)  # of the new thread we hear itself

    def gather(self, count: int) -> None:
        """Lets the program start its threads, until all stand before their first step."""
        _, number = self.wait(self.main)
        if number != signal.SIGTRAP:
            raise RuntimeError("the program did not start")
        ptrace(SETOPTIONS, self.main, CLONE | EXITKILL)
        ptrace(CONT, self.main)
        ready: dict[int, int] = {}
        while len(ready) < count:
            pid, number = self.wait(-1)
            if number == signal.SIGTRAP:
                ready[len(ready)] = pid
            elif number:
                ptrace(CONT, pid, None if number == signal.SIGSTOP else number)
            else:
                raise RuntimeError("the program ended before its threads had started")
        # pthread_create hands out the numbers in order, and so does the kernel.
        self.threads = sorted(ready.values())
        self.memory = os.open(f"/proc/{self.main}/mem", os.O_RDONLY)

    def turn(self, index: int, see: Callable[[int, int, Operand, int], None] | None) -> int:
        """One step of a thread. The number of blocks that it made; -1: the thread has ended."""
        pid, registers, blocks = self.threads[index], self.registers, 0
        at = ctypes.byref(registers)
        while True:
            ptrace(CONT, pid)
            _, number = self.wait(pid)
            if number == 0:
                return -1
            ptrace(GETREGS, pid, at)
            if number != signal.SIGTRAP:
                raise RuntimeError(f"signal {number} at {registers.rip:#x}")
            event = registers.rdi
            if event == READY:
                return blocks
            if event == BLOCK:
                blocks += self.block()
            if event == BEGIN and see is not None:
                blocks += self.stepped(pid, index, see)

    def block(self) -> int:
        """The program has told of a block, in the registers."""
        start, size = self.registers.rsi, self.registers.rdx
        self.block_lines.update(range(start // LINE, (start + size - 1) // LINE + 1))
        return 1

    def stepped(self, pid: int, index: int, see: Callable[[int, int, Operand, int], None]) -> int:
        registers, blocks, known = self.registers, 0, self.known
        at = ctypes.byref(registers)
        ptrace_raw, waitpid = libc.ptrace, os.waitpid
        while True:
            pc = registers.rip
            if pc not in known:
                code = os.pread(self.memory, 15, pc)
                known[pc] = None if code[0] == BREAKPOINT else self.decoder.operands(code, pc)
            operands = known[pc]
            if operands is None:
                registers.rip = pc + 1
                ptrace(SETREGS, pid, at)
                if registers.rdi == END:
                    return blocks
                blocks += self.block()
                continue
            for each in operands:
                see(index, pc, each, each.address(registers))
            if ptrace_raw(SINGLESTEP, pid, None, None) < 0:
                raise OSError(ctypes.get_errno(), "single step")
            _, status = waitpid(pid, WALL)
            if status != (signal.SIGTRAP << 8 | 0x7F):
                raise RuntimeError(f"status {status:#x} at {pc:#x}")
            ptrace_raw(GETREGS, pid, None, at)

    def finish(self) -> None:
        os.close(self.memory)
        os.kill(self.main, signal.SIGKILL)
        with_status = 0
        while with_status is not None:
            try:
                os.waitpid(-1, WALL)
            except ChildProcessError:
                with_status = None


def count(workload: str, threads: int, library: str, blocks: int = 0,
          warm_up: int = WARM_UP) -> Count:
    """Runs the workload, and counts `blocks` blocks; before them come as many that are stepped, so
    that the caches hold what they would hold, and before those `warm_up` that are not."""
    blocks = blocks or max(BLOCKS, OF_A_THREAD * threads)
    from_here = warm_up + blocks
    environment = {"PATH": os.environ["PATH"], "LD_BIND_NOW": "1"}
    if library:
        environment["LD_PRELOAD"] = library
    run = Run([str(PROGRAM), workload, str(threads), str(1 << 30)], environment)
    found, made, start = Count(), 0, 0
    run.gather(threads)
    places, caches = Places(run.main), run.caches
    names: dict[int, str] = {}

    def see(thread: int, pc: int, operand: Operand, address: int) -> None:
        for line in range(address // LINE, (address + max(1, operand.size) - 1) // LINE + 1):
            cost = caches.access(thread, line, operand.writes)
            if not cost or start < from_here:
                continue
            if pc not in names:
                names[pc] = places.name(pc) or places.area(pc) or "?"
            if places.name(address) == "clock_ns":
                continue
            key = ("block" if line in run.block_lines else
                   places.name(address) or places.area(address) or "own memory", names[pc])
            (found.moved if cost == "moved" else found.claimed)[key] += 1

    while made < from_here + blocks:
        start = made
        for index in range(threads):
            done = run.turn(index, see if start >= warm_up else None)
            if done < 0:
                raise RuntimeError("a thread ended early")
            made += done
        if start >= from_here:
            found.blocks += made - start
    run.finish()
    return found


Row = dict[str, str]


def rows_of(text: str) -> list[Row]:
    return list(csv.DictReader(io.StringIO(text)))


def rows_from(cell: tuple[str, int], allocator: str, version: str, found: Count) -> list[Row]:
    """A row per place and function; those that are below a thousandth of all are one row."""
    sums: dict[tuple[str, str], list[int]] = {}
    least = (found.moved.total() + found.claimed.total()) / 1000
    for key in found.moved.keys() | found.claimed.keys():
        small = found.moved[key] + found.claimed[key] < least
        both = sums.setdefault(("others", "") if small else key, [0, 0])
        both[0] += found.moved[key]
        both[1] += found.claimed[key]
    head = (cell[0], str(cell[1]), allocator, version, str(found.blocks))
    return [dict(zip(FIELDS, (*head, *key, *map(str, sums[key])), strict=True))
            for key in sorted(sums)]


def save(rows: list[Row]) -> None:
    """Puts the rows in the place of those of the same workload, threads and allocator."""
    file = ROOT / TABLE

    def key(row: Row) -> tuple[str, int, str]:
        return row["workload"], int(row["threads"]), row["allocator"]

    new = {key(row) for row in rows}
    old = rows_of(file.read_text(encoding="utf-8")) if file.exists() else []
    kept = [row for row in old if key(row) not in new] + rows
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(kept, key=lambda row: (*key(row), row["place"], row["by"])))


def per_block(rows: list[Row], column: str) -> float:
    return sum(int(row[column]) for row in rows) / int(rows[0]["blocks"])


def table(text: str) -> str:
    """Lines per block of each workload and allocator, and where HAKMEM's are."""
    found: dict[tuple[int, str], dict[str, list[Row]]] = {}
    for row in rows_of(text):
        cell = int(row["threads"]), row["workload"]
        found.setdefault(cell, {}).setdefault(row["allocator"], []).append(row)
    names = sorted({name for by in found.values() for name in by} - {OURS})
    lines = [f"| moved + claimed | {OURS} | " + " | ".join(names) + " |",
             "|---|" + "---:|" * (1 + len(names))]
    for (threads, workload), by in sorted(found.items()):
        figures = [f"{per_block(by[each], 'moved'):.2f} + {per_block(by[each], 'claimed'):.2f}"
                   if each in by else "–" for each in (OURS, *names)]
        lines.append(f"| {workload}, {threads} threads | " + " | ".join(figures) + " |")
    parts = ["\n".join(lines)]
    for (threads, workload), by in sorted(found.items()):
        if OURS in by and threads == 2:
            parts.append(places_of(workload, by[OURS]))
    return "\n\n".join(parts) + "\n"


def places_of(workload: str, rows: list[Row]) -> str:
    lines = [f"| {OURS}, {workload}, 2 threads: the line | used in | moved | claimed |",
             "|---|---|---:|---:|"]
    for row in sorted(rows, key=lambda row: -int(row["moved"]) - int(row["claimed"])):
        lines.append(f"| {row['place']} | {row['by'] or '–'} | {per_block([row], 'moved'):.3f} | "
                     f"{per_block([row], 'claimed'):.3f} |")
    return "\n".join(lines)


def main() -> int:
    if not sys.argv[1:]:
        print(HEAD + table((ROOT / TABLE).read_text(encoding="utf-8")), end="")
        return 0
    sys.path.insert(0, str(ROOT / "lab"))
    from hakmem_lab.measure import allocators, environment
    chosen = allocators.choose(sys.argv[1])
    cells = [cell for cell in CELLS if not sys.argv[2:] or "-".join(map(str, cell)) in sys.argv[2:]]
    failed = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        runs = [(cell, allocator, pool.submit(count, *cell, ":".join(map(str, allocator.preload))))
                for cell in cells for allocator in chosen]
        for cell, allocator, run in runs:
            commit, is_dirty = environment.commit_of(allocator)
            version = commit + " and changes" * is_dirty or allocator.version
            try:
                save(rows_from(cell, allocator.name, version, run.result()))
            except (OSError, RuntimeError, ValueError) as error:
                print(f"{cell} on {allocator.name}: {error}", flush=True)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
