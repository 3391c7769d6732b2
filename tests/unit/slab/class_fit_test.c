/* slab/class_fit.h, and the laws of classes that are made while the program runs. */
#include "slab/class_fit.h"

#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "cache/depot.h"
#include "heap/page_map.h"
#include "slab/central_list.h"
#include "slab/slab.h"
#include "unit/cached.h"

/* As malloc does it for a thread that has a cache or none. */
static void *take(size_t size)
{
    unsigned class = size_class_of(size);
    thread_cache_t *cache = thread_cache_provide();
    check(thread_cache_comes_to_hold(cache, class));
    void *block = bin_pop(&thread_bins[class]);
    return block != NULL ? block : thread_cache_refill(cache, class, size);
}

static size_t block_bytes(const void *block)
{
    return size_classes[slab_of(block)->class].size;
}

enum { MANY = 8000 };

static void *blocks[MANY];

static void take_many(size_t size, unsigned count)
{
    for (unsigned index = 0; index < count; index++)
        check((blocks[index] = take(size)) != NULL);
}

static void free_many(unsigned count)
{
    for (unsigned index = 0; index < count; index++)
        cached_free(slab_of(blocks[index])->class, blocks[index]);
}

/* The only fitted class. */
static fit_t the_fit(void)
{
    fit_t fits[FITTED_CLASSES_MOST];
    check_eq(class_fit_list(fits), 1);
    return fits[0];
}

static unsigned fit_count(void)
{
    fit_t fits[FITTED_CLASSES_MOST];
    return class_fit_list(fits);
}

/* ---- what is proposed ---- */

static uint32_t counts[GRANULE_COUNT];

static fit_proposal_t propose(unsigned fixed)
{
    size_t first = granule_of(size_classes[fixed - 1].size) + 1;
    fit_demand_t demand = {.first = first,
                           .length = granule_of(size_classes[fixed].size) + 1 - first,
                           .counts = counts + first,
                           .numbers = size_class_numbers + first,
                           .fixed = fixed};
    return fit_propose(&demand);
}

fresh_test(the_size_that_saves_most_is_proposed)
{
    size_classes_create();
    unsigned fixed = size_class_of(1100);
    counts[granule_of(1040)] = 100; /* 112 bytes each */
    counts[granule_of(1136)] = 600; /* 16 each */
    counts[granule_of(1152)] = 300;
    fit_proposal_t proposal = propose(fixed);
    check_eq(proposal.size, 1040);
    check_eq(proposal.share, 100);
    check_eq(proposal.total, 1000);
    counts[granule_of(1136)] = 900;
    proposal = propose(fixed);
    check_eq(proposal.size, 1136);
    check_eq(proposal.share, 1000); /* blocks of 1136 bytes serve 1040 as well */
}

fresh_test(sizes_that_need_more_alignment_are_not_counted_in)
{
    size_classes_create();
    counts[granule_of(1088)] = 100; /* a multiple of 64 */
    counts[granule_of(1104)] = 100; /* of 16 */
    fit_proposal_t proposal = propose(size_class_of(1100));
    check_eq(proposal.size, 1088);
    check_eq(proposal.share, 100);
    counts[granule_of(1104)] = 1000;
    proposal = propose(size_class_of(1100));
    check_eq(proposal.size, 1104);
    check_eq(proposal.share, 1000);
}

/* Three blocks of 16,400 bytes have the room of four units; as many as of 18,432 then. */
fresh_test(the_tail_of_a_slab_counts)
{
    size_classes_create();
    check(size_class_bytes_per_block(16400) >= size_class_bytes_per_block(18432));
    counts[granule_of(16400)] = 1000;
    check_eq(propose(size_class_of(16400)).size, 0);
}

fresh_test(where_nothing_is_wasted_nothing_is_proposed)
{
    size_classes_create();
    counts[granule_of(1152)] = 1000;
    check_eq(propose(size_class_of(1152)).size, 0);
    check_eq(propose(size_class_of(1280)).size, 0);
}

/* ---- the laws ---- */

fresh_test(a_class_may_serve_what_its_blocks_are_aligned_for)
{
    for (size_t class_size = 16; class_size <= MID_MAX; class_size += 16)
        for (size_t size = class_size - 16; size != 0 && size + MID_MAX / 16 > class_size;
             size -= 16) {
            bool is_aligned_for = true;
            for (size_t power = 16; power <= UNIT_SIZE; power *= 2)
                is_aligned_for &= size % power != 0 || class_size % power == 0;
            check_eq(size_class_fits(class_size, size), is_aligned_for);
        }
}

