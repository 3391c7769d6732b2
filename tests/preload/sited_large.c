/* Large blocks from four places, for the tests of site rules. Prints a word for each: what became
   of a freed block of the first at once, of the second after many delays, whether the third has
   huge pages, and bytes that the fourth, a realloc, has got for a block that grew to 10,000. The
   places are the return addresses of the calls in the functions below. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>
#include <time.h>

#include "huge_wish.h"

#define NOINLINE __attribute__((noinline))

enum { LENGTH = 4 << 20 };

static void *volatile kept;

NOINLINE char *by_malloc(void)
{
    kept = malloc(LENGTH);
    return kept;
}

NOINLINE char *by_calloc(void)
{
    kept = calloc(LENGTH, 1);
    return kept;
}

NOINLINE char *by_another(void)
{
    kept = malloc(LENGTH);
    return kept;
}

NOINLINE char *by_realloc(char *block, size_t size)
{
    kept = realloc(block, size);
    return kept;
}

static void rest(unsigned ms)
{
    struct timespec time = {.tv_nsec = (long)ms * 1000000};
    (void)nanosleep(&time, NULL);
}

/* Is the middle of a freed block in memory? */
static bool is_resident(char *block)
{
    unsigned char state = 0;
    char *page = (char *)(((uintptr_t)block + LENGTH / 2) & ~(uintptr_t)4095);
    return mincore(page, 4096, &state) == 0 && (state & 1) != 0;
}

int main(void)
{
    char *block = by_malloc();
    memset(block, 1, LENGTH);
    free(block);
    (void)puts(is_resident(block) ? "held" : "returned");

    block = by_calloc();
    for (unsigned at = 0; at < LENGTH; at++) check(block[at] == 0);
    memset(block, 1, LENGTH);
    free(block);
    for (unsigned turn = 0; turn < 40; turn++) { /* calls that look what is due */
        rest(20);
        void *other = calloc(1, 100 << 10);
        check(other != NULL);
        free(other);
    }
    (void)puts(is_resident(block) ? "held" : "returned");

    block = by_another();
    memset(block, 1, LENGTH);
    (void)puts(asks_for_huge_pages(block + LENGTH / 2) ? "huge" : "small");
    free(block);

    block = by_realloc(malloc(5000), 10000);
    check(block != NULL);
    (void)printf("%zu\n", malloc_usable_size(block));
    static const size_t wrapping[] = {SIZE_MAX / 3 * 2, SIZE_MAX / 7 * 4, SIZE_MAX / 5 * 4};
    for (unsigned kind = 0; kind < 3; kind++) /* with room for a half, three quarters, a quarter */
        for (size_t more = 0; more < 64 << 10; more += 256) {
            errno = 0;
            check(by_realloc(block, wrapping[kind] + more) == NULL && errno == ENOMEM);
        }
    free(block);
    return 0;
}
