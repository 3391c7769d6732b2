/* Huge blocks whose mappings lie where the heap grows to: all other addresses are taken when they
   are allocated, then the heap steps over them. They must stay what they are. */
#include "api/heap.h"
#include "check.h"
#include "weak.h"

#include <sys/mman.h>

enum { HUGE_BLOCKS = 16, LARGE_BLOCKS = 300, RESERVATIONS = 4096 };

static const size_t mib = (size_t)1 << 20;
static const size_t gap_bytes = (size_t)1 << 30;
static const size_t huge_bytes = (size_t)40 << 20; /* above HUGE_MIN */

static struct { void *start; size_t size; } reservations[RESERVATIONS];
static size_t reservation_count;

/* Where the mapping ends that `ptr` lies in. */
static char *end_of_mapping(const void *ptr)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    uintptr_t start = 0;
    uintptr_t end = 0;
    check(file != NULL);
    while (fgets(line, sizeof line, file) != NULL && sscanf(line, "%lx-%lx", &start, &end) == 2)
        if (start <= (uintptr_t)ptr && (uintptr_t)ptr < end) break;
    (void)fclose(file);
    check(start <= (uintptr_t)ptr && (uintptr_t)ptr < end);
    return (char *)end;
}

static void *reserve(void *hint, size_t size, int flags)
{
    void *start = mmap(hint, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags,
                       -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

/* Takes every gap in the address space that a huge block would fit in. */
static void reserve_everything(void)
{
    for (size_t size = (size_t)1 << 46; size >= 4 * mib; size /= 2) {
        void *start;
        while (reservation_count < RESERVATIONS && (start = reserve(NULL, size, 0)) != NULL) {
            reservations[reservation_count].start = start;
            reservations[reservation_count++].size = size;
        }
    }
    check(reservation_count < RESERVATIONS);
}

static void check_is_a_block(void *block, size_t size)
{
    check(malloc_usable_size(block) >= size);
    if (hakmem_owns != NULL) check(hakmem_owns(block));
}

int main(void)
{
    static void *blocks[HUGE_BLOCKS];
    free(hidden(malloc(5 * mib))); /* its descriptor, and those of printf */
    (void)printf("the heap stands at %p\n", hidden(malloc(100)));
    char *gap = end_of_mapping(hidden(malloc(3 * mib)));
    if (reserve(gap, gap_bytes, MAP_FIXED_NOREPLACE) != gap)
        check_skip("something real follows the heap");
    reserve_everything();
    check_eq(munmap(gap, gap_bytes), 0);
    for (unsigned index = 0; index < HUGE_BLOCKS; index++) {
        blocks[index] = hidden(malloc(huge_bytes));
        check(blocks[index] != NULL);
        check((char *)blocks[index] >= gap && (char *)blocks[index] < gap + gap_bytes);
        memset(blocks[index], (int)index, 4096);
    }
    while (reservation_count-- > 0)
        check_eq(munmap(reservations[reservation_count].start,
                        reservations[reservation_count].size), 0);
    bool has_passed = !heap_is_hakmem();
    for (unsigned index = 0; index < LARGE_BLOCKS; index++)
        has_passed |= (char *)hidden(malloc(3 * mib)) >= gap + gap_bytes;
    check(has_passed);
    for (unsigned index = 0; index < HUGE_BLOCKS; index++) {
        check_is_a_block(blocks[index], huge_bytes);
        check_eq(*(unsigned char *)blocks[index], index);
        if (index % 2 == 0) {
            blocks[index] = hidden(realloc(blocks[index], huge_bytes + (1 + index % 4) * mib));
            check_is_a_block(blocks[index], huge_bytes + mib);
            check_eq(*(unsigned char *)blocks[index], index);
        }
        free(blocks[index]);
    }
    return 0;
}
