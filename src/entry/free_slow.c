/* Why did a free miss? The one place that sorts it out, question by question; and what lies where a
 * pointer points, for the entry points that only ask.
 *
 *   free_slow            the bin was full, or the pointer is no small block, or the path is closed
 *   ├─ free_watched      closed for upkeep: the hit, and now and then a look; else as below
 *   ├─ free_in_window    the page map may be read: a class, or 0
 *   │  ├─ free_flush         the cache holds the class: its bin grows, or exchanges its magazine
 *   │  ├─ free_small         the thread has no cache, or its cache has not heard of the class
 *   │  └─ free_without_class a large block: free_large ─▶ span cache or page heap; else the gate
 *   ├─ checked_free_hit  the checked modes: the block's record is right, and its bin has room
 *   └─ free_by_gate      gate_look says what lies there, whatever the pointer
 *      ├─ free_known_small   of a slab: free_private, or free_small
 *      ├─ free_large, free_huge, zero_block_free
 *      ├─ free_foreign       of the C library: LD_SAFE, or a library bound to it directly
 *      └─ free_refuse        free already, inside a block, or nobody's: ends the program
 *
 * Sized forms go straight to free_watched where only upkeep watches. Else they check the size, if
 * that is asked for, and go on at free_slow, or at the form of delete that has no size. */
#include "entry/slow.h"

#include <stdlib.h>

#include "check/checked.h"
#include "check/guard.h"
#include "entry/init.h"
#include "entry/libc_heap.h"
#include "entry/operators.h"
#include "report/profile.h"
#include "observe/stack_text.h"
#include "base/bits.h"
#include "base/count.h"
#include "cache/thread_cache.h"
#include "upkeep/upkeep.h"
#include "os/fatal.h"
#include "observe/samples.h"
#include "os/os.h"
#include "options/options.h"
#include "base/route.h"
#include "slab/central_list.h"
#include "check/gate.h"
#include "slab/private_heap.h"
#include "slab/size_class.h"
#include "check/zero_blocks.h"
#include "large/huge.h"
#include "large/huge_history.h"
#include "large/large.h"

/* ---- release ---- */

/* The bin is full, or has the block near its top already. */
static void free_flush(thread_cache_t *cache, unsigned class, void *ptr)
{
    if (UNLIKELY(bin_has_at_an_end(&cache->bins[class], ptr)))
        fatal_already_free("free", ptr, size_classes[class].size);
    thread_cache_flush(cache, class, ptr);
    upkeep_miss(cache);
}

static void free_small(void *ptr, unsigned class)
{
    thread_cache_t *cache = thread_cache_provide();
    if (!thread_cache_comes_to_hold(cache, class)) {
        route_note(ROUTE_free_uncached);
        central_list_give(class, &ptr, 1);
        upkeep(os_clock_ms());
        return;
    }
    if (bin_push(&cache->bins[class], ptr)) { /* the cache was created just now */
        route_note(ROUTE_free_bin);
        return;
    }
    free_flush(cache, class, ptr);
}

/* Of a private heap. Such a block has no record: the bitmap of its slab is exact. */
static void free_private(void *ptr, const gate_t *gate)
{
    route_note(ROUTE_free_uncached);
    guard_fill_freed(ptr, gate->size);
    private_heap_give((slab_t *)gate->span, ptr);
    upkeep_call();
}

/* A block that the gate has let pass. */
static void free_known_small(void *ptr, const gate_t *gate)
{
    if (gate->span->heap != 0) {
        free_private(ptr, gate);
        return;
    }
    if (options.junk || frees_are_checked())
        guard_take_back(ptr, gate->class);
    if (options.junk && samples_exist()) /* a sample may be a block like others (slow.c) */
        samples_remove(ptr, os_clock_ms());
    free_small(ptr, gate->class);
}

