/* heap/page_map.h: where the window lies, how it grows, and what stands in its way. */
#include "heap/page_map.h"

#include "base/bits.h"
#include "os/os.h"
#include "heap/span.h"
#include "unit/fresh.h"

static const uintptr_t usual_place = (uintptr_t)1 << 44;
static const uintptr_t low_place = (uintptr_t)1 << 36;
static const uintptr_t lowest_place = (uintptr_t)1 << 31;

static void create_map(void)
{
    check(page_map_create());
}

/* Of what is mapped the map takes a part for itself, and of that a part holds memory. */
static void check_sizes(void)
{
    check(page_map_size().resident <= page_map_size().mapped);
    check(page_map_size().mapped <= fake_os_mapped_bytes());
}

#define map_test(name) fresh_test_within(create_map, check_sizes, name)

static size_t limit_for_memory(size_t physical_memory)
{
    fake_os_set_physical_memory(physical_memory);
    check(page_map_create());
    return window_tables.unit_limit << UNIT_SHIFT;
}

fresh_test(the_window_is_twice_the_memory_within_bounds)
{
    check_eq(limit_for_memory(0), 128 * GIB);
    check_eq(limit_for_memory(GIB), 32 * GIB);
    check_eq(limit_for_memory(16 * GIB), 32 * GIB);
    check_eq(limit_for_memory(16 * GIB + 1), 64 * GIB);
    check_eq(limit_for_memory(100 * GIB), 256 * GIB);
    check_eq(limit_for_memory(6 * 1024 * GIB), 16 * 1024 * GIB);
    check_eq(limit_for_memory(512 * 1024 * GIB), 16 * 1024 * GIB);
}

/* The tables of the window count against the limit. */
fresh_test(a_limit_bounds_the_window_and_its_tables)
{
    for (unsigned may_grow = 0; may_grow < 2; may_grow++) {
        fake_os_set_address_space_limit(256 * MIB);
        fake_os_set_address_space_may_grow(may_grow != 0);
        size_t before = fake_os_mapped_bytes();
        size_t window = limit_for_memory(16 * GIB);
        size_t tables = fake_os_mapped_bytes() - before;
        check(window >= 2 * GIB && (may_grow == 0 || window >= 8 * GIB));
        check(tables < 256 * MIB / (may_grow != 0 ? 20 : 80));
    }
}

/* A thread that reads the base before another places the window, and the count after. */
fresh_test(an_old_base_with_a_new_count_finds_nothing)
{
    window_unit_count = 100 * CHUNK_UNITS;
    check(!window_has(NULL) && !window_has((void *)4096) && !window_has(&window_base));
}

map_test(the_first_growth_places_the_window)
{
    check_eq(window_unit_count, 0);
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    check_eq(window_unit_count, CHUNK_UNITS);
    check(is_aligned((void *)window_base, 2 * MIB));
    memset(unit_address(0), 1, CHUNK_UNITS << UNIT_SHIFT);
}

map_test(each_growth_follows_the_last)
{
    size_t end = 0;
    for (size_t chunks = 1; chunks < 60; chunks++) {
        check_eq(page_map_grow(chunks * CHUNK_UNITS, (uint8_t)(chunks % 2)), end);
        for (size_t chunk = 0; chunk < chunks; chunk++)
            check_eq(window_tables.kinds[end / CHUNK_UNITS + chunk], chunks % 2);
        end += chunks * CHUNK_UNITS;
        check_eq(window_unit_count, end);
        check(class_of_unit(end - 1) == 0 && window_spans[end - 1] == NULL);
        check_eq(window_tables.dirty[(end - 1) / 64], 0);
    }
}

map_test(a_chunk_that_somebody_has_is_stepped_over)
{
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    fake_os_occupy(unit_address(CHUNK_UNITS), 4096);
    check_eq(page_map_grow(CHUNK_UNITS, false), 2 * CHUNK_UNITS);
    check_eq(window_unit_count, 3 * CHUNK_UNITS);
    check(span_of(unit_address(CHUNK_UNITS)) == NULL);
    check_eq(class_of_unit(CHUNK_UNITS), 0);
    check_eq(page_map_grow(CHUNK_UNITS, false), 3 * CHUNK_UNITS);
}

