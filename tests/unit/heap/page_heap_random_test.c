/* The page heap under random operations, against an array with one entry per unit.
 *
 * After every step the law holds and the naive model agrees: who has which unit, which units may
 * hold something, and in what order free spans age. Also while the kernel refuses. */
#include "base/bitmap.h"
#include "base/bits.h"
#include "heap/page_heap.h"
#include "unit/fresh.h"

enum { MODEL_UNITS = 1 << 16, LIVE = 150, PURGING = 4 };

typedef struct model_unit {
    const span_t *owner;
    bool is_dirty;
} model_unit_t;

static model_unit_t model[MODEL_UNITS];
static span_t *live[LIVE];
static purge_piece_t purging[PURGING];
static bool is_taken[PURGING];
static uint64_t random_state;
static uint64_t now_ms = 1;
static bool is_refusing; /* the kernel, now and then: what is refused is no fault then */

static size_t pick(size_t below)
{
    return next_random(&random_state) % below;
}

static void model_enter(const span_t *span, size_t from)
{
    check(span->first_unit + span->unit_count <= window_unit_count);
    check(window_unit_count <= MODEL_UNITS);
    for (size_t unit = span->first_unit + from; unit < span->first_unit + span->unit_count;
         unit++) {
        check(model[unit].owner == NULL);
        model[unit].owner = span;
    }
}

/* The units from `from` on are free now; what was in them still is. */
static void model_leave(size_t first, size_t end)
{
    for (size_t unit = first; unit < end; unit++)
        model[unit] = (model_unit_t){.owner = NULL, .is_dirty = true};
}

static bool model_is_zero(const span_t *span)
{
    for (size_t unit = span->first_unit; unit < span->first_unit + span->unit_count; unit++)
        if (model[unit].is_dirty)
            return false;
    return true;
}

static bool is_on_its_way(size_t unit)
{
    for (unsigned index = 0; index < PURGING; index++)
        if (is_taken[index] && unit >= purging[index].span->first_unit &&
            unit < purging[index].span->first_unit + purging[index].span->unit_count)
            return true;
    return false;
}

/* Are the units behind the span free, as far as it is to reach? */
static bool model_has_room(const span_t *span, size_t unit_count)
{
    const uint8_t kind = window_tables.kinds[span->first_unit / CHUNK_UNITS];
    size_t unit = span->first_unit + span->unit_count;
    for (; unit < span->first_unit + unit_count; unit++)
        if (unit >= window_unit_count || window_tables.kinds[unit / CHUNK_UNITS] != kind ||
            model[unit].owner != NULL || is_on_its_way(unit))
            return false;
    return true;
}

static void check_model(void)
{
    size_t used = 0;
    for (size_t unit = 0; unit < window_unit_count; unit++) {
        const span_t *owner = model[unit].owner;
        used += owner != NULL;
        check(span_of(unit_address(unit)) == owner && (!owner || window_spans[unit] == owner));
        check_eq(bitmap_has(window_tables.dirty, unit), model[unit].is_dirty);
    }
    check_eq(page_heap.used_units, used);
}

static void check_ages(const page_heap_t *heap)
{
    uint64_t younger = UINT64_MAX;
    size_t dirty = 0;
    const list_node_t *head = &heap->free.by_age;
    for (const list_node_t *node = head->next; node != head; node = node->next) {
        const span_t *span = LIST_ITEM(node, span_t, age_node);
        check(span->freed_ms <= younger);
        younger = span->freed_ms;
        dirty += span->dirty_count;
    }
    if (os_page_size() <= UNIT_SIZE) /* else a span whose dirty units fill no page has no age */
        check_eq(dirty, heap->free.dirty_units);
}

static bool is_purging(void)
{
    for (unsigned index = 0; index < PURGING; index++)
        if (is_taken[index])
            return true;
    return false;
}

static void check_everything(void)
{
    if (!is_purging()) /* else some units are in no list */
        check_heaps_are_valid();
    check_model();
    check_ages(&page_heap);
}

static size_t random_count(void)
{
    return 1 + pick(pick(4) == 0 ? 300 : 20);
}

static void alloc_into(size_t index)
{
    bool is_zero = false;
    size_t count = random_count();
    size_t alignment = pick(4) == 0 ? (size_t)16 << pick(18) : UNIT_SIZE;
    span_t *span = page_heap_alloc(count, alignment, &is_zero);
    live[index] = span;
    if (span == NULL)
        return;
    check_eq(span->unit_count, count);
    check(is_aligned(span_start(span), alignment));
    check(kind_of_unit(span->first_unit) == CHUNK_PLAIN);
    check_eq(is_zero, model_is_zero(span));
    for (size_t at = 0; is_zero && at < span_size(span); at += UNIT_SIZE)
        check_eq(span_start(span)[at], 0);
    for (size_t at = 0; at < span_size(span); at += UNIT_SIZE)
        span_start(span)[at] = (char)index;
    model_enter(span, 0);
}

static void free_from(size_t index)
{
    span_t *span = live[index];
    size_t first = span->first_unit;
    size_t count = span->unit_count;
    check(span_start(span)[0] == (char)index);
    page_heap_free(span, now_ms);
    model_leave(first, first + count);
    live[index] = NULL;
}

static void resize(size_t index)
{
    span_t *span = live[index];
    size_t before = span->unit_count;
    size_t wanted = random_count();
    if (wanted < before) {
        page_heap_shrink(span, wanted, now_ms);
        check(span->unit_count == wanted || (is_refusing && span->unit_count == before));
        model_leave(span->first_unit + span->unit_count, span->first_unit + before);
    } else if (wanted > before) {
        bool has_room = model_has_room(span, wanted);
        bool extended = page_heap_extend(span, wanted);
        check_eq(span->unit_count, extended ? wanted : before);
        check(extended == has_room || (is_refusing && !extended));
        model_enter(span, before);
    }
}

