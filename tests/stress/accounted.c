/* What the statistics say agrees with the kernel: addresses to the byte, resident memory within
   what they cannot know. One thread; main starts the program again without ours, and without huge
   pages, which hold memory where nobody has touched any. */
#include "api/heap.h"
#include "check.h"
#include "preload/weak.h"
#include "restart.h"
#include "stress/resident.h"

enum { MOST = 60000, KEPT_EVERY = 20, WAIT_S = 20 };
static char *blocks[MOST];

/* Beside the heap: the stack, and pages of the library's and the C library's data. */
enum { ELSEWHERE_KIB = 1024 };

static hakmem_statistics_t now(void)
{
    hakmem_statistics_t statistics;
    check(hakmem_get_statistics(&statistics));
    return statistics;
}

static void fill(size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (blocks[i] != NULL) continue;
        check((blocks[i] = hidden(malloc(size))) != NULL);
        memset(blocks[i], 1, malloc_usable_size(blocks[i]));
    }
}

static void drain(size_t kept_every)
{
    for (size_t i = 0; i < MOST; i++) {
        if (kept_every != 0 && i % kept_every == 0) continue;
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

/* ---- addresses ---- */

static size_t address_bytes(void)
{
    char text[256];
    check(resident_read("/proc/self/statm", text, sizeof text) > 0);
    return strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t told_address_bytes(void)
{
    const hakmem_statistics_t is = now();
    return is.mapped + is.metadata_mapped;
}

test(the_kernel_counts_as_many_addresses)
{
    static const size_t sizes[] = {16, 1000, 20000, 100000, 1 << 20, 8 << 20, 33 << 20, 70 << 20};
    const size_t others = address_bytes() - told_address_bytes();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t count = sizes[i] < 100000 ? 10000 : 2;
        for (size_t block = 0; block < count; block++)
            check((blocks[block] = hidden(malloc(sizes[i]))) != NULL);
        check_eq(address_bytes(), told_address_bytes() + others);
        blocks[0] = hidden(realloc(blocks[0], sizes[i] * 3));
        check_eq(address_bytes(), told_address_bytes() + others);
        drain(0);
        check_eq(address_bytes(), told_address_bytes() + others);
        if (i % 2 == 0) (void)hakmem_purge();
        check_eq(address_bytes(), told_address_bytes() + others);
    }
}

/* ---- resident memory ---- */

static struct start {
    size_t kernel_kib;
    size_t metadata_kib;
    size_t untouched_kib; /* taken as touched, and perhaps is not */
} start;

static void begin(void)
{
    memset(blocks, 0, sizeof blocks); /* its own pages are resident before we count */
    (void)hakmem_purge();
    start.kernel_kib = resident_kib();
    const hakmem_statistics_t is = now();
    start.metadata_kib = is.metadata / 1024;
    start.untouched_kib = (is.resident - is.metadata) / 1024;
}

/* After everything that the program has was written: what it does not have may be untouched. */
static void note_peak(void)
{
    const hakmem_statistics_t is = now();
    start.untouched_kib +=
        (is.cached + is.free_in_slabs + is.slab_ends + is.free_pages) / 1024;
}

static size_t told_kib(void)
{
    return now().resident / 1024 - start.metadata_kib;
}

/* The statistics tell no less than the kernel counts, and no more but for what was taken as touched
   at the start and at the peak. */
static void check_agrees(const char *when)
{
    const size_t told = told_kib();
    const size_t counted = resident_kib() - start.kernel_kib;
    (void)printf("%s: counted %zu KiB, told %zu KiB, of which %zu may be untouched\n", when,
                 counted, told, start.untouched_kib);
    check(counted <= told + ELSEWHERE_KIB);
    check(told <= counted + start.untouched_kib + ELSEWHERE_KIB);
}

static void live(size_t size, size_t count)
{
    begin();
    fill(size, count);
    note_peak();
    check(start.untouched_kib < size * count / 1024 / 10); /* or the test would say little */
    check_agrees("all touched");
    drain(3);
    check_agrees("two thirds freed");
    hakmem_idle();
    (void)hakmem_purge();
    check_agrees("purged");
    /* A free unit of 8 KiB counts whole, though some of its pages went while it was in a slab. */
    const size_t pages_kib = now().purged_in_slabs / 1024;
    drain(0);
    start.untouched_kib += pages_kib;
    check_agrees("all freed");
    start.untouched_kib -= pages_kib;
    (void)hakmem_purge();
    check_agrees("purged again");
    check(told_kib() <= size * count / 1024 / 10 + ELSEWHERE_KIB);
}

test(small_blocks_hold_what_is_said)
{
    live(48, MOST);
    live(1000, MOST);
    live(30000, 2000);
}

test(large_and_huge_blocks_hold_what_is_said)
{
    live(100000, 600);
    live((size_t)5 << 20, 10);
    live((size_t)40 << 20, 2);
}

/* Of blocks that nobody writes nothing is resident but what describes them. */
test(our_own_structures_hold_what_is_said)
{
    enum { TOLERANCE_KIB = 256 };
    begin();
    for (size_t i = 0; i < MOST; i++) check((blocks[i] = hidden(malloc(32768))) != NULL);
    const size_t told = now().metadata / 1024 - start.metadata_kib;
    const size_t counted = resident_kib() - start.kernel_kib;
    (void)printf("own structures: counted %zu KiB, told %zu KiB\n", counted, told);
    check(told > 8 * TOLERANCE_KIB);
    check(counted <= told + TOLERANCE_KIB && told <= counted + TOLERANCE_KIB);
    drain(0);
}

/* Pages of half-empty slabs go when nobody wanted them for a while: at calls of the program, here
   of large blocks. */
test(purged_pages_of_slabs_are_gone)
{
    if (sysconf(_SC_PAGESIZE) != 4096) return; /* in each longer page a block is in use */
    begin();
    fill(1000, MOST);
    note_peak();
    drain(KEPT_EVERY);
    hakmem_idle();
    const size_t kept = now().free_in_slabs;
    const size_t of_others = now().purged_in_slabs; /* the C library may have a block somewhere */
    const uint64_t before = now().purged - of_others;
    size_t last = 0;
    unsigned same = 0; /* each call gives back a little: until nothing more goes */
    for (unsigned look = 0; look < 100 * WAIT_S && (last < kept / 2 || same < 20); look++) {
        (void)usleep(10000);
        free(hidden(malloc(100000)));
        same = now().purged_in_slabs == last ? same + 1 : 0;
        last = now().purged_in_slabs;
    }
    check(now().purged_in_slabs >= kept / 2 && now().purged >= before + now().purged_in_slabs);
    check_agrees("half-empty slabs");
    const size_t purged = now().purged_in_slabs;
    fill(1000, MOST / 2); /* takes them anew */
    check(now().purged_in_slabs < purged);
    check_agrees("filled again");
    drain(0);
    (void)hakmem_purge();
    check_eq(now().purged_in_slabs, of_others);
    check_agrees("all freed");
}

int main(int argc, char **argv)
{
    if (!heap_is_hakmem()) check_skip("needs HAKMEM");
    if (!restart_with(argv, "HAKMEM_THP_MIN_HEAP_MB", "1048576"))
        check_skip("cannot start itself again");
    (void)setvbuf(stdout, NULL, _IONBF, 0);
    return check_run(argc, argv);
}