map_test(what_lies_in_a_chunk_of_somebody_else_is_not_in_the_window)
{
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    fake_os_occupy(unit_address(2 * CHUNK_UNITS), 4096);
    check_eq(page_map_grow(2 * CHUNK_UNITS, 0), 4 * CHUNK_UNITS); /* over three, in two steps */
    for (size_t unit = 0; unit < 7 * CHUNK_UNITS; unit += 8) {
        size_t chunk = unit / CHUNK_UNITS;
        check_eq(window_has(unit_address(unit)), chunk == 0 || chunk == 4 || chunk == 5);
        check(chunk == 6 || (class_of_unit(unit) == 0 && window_spans[unit] == NULL));
    }
}

map_test(what_lies_in_a_chunk_that_was_given_back_is_not_in_the_window)
{
    check_eq(page_map_grow(3 * CHUNK_UNITS, 0), 0);
    check(page_map_unmap(CHUNK_UNITS, CHUNK_UNITS));
    for (size_t chunk = 0; chunk < 4; chunk++)
        check_eq(window_has(unit_address(chunk * CHUNK_UNITS)), chunk == 0 || chunk == 2);
    check_eq(page_map_grow(CHUNK_UNITS, false), CHUNK_UNITS);
    check(window_has(unit_address(CHUNK_UNITS)));
}

map_test(a_large_obstacle_costs_few_attempts)
{
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    fake_os_occupy(unit_address(CHUNK_UNITS), GIB);
    fake_os_forget_calls();
    size_t first = page_map_grow(CHUNK_UNITS, false);
    check(first != SIZE_MAX &&
          (char *)unit_address(first) >= (char *)unit_address(CHUNK_UNITS) + GIB);
    check(fake_os_count(FAKE_MAP_AT) <= 12);
}

map_test(a_window_that_is_obstructed_to_its_end_does_not_grow)
{
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    fake_os_occupy(unit_address(CHUNK_UNITS), window_tables.unit_limit << UNIT_SHIFT);
    check_eq(page_map_grow(CHUNK_UNITS, false), SIZE_MAX);
    check_eq(window_unit_count, CHUNK_UNITS);
}

/* A sanitizer may have taken what the fake kernel would give. */
static void skip_if_taken(uintptr_t place)
{
    void *middle = (void *)(place + place / 4);
    if (os_map_at(middle, 2 * MIB) != OS_DONE)
        check_skip("these addresses are taken by something real");
    check(os_release(middle, 2 * MIB));
}

map_test(an_obstacle_met_first_makes_the_window_begin_elsewhere)
{
    skip_if_taken(low_place);
    fake_os_occupy((void *)usual_place, (size_t)1 << 47);
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    check(window_base >= low_place && window_base < 2 * low_place);
}

map_test(an_address_space_of_32_bits_is_the_last_resort)
{
    fake_os_occupy((void *)usual_place, (size_t)1 << 47);
    fake_os_occupy((void *)low_place, low_place);
    skip_if_taken(lowest_place);
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    check(window_base >= lowest_place && window_base < 2 * lowest_place);
}

map_test(with_every_place_taken_there_is_no_window)
{
    fake_os_occupy((void *)lowest_place, (size_t)1 << 47);
    check_eq(page_map_grow(CHUNK_UNITS, false), SIZE_MAX);
    check_eq(window_unit_count, 0);
    check(!window_has(NULL) && !window_has(&window_base));
}

fresh_test(the_window_lies_elsewhere_in_each_process)
{
    uintptr_t bases[8];
    check(page_map_create());
    for (unsigned index = 0; index < 8; index++) {
        uint64_t state = index;
        fake_os_set_random(next_random(&state));
        window_base = WINDOW_NOWHERE;
        window_unit_count = 0;
        check(page_map_grow(CHUNK_UNITS, false) != SIZE_MAX);
        bases[index] = window_base;
        for (unsigned other = 0; other < index; other++)
            check(bases[other] != bases[index]);
    }
}