static void begin_purge(size_t index)
{
    purge_piece_t *piece = &purging[index];
    uint64_t before_ms = now_ms - smaller_of(now_ms, pick(200));
    size_t most = pick(4) == 0 ? 1 + pick(20) : SIZE_MAX;
    is_taken[index] = page_heap_take_old(before_ms, most, piece);
    const span_t *next = free_spans_oldest(&page_heap.free);
    if (!is_taken[index]) {
        check(is_refusing || next == NULL || next->freed_ms > before_ms);
        return;
    }
    check(piece->span->freed_ms <= before_ms);
    check(next == NULL || piece->span->freed_ms <= next->freed_ms);
    size_t dirty = 0;
    for (unsigned run = 0; run < piece->run_count; run++)
        dirty += piece->runs[run].dirty_count;
    check(dirty > 0 && dirty <= piece->span->dirty_count);
    check(dirty <= most || os_page_size() > UNIT_SIZE);
}

static void end_purge(size_t index)
{
    purge_piece_t *piece = &purging[index];
    size_t dirty = 0;
    for (unsigned number = 0; number < piece->run_count; number++) {
        dirty_run_t *run = &piece->runs[number];
        bool is_purged =
            pick(2) == 0 && os_purge(unit_address(run->first_unit), run->unit_count << UNIT_SHIFT);
        for (size_t unit = run->first_unit; unit < run->first_unit + run->unit_count; unit++) {
            check(model[unit].owner == NULL);
            dirty += is_purged && model[unit].is_dirty;
            model[unit].is_dirty &= !is_purged;
        }
        if (!is_purged)
            run->dirty_count = 0;
    }
    const size_t before = page_heap.purged_units;
    check_eq(page_heap_purged(piece, now_ms), dirty);
    check_eq(page_heap.purged_units - before, dirty);
    is_taken[index] = false;
}

/* A chunk that the kernel would not take back may be called dirty as a whole. */
static void release_chunks(void)
{
    size_t before = page_heap.mapped_units;
    size_t released = page_heap_release(SIZE_MAX);
    check_eq(page_heap.mapped_units, before - (released >> UNIT_SHIFT));
    for (size_t unit = 0; unit < window_unit_count; unit++)
        if (model[unit].owner == NULL) {
            bool is_dirty = bitmap_has(window_tables.dirty, unit);
            check(is_dirty || !model[unit].is_dirty ||
                  window_tables.kinds[unit / CHUNK_UNITS] != 0);
            model[unit].is_dirty = is_dirty;
        }
}

static void step(void)
{
    size_t index = pick(LIVE);
    size_t turn = pick(PURGING);
    now_ms += pick(3);
    if (pick(100) == 0)
        release_chunks();
    else if (pick(10) == 0 && !is_taken[turn])
        begin_purge(turn);
    else if (pick(10) == 0 && is_taken[turn])
        end_purge(turn);
    else if (live[index] == NULL)
        alloc_into(index);
    else if (pick(3) == 0)
        resize(index);
    else
        free_from(index);
}

static void free_all(void)
{
    for (size_t index = 0; index < PURGING; index++)
        if (is_taken[index])
            end_purge(index);
    for (size_t index = 0; index < LIVE; index++)
        if (live[index] != NULL)
            free_from(index);
    check_everything();
    check_eq(page_heap.used_units, 0);
}

static void take_steps(unsigned count)
{
    for (unsigned round = 0; round < count; round++) {
        step();
        if (round % 8 == 0)
            check_everything();
    }
    free_all();
}

fresh_test(the_law_holds_after_every_one_of_random_steps)
{
    random_state = check_seed(4);
    initialise();
    take_steps(8000);
}

/* Of runs of dirty units only the whole pages go: the ends of a run stay. */
fresh_test(the_law_holds_where_a_page_has_several_units)
{
    random_state = check_seed(7);
    fake_os_set_page_size(64 * KIB);
    initialise();
    take_steps(8000);
}

fresh_test(nothing_is_lost_while_the_kernel_refuses_at_random)
{
    is_refusing = true;
    random_state = check_seed(5);
    initialise();
    for (unsigned round = 0; round < 8000; round++) {
        if (round % 50 == 0) {
            fake_call_t kind = pick(3) == 0 ? FAKE_MAP_AT : pick(2) == 0 ? FAKE_MAP : FAKE_COMMIT;
            fake_os_fail_never();
            fake_os_fail(kind, 1 + pick(3), pick(2) == 0 ? 1 : SIZE_MAX);
        }
        step();
        if (round % 8 == 0)
            check_everything();
    }
    fake_os_fail_never();
    free_all();
}

/* Fails the n-th call, for every n, in the same course of events. */
lawful_test(nothing_is_lost_whichever_call_fails)
{
    is_refusing = true;
    for (size_t nth = 1; nth < 60; nth++) {
        random_state = nth / 20;
        fake_os_fail(FAKE_ANY, nth, 1);
        for (unsigned round = 0; round < 100; round++)
            step();
        fake_os_fail_never();
        free_all();
    }
}

fresh_test(a_window_with_obstacles_serves_as_well)
{
    random_state = check_seed(6);
    initialise();
    alloc_into(0);
    for (size_t chunk = 3; chunk < 16; chunk++)
        fake_os_occupy(unit_address(chunk * chunk * CHUNK_UNITS), 4096);
    take_steps(4000);
}

check_main()
