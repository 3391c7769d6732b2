"""Size classes as arithmetic: HAKMEM's (src/slab/size_class.h) and those of other allocators."""

from collections.abc import Sequence

GRANULE = 16
UNIT = 8 << 10
MOST = 32 << 10  # the largest block of a slab
PAGE = 4096
ROUNDED_TO_UNITS = 32 << 20  # larger blocks are rounded to pages


def spaced(to_each_doubling: int, exact: int, most: int = MOST) -> list[int]:
    """Multiples of 16 up to `exact`, then so many sizes to each doubling."""
    sizes = list(range(GRANULE, exact + 1, GRANULE))
    while sizes[-1] < most:
        base = 1 << (sizes[-1].bit_length() - 1)
        sizes.append(sizes[-1] + base // to_each_doubling)
    return sizes


HAKMEM = spaced(8, 128)

# What malloc of the others takes, for requests of up to 32 KiB.
#
# mimalloc 3: mi_bin of src/page-queue.c. Words, then pairs of words up to 64 bytes, then four bins
# to each doubling. jemalloc 5.3: include/jemalloc/internal/sc.h with SC_LG_NGROUP 2, LG_QUANTUM 4
# and SC_LG_TINY_MIN 3. Its sizes are the same.
MIMALLOC = JEMALLOC = [8, *spaced(4, 64)]

# tcmalloc: size_classes.cc for pages of 8 KiB and an alignment of 16. It is a table, made by a
# search over Google's own programs, and follows no rule.
TCMALLOC = [8, 16, 32, 64, 80, 96, 112, 128, 160, 176, 208, 256, 288, 352, 448, 512, 576, 704, 896,
            1024, 1152, 1408, 1792, 2048, 2688, 3456, 4096, 4736, 6144, 8192, 9472, 12288, 16384,
            20480, 28672, 32768]


def align_up(size: int, step: int) -> int:
    return -(-size // step) * step


def fits(class_size: int, size: int) -> bool:
    """May blocks of a class serve requests of `size`, both multiples of 16?"""
    return size <= class_size and min(size & -size, UNIT) <= (class_size & -class_size)


def serving(sizes: Sequence[int], size: int, is_lawful: bool = True) -> int:
    """The smallest of the classes, in rising order, that may serve a request."""
    wanted = align_up(max(size, 1), GRANULE)
    for each in sizes:
        if each >= size and (not is_lawful or each < GRANULE or fits(each, wanted)):
            return each
    raise ValueError(f"no class for {size}")


def rounded(size: int) -> int:
    """The bytes that HAKMEM serves a request with."""
    if size > MOST:
        return align_up(size, UNIT if size <= ROUNDED_TO_UNITS else PAGE)
    return serving(HAKMEM, size)
