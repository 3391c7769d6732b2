/* What four bytes of a fuzzer's input mean: a call, the block it concerns, and how large.

   Most sizes are small, many lie within 32 bytes of a border between size classes, and some are
   absurd; every number is reached by changing one byte or two. */
#ifndef HAKMEM_TESTS_DECODE_H
#define HAKMEM_TESTS_DECODE_H

#include <stddef.h>
#include <stdint.h>

enum { DECODE_BYTES = 4, SLOT_COUNT = 1024 };

typedef enum call {
    CALL_MALLOC,
    CALL_CALLOC,
    CALL_MEMALIGN,
    CALL_POSIX_MEMALIGN,
    CALL_ALIGNED_ALLOC,
    CALL_VALLOC,
    CALL_PVALLOC,
    CALL_NEW,
    CALL_NEW_ALIGNED,
    CALL_REALLOC,
    CALL_REALLOCARRAY,
    CALL_FREE,
    CALL_FREE_OTHERWISE, /* free_sized, delete ... whatever suits the block */
    CALL_VERIFY,
    CALL_ALLOCATE_MANY,
    CALL_FREE_MANY,
    CALL_ABSURD,  /* more than there is */
    CALL_INVALID, /* arguments that are refused */
    CALL_TRIM,
    CALL_PURGE,
    CALL_IDLE,
    CALL_OWNS,
    CALL_REPORT,
    CALL_OPTION,
    CALL_SWITCH_OWNER,
    CALL_END_OWNER,
    CALL_TIME,   /* of the fake kernel */
    CALL_REFUSE, /* the fake kernel refuses some calls */
    CALL_REFUSE_NEVER,
    CALL_COUNT,
} call_t;

typedef struct step {
    call_t call;
    unsigned slot;
    uint8_t a;
    uint8_t b;
} step_t;

static inline step_t decode(const uint8_t *bytes)
{
    return (step_t){
        .call = (call_t)((bytes[0] & 63) % CALL_COUNT),
        .slot = (unsigned)(bytes[0] >> 6) << 8 | bytes[1],
        .a = bytes[2],
        .b = bytes[3],
    };
}

/* One of 64 places where an allocator may change its mind: quarters between two powers of two. */
static inline size_t decode_border(unsigned index)
{
    const size_t power = (size_t)16 << (index / 4);
    return power + power / 4 * (index % 4);
}

static inline size_t decode_size(uint8_t a, uint8_t b)
{
    const size_t kind = a >> 4;
    const size_t number = (size_t)(a & 15) << 8 | b; /* 0 to 4095 */
    const size_t border = (size_t)(a & 15) << 2 | b >> 6;
    const size_t near = b & 63;
    size_t size;
    switch (kind) {
    case 0:
    case 1:
    case 2:
    case 3: return number % 1100;
    case 4:
    case 5: return number * 8 + b % 8; /* to 32 KiB, where slabs end */
    case 6:
    case 7: size = decode_border((unsigned)border) + near; break;
    case 8: size = decode_border((unsigned)border) / 8 * 9 + near; break;
    case 9: size = (border + 1) * 4096 + near; break;
    case 10: return 32768 + number * 1021; /* a prime: to 4 MiB, where pages of its own begin */
    case 11: return ((size_t)4 << 20) - 32768 + number * 16;
    case 12: return ((size_t)4 << 20) + number * 8192; /* to 36 MiB */
    case 13: size = ((size_t)2 << 20) * ((a & 3) + 1u) + near; break;
    default: return b;
    }
    return size > 32 ? size - 32 : 0;
}

/* 1 to 32 KiB, and a few larger ones, to 16 MiB. */
static inline size_t decode_alignment(unsigned number)
{
    return (size_t)1 << (number % 32 < 30 ? number % 16 : number % 25);
}

/* Sizes that nobody has: from half the address space up. */
static inline size_t decode_absurd(uint8_t a, uint8_t b)
{
    switch (a % 4) {
    case 0: return (size_t)PTRDIFF_MAX + 1 + b;
    case 1: return (size_t)PTRDIFF_MAX - b;
    case 2: return SIZE_MAX - b * 16u;
    default: return (size_t)1 << (47 + b % 17);
    }
}

#endif