/* `is_outgrown`: realloc has copied the block to a longer one. */
static void free_large(span_t *span, void *ptr, bool is_outgrown)
{
    route_note(ROUTE_free_large);
    PROBE(large_free, ptr, span_size(span));
    guard_fill_freed(ptr, span_size(span));
    uint64_t now_ms = os_clock_ms();
    if (UNLIKELY(span->sample != SAMPLE_NONE)) {
        span->sample = SAMPLE_NONE;
        samples_remove(ptr, now_ms);
        profile_keep_up(now_ms);
    }
    if (UNLIKELY(span->heap != 0))
        private_heap_forget(span);
    if (UNLIKELY(span->unit_count > SPAN_LENGTH_COUNT))
        huge_history_note(ptr, span_size(span));
    if (is_outgrown)
        span_cache_bypass(span, now_ms);
    else
        large_free(span, now_ms);
    upkeep(now_ms);
}

static void free_huge(void *ptr, const gate_t *gate)
{
    uint64_t now_ms = os_clock_ms();
    if (samples_exist()) {
        samples_remove(ptr, now_ms);
        profile_keep_up(now_ms);
    }
    if (!huge_free(ptr, now_ms)) /* another thread has freed it just now */
        fatal_already_free("free", ptr, gate->size);
    huge_history_note(ptr, gate->size);
    route_note(ROUTE_free_huge);
    PROBE(huge_free, ptr, gate->size);
    upkeep(now_ms);
}

static bool is_in_use(const gate_t *gate)
{
    return gate->verdict == VERDICT_SMALL || gate->verdict == VERDICT_LARGE ||
           gate->verdict == VERDICT_HUGE;
}

/* Ends the program, with what is known of the block. */
static _Noreturn COLD void free_refuse(const gate_t *gate, const void *ptr, const char *verb)
{
    stack_text_say_history(ptr);
    gate_refuse(gate, ptr, verb);
}

static void free_foreign(void *ptr, const gate_t *gate)
{
    if (!libc_heap_owns(ptr))
        free_refuse(gate, ptr, "free");
    route_note(ROUTE_free_libc);
    libc_heap_free(ptr);
}

/* Frees any pointer; the gate says what it is. `caller`: the return address of the entry point. */
static NOINLINE void free_by_gate(void *ptr, const void *caller)
{
    (void)ensure_init();
    gate_t gate = gate_look(ptr);
    if (UNLIKELY(samples_exist()) && is_in_use(&gate))
        profile_note_free(ptr, caller);
    switch (gate.verdict) {
    case VERDICT_SMALL:
        free_known_small(ptr, &gate);
        return;
    case VERDICT_LARGE:
        free_large(gate.span, ptr, false);
        return;
    case VERDICT_HUGE:
        free_huge(ptr, &gate);
        return;
    case VERDICT_EMPTY:
        if (zero_block_free(ptr))
            return;
        gate.verdict = VERDICT_FREED; /* by another thread, just now */
        break;
    case VERDICT_FOREIGN:
        free_foreign(ptr, &gate);
        return;
    default:
        break;
    }
    free_refuse(&gate, ptr, "free");
}

/* A large block goes by the short way, if all is well with it. */
static void free_without_class(void *ptr, const void *caller)
{
    span_t *span = span_of(ptr);
    if (LIKELY(span != NULL && span_state(span) == SPAN_LARGE && ptr == span_start(span)))
        free_large(span, ptr, false);
    else
        free_by_gate(ptr, caller);
}

/* In a mapped unit and aligned, so the map may be read. */
static void free_in_window(void *ptr, const void *caller)
{
    unsigned class = class_of_unit(unit_of(ptr));
    thread_cache_t *cache = thread_cache_own;
    if (LIKELY(thread_cache_holds(cache, class)))
        free_flush(cache, class, ptr);
    else if (class == 0)
        free_without_class(ptr, caller);
    else if (!options.junk)
        free_small(ptr, class);
    else
        free_by_gate(ptr, caller);
}

