/* The calls of the interface, each made again and again, on blocks of every kind; and calls that
   end the process. Included once per program. */
#ifndef HAKMEM_TESTS_EVERY_CALL_H
#define HAKMEM_TESTS_EVERY_CALL_H

#include "check.h"
#include "heap.h"
#include "preload/weak.h"

/* Operators new and delete, as a C++ program calls them. */
void *_Znwm(size_t size) __attribute__((weak));
void *_ZnamSt11align_val_t(size_t size, size_t alignment) __attribute__((weak));
void _ZdlPv(void *ptr) __attribute__((weak));
void _ZdaPvSt11align_val_t(void *ptr, size_t alignment) __attribute__((weak));

enum { SLOTS = 160, ROUNDS = 2 };

static const char *folder; /* where calls may write files */
static void *slots[SLOTS];
static hakmem_heap_t *heap;
static FILE *stream;
static unsigned state;

/* Of every kind: small, large and huge. */
static size_t some_size(unsigned slot)
{
    static const size_t sizes[] = {24, 100, 700, 3000, 9000, 30000, 50000, 300000};
    state = state * 1103515245 + 12345;
    return slot == 0 ? (size_t)9 << 20 : sizes[state >> 16 & 7] + (state >> 8 & 15);
}

typedef void *(*allocate_t)(size_t size);

/* Fills the slots and frees them, in an order that leaves slabs half empty. */
static __attribute__((noinline)) void use(allocate_t allocate, void (*give)(void *ptr))
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned slot = 0; slot < SLOTS; slot++) {
            slots[slot] = hidden(allocate(some_size(slot)));
            check(slots[slot] != NULL);
        }
        for (unsigned step = 0; step < SLOTS; step++) {
            give(slots[step * 37 % SLOTS]);
            slots[step * 37 % SLOTS] = NULL;
        }
    }
}

static void *of_calloc(size_t size) { return calloc(size / 8, 8); }
static void *of_realloc(size_t size) { return realloc(hidden(realloc(NULL, size / 2 + 1)), size); }
static void *of_reallocarray(size_t size) { return reallocarray(NULL, size, 1); }
static void *of_aligned_alloc(size_t size) { return aligned_alloc(64, size); }
static void *of_memalign(size_t size) { return memalign(4096, size); }
static void *of_heap(size_t size) { return hakmem_heap_malloc(heap, size); }
static void *of_heap_calloc(size_t size) { return hakmem_heap_calloc(heap, 1, size); }
static void *of_heap_aligned(size_t size) { return hakmem_heap_aligned_alloc(heap, 256, size); }
static void *of_group(size_t size) { return hakmem_malloc_group(3, size); }
static void *of_group_aligned(size_t size) { return hakmem_aligned_alloc_group(4, 64, size); }
static void *of_new(size_t size) { return _Znwm(size); }
static void *of_new_aligned(size_t size) { return _ZnamSt11align_val_t(size, 128); }
static void *of_posix_memalign(size_t size)
{
    void *block = NULL;
    return posix_memalign(&block, 32, size) == 0 ? block : NULL;
}
static void of_delete_aligned(void *ptr) { _ZdaPvSt11align_val_t(ptr, 128); }
static void with_size(void *ptr) /* through realloc: its size is known then */
{
    void *block = hidden(realloc(ptr, 5000));
    if (free_sized != NULL) free_sized(block, 5000);
    else free(block);
}
static void asking(void *ptr)
{
    check(malloc_usable_size(ptr) != 0 && hakmem_owns(ptr));
    check(hakmem_heap_of(ptr) == NULL);
    free(ptr);
}

static void call_malloc(void) { use(malloc, free); }
static void call_calloc(void) { use(of_calloc, free); }
static void call_realloc(void) { use(of_realloc, free); }
static void call_reallocarray(void) { use(of_reallocarray, free); }
static void call_aligned_alloc(void) { use(of_aligned_alloc, free); }
static void call_memalign(void) { use(of_memalign, free); }
static void call_valloc(void) { use(valloc, free); }
static void call_posix_memalign(void) { use(of_posix_memalign, free); }
static void call_free_sized(void) { use(malloc, with_size); }
static void call_malloc_usable_size(void) { use(malloc, asking); }
static void call_malloc_group(void) { use(of_group, free); }
static void call_aligned_group(void) { use(of_group_aligned, free); }
static void call_new(void) { if (_Znwm != NULL) use(of_new, _ZdlPv); }
static void call_new_aligned(void) { if (_Znwm != NULL) use(of_new_aligned, of_delete_aligned); }
static void call_heap(void)
{
    hakmem_heap_statistics_t of_heap_statistics;
    heap = hakmem_heap_new();
    use(of_heap, free);
    use(of_heap_calloc, free);
    check(of_heap_aligned(100) != NULL && of_heap(60000) != NULL);
    check(hakmem_heap_get_statistics(heap, &of_heap_statistics));
    hakmem_heap_destroy(heap);
}
static void call_get_statistics(void)
{
    hakmem_statistics_t statistics;
    int64_t value;
    check(hakmem_get_statistics(&statistics) && statistics.mapped != 0);
    check(hakmem_option_get("price", &value) == 0 && hakmem_version() != NULL);
}
static void call_malloc_trim(void)
{
    call_malloc();
    (void)malloc_trim(0);
}
static void call_purge(void)
{
    call_malloc();
    (void)hakmem_purge();
}
static void call_idle(void)
{
    call_malloc();
    hakmem_idle();
    (void)hakmem_check();
}
static void call_profile(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s/asked", folder);
    (void)hakmem_profile_start(1000);
    call_malloc();
    (void)hakmem_profile_write(path);
    hakmem_profile_stop();
}
#ifdef __GLIBC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void call_mallinfo(void) { check(mallinfo().arena >= 0 && mallinfo2().arena != 0); }
#pragma GCC diagnostic pop
static void call_pvalloc(void) { use(pvalloc, free); }
static void call_malloc_stats(void) { malloc_stats(); }
static void call_malloc_info(void)
{
    call_malloc();
    check(malloc_info(0, stream) == 0 && malloc_info(0, stderr) == 0);
    check(mallopt(M_MXFAST, 0) == 1);
}
#endif

/* Calls that end the process, and what it says then, if it has to say something. */
static void end_by_exit(void) { exit(0); }
static void end_by_double_free(void)
{
    for (unsigned slot = 0; slot < SLOTS; slot++) slots[slot] = hidden(malloc(48));
    free(slots[SLOTS / 2]);
    free(slots[SLOTS / 2]);
    hakmem_idle();
}
static void end_by_free_inside(void)
{
    free(hidden((char *)malloc(48) + 16));
    hakmem_idle();
}
static void end_by_free_of_stack(void)
{
    char place[64];
    free(hidden(place + 16));
}
static void end_by_exit_after_double_free(void) /* found by the look at exit at the latest */
{
    void *block = hidden(malloc(48));
    free(block);
    free(block);
    exit(0);
}

#endif
