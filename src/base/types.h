/* Words that every layer uses: integer types, sizes, branch hints. */
#ifndef HAKMEM_BASE_TYPES_H
#define HAKMEM_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Makes the compiler forget what it knows about a value, at the cost of nothing. The hit path uses
 * it where the compiler would otherwise keep two copies of one. */
#define FORGET(value) __asm__("" : "+r"(value))

/* Off the hit path but often run: a call, and compiled for speed. */
#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((cold, noinline))
/* Its code begins a cache line: else the speed of a tight loop depends on the length of the code
 * that stands before it. */
#define AT_A_LINE __attribute__((aligned(CACHE_LINE)))
/* On data of ours declared in headers: reached directly, not through the global offset table. */
#define HIDDEN __attribute__((visibility("hidden")))
/* On large zeroed data of which a small process touches little. Such data lies behind all small
 * data, which fills few pages so: the linker sorts sections by name (CMakeLists.txt). */
#define SPARSE __attribute__((section(".bss.sparse")))
#define PUBLIC __attribute__((visibility("default")))

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Slabs and large blocks get memory in units. By 8 KiB a large block loses a quarter of its request
 * at most; four bytes for each unit keep the map of 100 MB of blocks within 48 KiB of cache
 * (heap/page_map.h). A page may be longer than a unit. */
#define UNIT_SHIFT 13
#define UNIT_SIZE ((size_t)1 << UNIT_SHIFT)

/* Coherence granule of every machine we run on; keeps locks of different classes apart. */
#define CACHE_LINE 64

/* malloc(3) promises max_align_t; x86-64 and AArch64 compilers assume 16 bytes for every size. */
#define BLOCK_ALIGNMENT ((size_t)16)

#endif