/* The hit path is closed so that upkeep sees calls that would have hit. */
static void free_watched(void *ptr, const void *caller)
{
    if (!thread_bin_push(thread_bin(window_class_map[unit_of(ptr)]), ptr)) {
        free_in_window(ptr, caller);
        return;
    }
    route_note(ROUTE_free_bin);
    upkeep_watched_call();
}

NOINLINE void free_slow(void *ptr)
{
    const void *caller = __builtin_return_address(0); /* the hit paths jump here */
    if (UNLIKELY(granule_at(ptr) < count_read(&window_watched_granules))) {
        free_watched(ptr, caller);
        return;
    }
    if (LIKELY(granule_at(ptr) < window_open_granules)) {
        free_in_window(ptr, caller);
        return;
    }
    if (ptr == NULL)
        return;
    if (frees_are_checked() && checked_free_hit(ptr))
        upkeep_watched_call(); /* such a hit is as long as one that is watched */
    else
        free_by_gate(ptr, caller);
}

/* Ends the program unless `size` is what was asked for, as far as that is known. */
static void check_size(const void *ptr, size_t size)
{
    size_t length = block_size(ptr, "free");
    bool is_known = frees_are_checked() && window_has(ptr) && class_of_unit(unit_of(ptr)) != 0;
    if (is_known)
        length = record_size(block_record(ptr));
    if (size <= length && (!is_known || larger_of(size, 1) == length))
        return;
    stack_text_say_history(ptr);
    fatal_wrong_size("free", ptr, size, length);
}

/* The hit path is closed for upkeep alone: nobody wants to know the size, or has another delete. */
static bool is_only_watched(const void *ptr)
{
    return granule_at(ptr) < count_read(&window_watched_granules) && !options.size_check &&
           !operators_are_replaced;
}

void free_sized_slow(void *ptr, size_t size)
{
    if (is_only_watched(ptr)) {
        free_watched(ptr, __builtin_return_address(0));
        return;
    }
    (void)ensure_init();
    if (ptr != NULL && options.size_check)
        check_size(ptr, size);
    free_slow(ptr);
}

/* Where operators are replaced, what lies at `ptr` may be known to them alone. */
void delete_sized_slow(void *ptr, size_t size, size_t alignment, delete_t *base)
{
    if (is_only_watched(ptr)) {
        free_watched(ptr, __builtin_return_address(0));
        return;
    }
    (void)ensure_init();
    if (ptr != NULL && options.size_check && !operators_are_replaced)
        check_size(ptr, size);
    base(ptr, alignment);
}

bool free_outgrown(void *ptr)
{
    gate_t gate = {.verdict = VERDICT_SMALL};
    if (window_has(ptr) && class_of_unit(unit_of(ptr)) == 0)
        gate = gate_look(ptr);
    if (gate.verdict != VERDICT_LARGE)
        return false;
    if (UNLIKELY(samples_exist()))
        profile_note_free(ptr, NULL);
    free_large(gate.span, ptr, true);
    return true;
}

/* ---- what lies there ---- */

size_t block_size(const void *ptr, const char *verb)
{
    (void)ensure_init();
    gate_t gate = gate_look(ptr);
    switch (gate.verdict) {
    case VERDICT_SMALL:
        if (thread_cache_has_on_top(ptr, gate.class)) {
            gate.verdict = VERDICT_FREED;
            break;
        }
        /* The bytes behind the request are guarded. */
        if (frees_are_checked() && options.junk && gate.span->heap == 0)
            return record_size(block_record(ptr));
        return gate.size;
    case VERDICT_LARGE:
    case VERDICT_HUGE:
    case VERDICT_EMPTY:
        return gate.size;
    case VERDICT_FOREIGN:
        if (libc_heap_owns(ptr))
            return SIZE_MAX;
        break;
    default:
        break;
    }
    free_refuse(&gate, ptr, verb);
}