static void check_every_request(void)
{
    for (size_t size = 1; size <= MID_MAX; size++)
        check(size_classes[size_class_of(size)].size >= size);
    for (size_t alignment = 16; alignment <= UNIT_SIZE; alignment *= 2)
        for (size_t size = 16; size <= MID_MAX; size += 16) {
            unsigned class = size_class_aligned(size, alignment);
            check(class == 0 || size_classes[class].size >= size);
            check(class == 0 || size_classes[class].size % alignment == 0);
            unsigned hit = class_of_offset(size_class_of_granule[granule_of(size)]);
            check_eq(hit, size_class_of(size));
        }
}

fresh_test(with_fitted_classes_every_request_is_served_at_its_alignment)
{
    static const size_t sizes[] = {1104, 4368, 8208, 16640, 20000};
    uint64_t wanted = 0;
    size_classes_create();
    for (unsigned index = 0; index < sizeof sizes / sizeof *sizes; index++) {
        unsigned fixed = size_class_fixed_of(sizes[index]);
        unsigned class = size_class_make(sizes[index], 0);
        check_eq(class, FIXED_CLASS_COUNT + index);
        check_eq(size_class_of(sizes[index]), fixed); /* nobody has it yet */
        size_class_map(fixed, wanted |= (uint64_t)1 << index);
        check_eq(size_class_of(sizes[index]), class);
        check_every_request();
    }
    check_eq(size_class_of(1088), size_class_fixed_of(1088)); /* a multiple of 64 */
    size_class_map(size_class_fixed_of(4368), wanted & ~(uint64_t)2);
    check_eq(size_class_of(4368), size_class_fixed_of(4368));
    check_every_request();
}

fresh_test(of_two_fitted_classes_the_smaller_one_serves)
{
    size_classes_create();
    unsigned fixed = size_class_fixed_of(1100);
    unsigned large = size_class_make(1136, 0);
    unsigned small = size_class_make(1040, 0);
    size_class_map(fixed, 3);
    check_eq(size_class_of(1030), small);
    check_eq(size_class_of(1041), fixed); /* 1056 is a multiple of 32 */
    check_eq(size_class_of(1057), large);
}

fresh_test(no_number_gets_another_size)
{
    size_classes_create();
    for (unsigned index = 0; index < MADE_CLASSES_MOST; index++)
        check_eq(size_class_make(1040 + 32 * index, index % 2), FIXED_CLASS_COUNT + index);
    check_eq(size_classes_made(), CLASS_COUNT);
    check_eq(size_class_make(2064, 0), 0);
    for (unsigned index = 0; index < MADE_CLASSES_MOST; index++) {
        check_eq(size_classes[FIXED_CLASS_COUNT + index].size, 1040 + 32 * index);
        check_eq(size_classes[FIXED_CLASS_COUNT + index].group, index % 2);
    }
}

fresh_test(numbers_that_are_not_made_divide_nothing)
{
    initialise();
    thread_cache_t *cache = thread_cache_provide();
    for (unsigned class = size_classes_made(); class < CLASS_COUNT; class++)
        check(!thread_cache_holds(cache, class));
    check_laws();
}

fresh_test(caches_that_exist_take_up_a_class)
{
    initialise();
    thread_cache_t *cache = thread_cache_provide();
    unsigned class = size_class_make(1040, 0);
    check(!thread_cache_holds(cache, class));
    check(thread_cache_comes_to_hold(cache, class));
    check(cache->capacity[class] >= FIRST_LEAST);
    size_class_map(size_class_fixed_of(1040), 1);
    void *block = take(1040);
    check_eq(block_bytes(block), 1040);
    cached_free(class, block);
    check_eq(take(1030), block);
}

/* ---- what is decided ---- */

fresh_test(many_blocks_of_a_size_get_a_class)
{
    initialise();
    take_many(1040, MANY);
    fit_t fit = the_fit();
    check_eq(fit.size, 1040);
    check_eq(fit.fixed_size, 1152);
    check_eq(fit.state, FIT_FROZEN);
    check_eq(fit.share, 1024);
    check(fit.predicted_bytes >= SLAB_SHORTEST);
    size_t saved = 0;
    for (unsigned index = 0; index < MANY; index++)
        saved += 1152 - block_bytes(blocks[index]);
    check(saved > (size_t)MANY * 112 * 3 / 4);
    free_many(MANY); /* those that are older, too */
    thread_cache_trim(thread_cache_provide(), true);
    check_laws();
}

fresh_test(a_slab_has_to_be_wasted_first)
{
    initialise();
    take_many(1040, (unsigned)(SLAB_SHORTEST / 112 - 64));
    check_eq(fit_count(), 0);
}

fresh_test(what_goes_round_takes_no_memory)
{
    initialise();
    for (unsigned round = 0; round < 200; round++) {
        take_many(1040, 100);
        free_many(100);
    }
    check_eq(fit_count(), 0);
}