map_test(a_refused_mapping_changes_nothing_and_may_be_asked_for_again)
{
    for (unsigned round = 0; round < 3; round++) {
        size_t before = window_unit_count;
        fake_os_fail(FAKE_MAP_AT, 1, 100);
        check_eq(page_map_grow(CHUNK_UNITS, false), SIZE_MAX);
        check_eq(window_unit_count, before);
        fake_os_fail_never();
        check_eq(page_map_grow(CHUNK_UNITS, false), before);
    }
}

map_test(refused_tables_change_nothing_and_may_be_asked_for_again)
{
    for (size_t nth = 3; nth >= 1; nth--) { /* classes, spans, dirty bits */
        fake_os_fail(FAKE_COMMIT, nth, 1);
        check_eq(page_map_grow(4096, false), SIZE_MAX);
        check_eq(window_unit_count, 0);
    }
    fake_os_fail_never();
    check_eq(page_map_grow(4096, false), 0);
    fake_os_fail(FAKE_COMMIT, 2, 10);
    check_eq(page_map_grow(CHUNK_UNITS, false), SIZE_MAX);
    fake_os_fail_never();
    check_eq(page_map_grow(CHUNK_UNITS, false), 4096);
}

map_test(tables_grow_by_little_where_much_is_refused)
{
    fake_os_fail(FAKE_COMMIT, 3, 1);
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    window_spans[CHUNK_UNITS - 1] = NULL;
    check_eq(page_map_grow(CHUNK_UNITS, false), CHUNK_UNITS);
}

map_test(a_part_of_a_chunk_stands_for_all_of_it)
{
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    check_eq(page_map_grow(4, false), CHUNK_UNITS);
    check_eq(page_map_grow(CHUNK_UNITS, false), 2 * CHUNK_UNITS);
    memset(unit_address(CHUNK_UNITS), 1, 4 * UNIT_SIZE);
    check(window_has(unit_address(CHUNK_UNITS + 3)));
    check(span_of(unit_address(CHUNK_UNITS + 9)) == NULL);
    check(!os_is_readable(unit_address(CHUNK_UNITS + 4)));
    check(page_map_unmap(0, CHUNK_UNITS));
    check_eq(page_map_grow(8, false), 3 * CHUNK_UNITS); /* chunks that were unmapped stay whole */
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
}

fresh_test(a_smaller_window_is_tried_when_the_tables_are_refused)
{
    fake_os_fail(FAKE_RESERVE, 1, 3);
    check(page_map_create());
    check_eq(window_tables.unit_limit << UNIT_SHIFT, 4 * GIB);
    fake_os_fail(FAKE_COMMIT, 1, 1);
    size_t before = fake_os_mapped_bytes();
    check(page_map_create());
    check_eq(window_tables.unit_limit << UNIT_SHIFT, 16 * GIB);
    check(fake_os_mapped_bytes() - before < 32 * MIB); /* the first tables went back */
}

fresh_test(without_any_address_space_there_is_no_map)
{
    fake_os_fail_always(FAKE_RESERVE);
    check(!page_map_create());
    fake_os_fail_never();
    fake_os_fail_always(FAKE_COMMIT);
    check(!page_map_create());
    check_eq(fake_os_mapped_bytes(), 0);
}

fresh_test(tables_that_cannot_be_had_or_given_back_serve_the_next_attempt)
{
    fake_os_fail_always(FAKE_COMMIT);
    fake_os_fail_always(FAKE_RELEASE);
    check(!page_map_create());
    size_t mapped = fake_os_mapped_bytes();
    check(mapped != 0 && !page_map_create());
    check_eq(fake_os_mapped_bytes(), mapped);
    fake_os_fail_never();
    check(page_map_create());
    check_eq(fake_os_mapped_bytes(), mapped);
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
}

fresh_test(few_units_are_not_asked_for_where_tables_were_refused_for_many)
{
    enum { STEP = 4096 }; /* units that tables are backed for at once */
    check(page_map_create());
    check(!page_map_could_do_with(CHUNK_UNITS));
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    check(page_map_could_do_with(STEP - CHUNK_UNITS));
    check(!page_map_could_do_with(STEP));
    check_eq(page_map_grow(STEP - CHUNK_UNITS, false), CHUNK_UNITS);
    check(!page_map_could_do_with(CHUNK_UNITS));
    check(page_map_unmap(0, CHUNK_UNITS));
    check(page_map_could_do_with(CHUNK_UNITS));
    check(!page_map_could_do_with(2 * CHUNK_UNITS));
}

