/* The figures of hakmem_get_statistics add up to the byte, and mallinfo2 says the same, after every
   kind of work; `used` is what the program has, which it knows itself. No other thread is at work
   when they are asked for, ours neither: main starts the program again without it. */
#include "adds_up.h"
#include "check.h"
#include "heap.h"
#include "preload/weak.h"

#include <pthread.h>

enum { SLOTS = 2000 };
static void *slots[SLOTS];
static size_t live_bytes; /* of all slots */
static size_t used_by_others; /* the C library, for itself */

static hakmem_statistics_t now(void)
{
    hakmem_statistics_t statistics;
    check(hakmem_get_statistics(&statistics));
    return statistics;
}

static size_t option(const char *name)
{
    int64_t value;
    check_eq(hakmem_option_get(name, &value), 0);
    return (size_t)value;
}

/* ---- the law ---- */

#ifdef __GLIBC__
static void check_mallinfo_says_the_same(const hakmem_statistics_t *is)
{
    const struct mallinfo2 info = mallinfo2();
    check_eq(info.arena + info.hblkhd, is->mapped);
    check_eq(info.uordblks + info.hblkhd, is->used);
    check_eq(info.uordblks + info.fordblks, info.arena);
    check_eq(info.keepcost, is->free_pages + is->huge_cached);
    check_eq(info.fordblks, is->mapped - is->used);
}
#else /* it has no mallinfo */
static void check_mallinfo_says_the_same(const hakmem_statistics_t *is)
{
    (void)is;
}
#endif

static void check_law(void)
{
    const hakmem_statistics_t is = now();
    check_adds_up(&is);
    /* Where writes behind a block are found, its usable size is what was asked for. */
    if (live_bytes == 0 || !option("junk")) check_eq(is.used, used_by_others + live_bytes);
    check(is.used >= used_by_others + live_bytes);
    check_mallinfo_says_the_same(&is);
}

/* ---- blocks in slots ---- */

/* A block of no bytes has none, where frees are checked. */
static size_t length_of(void *block)
{
    return block == NULL ? 0 : malloc_usable_size(block);
}

static void put(size_t slot, void *block)
{
    check(block != NULL);
    slots[slot] = block;
    live_bytes += length_of(block);
}

static void take(size_t slot)
{
    live_bytes -= length_of(slots[slot]);
    free(slots[slot]);
    slots[slot] = NULL;
}

static void resize(size_t slot, size_t size)
{
    const size_t before = length_of(slots[slot]);
    void *block = hidden(realloc(slots[slot], size));
    check(block != NULL);
    slots[slot] = block;
    live_bytes += length_of(block) - before;
}

static void fill_all(size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++) put(i, hidden(malloc(size)));
}

static void drain_all(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i] != NULL) take(i);
}

/* ---- threads; one at a time ---- */

static void run_in_thread(void *(*work)(void *argument))
{
    pthread_t thread;
    check_eq(pthread_create(&thread, NULL, work, NULL), 0);
    check_eq(pthread_join(thread, NULL), 0);
}

static void *do_nothing(void *unused)
{
    return unused;
}

static void *fill_small(void *unused)
{
    fill_all(100, SLOTS);
    return unused;
}

static void *drain_and_look(void *unused)
{
    drain_all();
    check_law();
    return unused;
}

/* What the C library keeps for streams and with the stack of a thread is there from here on. */
static void begin(void)
{
    static bool has_begun;
    if (!has_begun) run_in_thread(do_nothing);
    has_begun = true;
    drain_all();
    used_by_others = now().used;
    check_law();
}

/* ---- tests ---- */

static const size_t sizes[] = {1,     16,     100,     1000,    1024,     1025,
                               5000,  20480,  32768,   32769,   100000,   1 << 20,
                               5 << 20, 31 << 20, 32 << 20, 40 << 20};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* First: our own structures never shrink. */
test(more_blocks_take_more_of_our_own_structures)
{
    begin();
    const hakmem_statistics_t before = now();
    for (size_t i = 0; i < SLOTS; i++) put(i, hidden(malloc(32768)));
    check(now().metadata > before.metadata);
    drain_all();
}

test(it_adds_up_with_blocks_of_every_size)
{
    begin();
    for (size_t i = 0; i < SIZES; i++) {
        const size_t count = sizes[i] < 100000 ? 700 : 3;
        fill_all(sizes[i], count);
        check_law();
        for (size_t slot = 0; slot < count; slot += 2) take(slot);
        check_law();
        drain_all();
        check_law();
    }
}

