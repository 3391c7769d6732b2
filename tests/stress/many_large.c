/* 90,000 live blocks of 140 kB: the kernel's limit on mappings (65,530) must not be ours. */
#include "api/heap.h"
#include "check.h"
#include "stress/resident.h"

enum { COUNT = 90000, SIZE = 140000 };
static unsigned char *blocks[COUNT];

static void allocate(size_t i)
{
    blocks[i] = hidden(malloc(SIZE));
    check(blocks[i] != NULL);
    blocks[i][i % SIZE] = (unsigned char)(i % 251);
}

static void verify(size_t i)
{
    check_eq(blocks[i][i % SIZE], i % 251);
}

test(ninety_thousand_large_blocks_live_and_survive_their_neighbours)
{
    for (size_t i = 0; i < COUNT; i++) allocate(i);
    for (size_t i = 0; i < COUNT; i++) verify(i);
    for (size_t i = 0; i < COUNT; i += 2) free(blocks[i]);
    for (size_t i = 1; i < COUNT; i += 2) verify(i);
    for (size_t i = 0; i < COUNT; i += 2) allocate(i);
    for (size_t i = 0; i < COUNT; i++) verify(i);
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
    (void)malloc_trim(0);
    resident_must_not_exceed("after all were freed", resident_kib(), 64 * 1024);
}

check_main()