static size_t small_limit;

static void live_within_a_small_limit(void)
{
    fake_os_set_address_space_limit(small_limit);
    check(page_map_create());
    check(window_tables.unit_limit << UNIT_SHIFT <= WINDOW_TIMES_SOFT_LIMIT * small_limit);
    for (size_t chunk = 0; chunk < small_limit / (4 * MIB); chunk++)
        check_eq(page_map_grow(CHUNK_UNITS, false), chunk * CHUNK_UNITS);
}

test(the_map_fits_into_a_small_address_space)
{
    for (small_limit = 4 * MIB; small_limit <= 4 * GIB; small_limit *= 2)
        fresh_run(live_within_a_small_limit);
}

fresh_test(the_window_ends_where_its_tables_end)
{
    fake_os_set_address_space_limit(16 * MIB / WINDOW_TIMES_SOFT_LIMIT);
    check(page_map_create());
    check_eq(window_tables.unit_limit, 8 * CHUNK_UNITS);
    fake_os_set_address_space_limit(SIZE_MAX);
    check_eq(page_map_grow(9 * CHUNK_UNITS, false), SIZE_MAX);
    check_eq(page_map_grow(7 * CHUNK_UNITS, false), 0);
    check_eq(page_map_grow(2 * CHUNK_UNITS, false), SIZE_MAX);
    check_eq(page_map_grow(CHUNK_UNITS, false), 7 * CHUNK_UNITS);
    check_eq(page_map_grow(CHUNK_UNITS, false), SIZE_MAX);
    page_map_set(8 * CHUNK_UNITS - 1, 1, NULL, 5);
    check_eq(class_of_unit(8 * CHUNK_UNITS - 1), 5);
}

fresh_test(large_pages_serve_as_well)
{
    fake_os_set_page_size(64 * KIB);
    check(page_map_create());
    for (size_t round = 0; round < 100; round++)
        check_eq(page_map_grow(CHUNK_UNITS, false), round * CHUNK_UNITS);
    memset(window_class_map, 0, window_unit_count * sizeof *window_class_map);
    memset(window_spans, 0, window_unit_count * sizeof *window_spans);
    memset(window_tables.dirty, 0, window_unit_count / 8);
}

fresh_test(only_addresses_of_the_window_have_a_span)
{
    span_t span = {.state = SPAN_LARGE};
    check(span_of(NULL) == NULL && span_of(&span) == NULL);
    check(page_map_create());
    check(span_of(NULL) == NULL && span_of((void *)UINTPTR_MAX) == NULL);
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    page_map_set(3, 2, &span, 7);
    char *start = unit_address(3);
    check(span_of(start) == &span && span_of(start + 2 * UNIT_SIZE - 1) == &span);
    check(span_of(start - 1) == NULL && span_of(start + 2 * UNIT_SIZE) == NULL);
    check_eq(class_of_unit(2), 0);
    check_eq(class_of_unit(3), 7);
    check_eq(class_of_unit(4), 7);
    check_eq(class_of_unit(5), 0);
    check(span_of((char *)window_base - 1) == NULL);
    check(span_of(unit_address(window_unit_count)) == NULL);
    span.state = SPAN_SLAB;
    check(span_of(start) == &span);
    span.state = SPAN_FREE;
    check(span_of(start) == NULL);
    span.state = SPAN_PURGING;
    check(span_of(start) == NULL);
}

/* ---- what it takes itself ---- */

static void check_own_addresses(void)
{
    const size_t window = window_unit_count << UNIT_SHIFT;
    check_eq(page_map_size().mapped, fake_os_mapped_bytes() - window);
}

map_test(its_own_addresses_are_counted)
{
    for (unsigned round = 0; round < 3; round++) {
        check_own_addresses();
        (void)page_map_grow(30 * CHUNK_UNITS, false);
    }
}

fresh_test(the_records_are_counted_too)
{
    options.check_frees = 1;
    check(page_map_create());
    for (unsigned round = 0; round < 3; round++) {
        check_own_addresses();
        (void)page_map_grow(30 * CHUNK_UNITS, false);
    }
    size_t before = page_map_size().resident;
    memset(window_tables.records, 1, window_unit_count * UNIT_GRANULES);
    check_eq(page_map_size().resident, before + window_unit_count * UNIT_GRANULES);
}