test(it_adds_up_after_idle_purge_and_trim)
{
    begin();
    for (size_t i = 0; i < SIZES; i++) {
        fill_all(sizes[i], sizes[i] < 100000 ? 700 : 3);
        for (size_t slot = 1; slot < SLOTS; slot++)
            if (slots[slot] != NULL) take(slot);
        if (i % 3 == 0) hakmem_idle();
        if (i % 3 == 1) (void)hakmem_purge();
        if (i % 3 == 2) (void)malloc_trim(0);
        check_law();
        drain_all();
    }
    (void)hakmem_purge();
    check_law();
    check(now().cached == 0 && now().huge_cached == 0 && now().cached_large == 0);
}

test(it_adds_up_after_every_step_of_random_work)
{
    begin();
    uint64_t state = check_seed(20261122);
    for (unsigned step = 0; step < 4000; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const size_t slot = state >> 33 & 127;
        const size_t size = ((size_t)1 << (state >> 41) % 26) + (state >> 20 & 1023);
        const unsigned call = (unsigned)(state >> 60);
        if (slots[slot] != NULL && call < 6) take(slot);
        else if (slots[slot] != NULL) resize(slot, size);
        else if (call < 10) put(slot, hidden(malloc(size)));
        else if (call < 12) put(slot, hidden(calloc(1, size)));
        else put(slot, hidden(memalign((size_t)64 << call % 8, size)));
        if (call == 15 && slot < 8) (void)hakmem_purge();
        check_law();
    }
    drain_all();
    check_law();
}

test(what_threads_pass_to_each_other_is_counted_once)
{
    begin();
    run_in_thread(fill_small); /* its cache is an orphan now */
    check_law();
    drain_all();
    check_law();
    fill_all(100, SLOTS);
    run_in_thread(drain_and_look);
    check_law();
    run_in_thread(fill_small);
    run_in_thread(drain_and_look);
    hakmem_idle();
    check_law();
}

/* ---- who keeps what ---- */

test(a_cache_of_a_thread_is_told_from_a_depot)
{
    begin();
    (void)hakmem_purge();
    const hakmem_statistics_t before = now();
    check_eq(before.cached, 0);
    fill_all(100, 10);
    drain_all();
    const hakmem_statistics_t few = now();
    const bool is_kept = !option("junk");
    if (is_kept) check(few.cached_threads >= 10 * (size_t)100);
    check_eq(few.cached_depots, 0);
    fill_all(100, SLOTS);
    drain_all();
    if (is_kept) check(now().cached_depots >= 124 * (size_t)100);
    hakmem_idle();
    check_eq(now().cached_threads, 0);
}

test(a_kept_large_block_is_told_from_free_pages)
{
    begin();
    (void)hakmem_purge();
    check_eq(now().free_pages, 0);
    fill_all(100000, 1);
    const size_t length = live_bytes;
    drain_all();
    check_eq(now().cached_large, length);
    check_eq(now().free_pages, length);
    fill_all(8 << 20, 1); /* too long to be kept whole */
    drain_all();
    check(now().free_pages >= now().cached_large + (8 << 20));
    const hakmem_statistics_t dirty = now();
    const size_t purged = hakmem_purge();
    check_eq(now().free_pages, 0);
    check(purged >= dirty.free_pages);
    check(now().purged >= dirty.purged + dirty.free_pages);
    check(now().clean_pages >= dirty.clean_pages + dirty.free_pages);
}

test(a_kept_huge_block_is_told_from_one_in_use)
{
    begin();
    (void)hakmem_purge();
    fill_all((size_t)33 << 20, 1);
    const hakmem_statistics_t used = now();
    check_eq(used.huge_used, live_bytes);
    drain_all();
    const hakmem_statistics_t kept = now();
    check_eq(kept.huge_used, 0);
    check_eq(kept.huge_cached, option("bigcache") ? used.huge_used : 0);
    (void)hakmem_purge();
    check_eq(now().huge_cached, 0);
}

/* ---- the same in words ---- */

#ifdef __GLIBC__
static void check_says(const char *text, const char *format, size_t value)
{
    char line[100];
    (void)snprintf(line, sizeof line, format, value);
    if (strstr(text, line) == NULL) (void)fprintf(stderr, "no %sin:\n%s", line, text);
    check(strstr(text, line) != NULL);
}

static void work_a_little(void)
{
    begin();
    fill_all(1000, SLOTS);
    for (size_t i = 0; i < SLOTS; i += 3) take(i);
    put(0, hidden(malloc((size_t)50 << 20)));
    free(hidden(malloc(100000)));
}