fresh_test(sizes_that_are_classes_get_none)
{
    initialise();
    take_many(1152, MANY);
    check_eq(fit_count(), 0);
}

fresh_test(who_forbids_it_gets_none)
{
    initialise();
    options.fit_classes = 0;
    take_many(1040, MANY);
    check_eq(fit_count(), 0);
}

/* A policy names sites of the class: their heaps are found by its number. */
fresh_test(no_class_is_fitted_to_a_closed_one)
{
    initialise();
    class_offset_origin = class_offset_origin == 0 ? -640 : class_offset_origin;
    class_fit_close(size_class_of(1040));
    take_many(1040, MANY);
    check_eq(fit_count(), 0);
}

fresh_test(a_class_that_is_closed_stays_so_whatever_was_fitted)
{
    initialise();
    class_offset_origin = class_offset_origin == 0 ? -640 : class_offset_origin;
    while (fit_count() == 0)
        check(take(1040) != NULL);
    class_fit_close(size_class_fixed_of(1040));
    check_eq(size_class_of_granule[granule_of(1040)], class_offset_origin);
    check_eq(the_fit().state, FIT_WITHDRAWN);
    take_many(1152, MANY);
    check_eq(the_fit().state, FIT_WITHDRAWN);
    check_eq(size_class_of(1040), size_class_fixed_of(1040));
    for (size_t size = 1040; size <= 1152; size += 16)
        check_eq(size_class_of_granule[granule_of(size)], class_offset_origin);
}

fresh_test(a_class_that_is_not_asked_for_is_withdrawn)
{
    initialise();
    for (unsigned index = 0; fit_count() == 0; index++)
        check((blocks[index] = take(1040)) != NULL);
    unsigned class = size_class_of(1040);
    check(class >= FIXED_CLASS_COUNT);
    take_many(1152, MANY);
    check_eq(the_fit().state, FIT_WITHDRAWN);
    check_eq(size_class_of(1040), size_class_fixed_of(1040));
    check_eq(block_bytes(take(1040)), 1152);
    check_laws();
}

fresh_test(a_class_that_was_withdrawn_serves_when_its_size_comes_back)
{
    initialise();
    while (fit_count() == 0)
        check(take(1040) != NULL);
    take_many(1152, MANY);
    check_eq(the_fit().state, FIT_WITHDRAWN);
    take_many(1040, MANY);
    check_eq(the_fit().state, FIT_FROZEN);
    check_eq(block_bytes(take(1040)), 1040);
}

/* The adversary: no size is asked for any more once it has its class. */
fresh_test(sizes_that_change_as_soon_as_they_have_a_class_waste_little)
{
    initialise();
    size_t taken = 0;
    for (size_t size = 1040; size < 32000; size += 16) {
        unsigned before = fit_count();
        for (unsigned index = 0; index < 600 && fit_count() == before; index++) {
            check(take(size) != NULL);
            taken += size;
        }
    }
    size_t held = 0;
    for (unsigned class = 1; class < size_classes_made(); class++)
        held += central_list_statistics(class).unit_count * UNIT_SIZE;
    check_eq(fit_count(), FITTED_CLASSES_MOST);
    check(held < taken + taken / 8);
}

/* Requests of eight sizes by the thousand, in an order that only `seed` decides. */
static void demand(unsigned seed)
{
    for (unsigned index = 0; index < 30000; index++) {
        seed = seed * 1103515245 + 12345;
        size_t size = 300 + (seed >> 16) % 8 * 1000;
        class_fit_note(size, size_class_of(size), 16);
        check(central_list_take_one(size_class_fixed_of(size)) != NULL);
    }
}

/* What was decided in a process of its own. */
static unsigned decide(unsigned seed, fit_t fits[FITTED_CLASSES_MOST])
{
    int ends[2];
    check_eq(pipe(ends), 0);
    if (fork() == 0) {
        demand(seed);
        unsigned count = class_fit_list(fits);
        ssize_t length = (ssize_t)(count * sizeof *fits);
        _exit(write(ends[1], fits, (size_t)length) != length);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], fits, FITTED_CLASSES_MOST * sizeof *fits);
    check(length > 0);
    close(ends[0]);
    return (unsigned)((size_t)length / sizeof *fits);
}

fresh_test(the_same_demand_leads_to_the_same_decisions)
{
    static fit_t first[FITTED_CLASSES_MOST], again[FITTED_CLASSES_MOST];
    initialise();
    unsigned count = decide(7, first);
    check(count > 2);
    check_eq(decide(7, again), count);
    check_eq(memcmp(first, again, count * sizeof *first), 0);
    for (unsigned index = 0; index < count; index++) {
        check(first[index].size % 1000 >= 300 && first[index].size % 1000 <= 316);
        check(first[index].state != FIT_WITHDRAWN);
    }
}

check_main()