/* 16,384 units: 16 pages of classes, 32 of spans. */
fresh_test(tables_hold_memory_where_they_were_written)
{
    span_t span = {.unit_count = 1};
    check(page_map_create());
    check_eq(page_map_size().resident, 0);
    check_eq(page_map_grow(64 * CHUNK_UNITS, false), 0);
    size_t before = page_map_size().resident; /* that of the kinds */
    check(before > 0 && before <= 2 * 4 * KIB);
    page_map_set(0, 1, &span, 1);
    check_eq(page_map_size().resident, before + 2 * 4 * KIB);
    page_map_set(0, 64 * CHUNK_UNITS, &span, 1);
    check_eq(page_map_size().resident, before + 48 * 4 * KIB);
    window_tables.dirty[0] = 1;
    check_eq(page_map_size().resident, before + 49 * 4 * KIB);
}

/* ---- chunks that were given back ---- */

map_test(chunks_given_back_are_mapped_again_before_the_window_grows)
{
    check_eq(page_map_grow(4 * CHUNK_UNITS, 0), 0);
    memset(unit_address(CHUNK_UNITS), 1, 2 * CHUNK_UNITS << UNIT_SHIFT);
    size_t before = fake_os_mapped_bytes();
    check(page_map_unmap(CHUNK_UNITS, 2 * CHUNK_UNITS));
    check_eq(fake_os_mapped_bytes(), before - 4 * MIB);
    check_eq(window_unit_count, 4 * CHUNK_UNITS);
    check(span_of(unit_address(CHUNK_UNITS)) == NULL);
    check_eq(page_map_grow(3 * CHUNK_UNITS, false), 4 * CHUNK_UNITS); /* too long for the gap */
    check_eq(page_map_grow(CHUNK_UNITS, false), CHUNK_UNITS);
    check_eq(window_tables.kinds[1], CHUNK_PLAIN);
    check_eq(*(char *)unit_address(CHUNK_UNITS), 0);
    check_eq(page_map_grow(CHUNK_UNITS, false), 2 * CHUNK_UNITS);
    check_eq(page_map_grow(CHUNK_UNITS, false), 7 * CHUNK_UNITS);
}

map_test(chunks_that_somebody_took_meanwhile_are_left_to_him)
{
    check_eq(page_map_grow(2 * CHUNK_UNITS, 0), 0);
    check(page_map_unmap(0, CHUNK_UNITS));
    fake_os_occupy(unit_address(0), 4096);
    check_eq(page_map_grow(CHUNK_UNITS, false), 2 * CHUNK_UNITS);
    check_eq(page_map_grow(CHUNK_UNITS, false), 3 * CHUNK_UNITS);
}

map_test(whether_anything_can_be_mapped_at_all_is_asked_at_the_price_of_nothing)
{
    check_eq(page_map_grow(CHUNK_UNITS, false), 0);
    memset(unit_address(0), 1, CHUNK_UNITS << UNIT_SHIFT);
    size_t before = fake_os_mapped_bytes();
    fake_os_set_address_space_limit(before); /* a limit that has been reached is no refusal */
    check(!page_map_is_refused());
    fake_os_fail(FAKE_MAP_AT, 1, 2);
    check(page_map_is_refused() && page_map_is_refused());
    check(!page_map_is_refused());
    check_eq(fake_os_mapped_bytes(), before);
    check_eq(window_tables.kinds[0], CHUNK_PLAIN);
    check_eq(*(char *)unit_address(CHUNK_UNITS - 1), 1);
}

map_test(a_refused_unmapping_changes_nothing)
{
    check_eq(page_map_grow(2 * CHUNK_UNITS, true), 0);
    fake_os_fail(FAKE_RELEASE, 1, 1);
    check(!page_map_unmap(0, CHUNK_UNITS));
    check(unit_is_dense(0));
    *(char *)unit_address(0) = 1;
    check_eq(page_map_grow(CHUNK_UNITS, false), 2 * CHUNK_UNITS);
}

check_main()
