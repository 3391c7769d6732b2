/* Debug mode fills memory: 0xa5 what malloc hands out, 0xdf what was freed; calloc stays zero. */
#include "api/heap.h"
#include "check.h"

static void expect_bytes(const volatile unsigned char *block, size_t size, int value)
{
    for (size_t i = 0; i < size; i++) check_eq(block[i], value);
}

/* In this mode there are 65,536 addresses for blocks of no bytes; later ones have a block of a
   slab, and what lies behind their no bytes is filled too, or free would call it an overflow. */
static void allocate_no_bytes_many_times(void)
{
    enum { MANY = 70000 };
    static void *blocks[MANY];
    for (size_t i = 0; i < MANY; i++) blocks[i] = hidden(calloc(i % 2, (i + 1) % 2));
    for (size_t i = 0; i < MANY; i++) free(blocks[i]);
}

int main(void)
{
    static const size_t sizes[] = {16, 48, 1000, 1024, 5000, 32768};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *block = hidden(malloc(sizes[i]));
        expect_bytes(block, sizes[i], 0xa5);
        memset(block, 1, sizes[i]);
        free(block);
        expect_bytes(hidden(block), sizes[i], 0xdf);
        block = hidden(malloc(sizes[i]));
        expect_bytes(block, sizes[i], 0xa5);
        free(block);
        block = hidden(calloc(1, sizes[i]));
        expect_bytes(block, sizes[i], 0);
        free(block);
    }
    /* Of a large block the ends, or programs that touch little of theirs would need all memory. */
    unsigned char *large = hidden(malloc(200000));
    expect_bytes(large, 4096, 0xa5);
    expect_bytes(large + 200000 - 4096, 4096, 0xa5);
    expect_bytes(large + 100000, 4096, 0);
    free(large);
    allocate_no_bytes_many_times();
    return 0;
}