test(malloc_info_has_the_same_figures)
{
    static char text[8192];
    work_a_little();
    FILE *stream = fmemopen(text, sizeof text, "w");
    check(stream != NULL);
    const hakmem_statistics_t is = now();
    check_eq(malloc_info(0, stream), 0);
    check_eq(fclose(stream), 0);
    check_says(text, "<hakmem type=\"mapped\" size=\"%zu\"/>\n", is.mapped);
    check_says(text, "<hakmem type=\"used\" size=\"%zu\"/>\n", is.used);
    check_says(text, "<hakmem type=\"cached_threads\" size=\"%zu\"/>\n", is.cached_threads);
    check_says(text, "<hakmem type=\"cached_depots\" size=\"%zu\"/>\n", is.cached_depots);
    check_says(text, "<hakmem type=\"free_in_slabs\" size=\"%zu\"/>\n", is.free_in_slabs);
    check_says(text, "<hakmem type=\"clean_pages\" size=\"%zu\"/>\n", is.clean_pages);
    check_says(text, "<hakmem type=\"metadata\" size=\"%zu\"/>\n", is.metadata);
    check_says(text, "<hakmem type=\"resident\" size=\"%zu\"/>\n", is.resident);
    check_says(text, "<total type=\"mmap\" count=\"1\" size=\"%zu\"/>\n", is.huge_used);
    check_says(text, "<system type=\"current\" size=\"%zu\"/>\n", is.mapped - is.huge_used);
    drain_all();
}

test(malloc_stats_has_the_same_figures)
{
    static char text[8192];
    int ends[2];
    work_a_little();
    const hakmem_statistics_t is = now();
    check_eq(pipe(ends), 0);
    const int saved = dup(STDERR_FILENO);
    check(saved >= 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    malloc_stats();
    check(dup2(saved, STDERR_FILENO) == STDERR_FILENO);
    check(read(ends[0], text, sizeof text - 1) > 0); /* all of it: a pipe holds more */
    check_says(text, "system bytes     = %10zu\n", is.mapped);
    check_says(text, "max mmap bytes   = %10zu\n", is.huge_used);
    check_says(text, "mapped                = %10zu\n", is.mapped);
    check_says(text, "  in use              = %10zu\n", is.used);
    check_says(text, "    by threads        = %10zu\n", is.cached_threads);
    check_says(text, "    in depots         = %10zu\n", is.cached_depots);
    check_says(text, "    kept large blocks = %10zu\n", is.cached_large);
    check_says(text, "  free pages, dirty   = %10zu\n", is.free_pages);
    check_says(text, "  free pages, clean   = %10zu\n", is.clean_pages);
    check_says(text, "own structures        = %10zu\n", is.metadata);
    check_says(text, "resident, at most     = %10zu\n", is.resident);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(saved);
    drain_all();
}

#endif

/* ---- while others are at work ---- */

static bool is_over;

test(what_goes_back_is_counted_with_its_cost)
{
    begin();
    const hakmem_statistics_t before = now();
    void *block = hidden(malloc(1 << 20));
    memset(block, 1, 1 << 20);
    free(block);
    (void)hakmem_purge();
    const hakmem_statistics_t after = now();
    check(after.purge_calls > before.purge_calls && after.purge_us >= before.purge_us);
    check(after.purge_bytes >= before.purge_bytes + (1 << 20));
    check(after.system_calls - before.system_calls >= after.purge_calls - before.purge_calls);
}

static void *churn(void *unused)
{
    void *blocks[50] = {NULL};
    for (size_t i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++) {
        free(blocks[i % 50]);
        blocks[i % 50] = hidden(malloc(sizes[i % 11]));
    }
    for (size_t i = 0; i < 50; i++) free(blocks[i]);
    return unused;
}

static void check_sane(size_t most)
{
    const hakmem_statistics_t is = now();
    const size_t parts[] = {is.mapped,      is.used,          is.cached,       is.free_in_slabs,
                            is.free_pages,  is.clean_pages,   is.slab_ends,    is.cached_large,
                            is.huge_cached, is.purged_in_slabs, is.metadata, is.resident};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) check(parts[i] <= most);
    check(is.used <= is.mapped);
}

test(no_figure_is_absurd_while_other_threads_work)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    begin();
    const size_t most = 4 * now().mapped + ((size_t)1 << 30);
    for (size_t i = 0; i < THREADS; i++)
        check_eq(pthread_create(&threads[i], NULL, churn, NULL), 0);
    for (unsigned look = 0; look < 3000; look++) check_sane(most);
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < THREADS; i++) check_eq(pthread_join(threads[i], NULL), 0);
    const hakmem_statistics_t is = now();
    check_mallinfo_says_the_same(&is);
}

int main(int argc, char **argv)
{
    if (!heap_is_hakmem()) check_skip("needs HAKMEM");
    (void)setvbuf(stdout, NULL, _IONBF, 0);
    return check_run(argc, argv);
}
