/* observe/samples.h and observe/pprof.h: what is added is found by its stack, what is freed is
 * taken off, full tables leave out what has no room, and the profile says what was added. */
#include "observe/samples.h"

#include "observe/pprof.h"
#include "observe/sampler.h"
#include "unit/fresh.h"

static const uintptr_t stack_a[] = {0x1000, 0x2000, 0x3000};
static const uintptr_t stack_b[] = {0x1000, 0x2000};

static void *block_at(size_t number)
{
    return (void *)(0x100000 + number * 64);
}

static bool add_sample(const void *block, size_t size, uint64_t weight, const uintptr_t *frames,
                       unsigned depth, uint64_t now_ms)
{
    sampled_t sampled = {
        .block = block, .size = size, .block_size = 16, .weight = weight, .now_ms = now_ms};
    return samples_add(&sampled, frames, depth);
}

/* ---- the sum over all sites, and the site of a depth ---- */

typedef struct sum {
    unsigned sites;
    unsigned wanted_depth;
    site_t found;
    site_t all;
} sum_t;

static void add_site(const site_t *site, const uintptr_t *frames, void *context)
{
    sum_t *sum = context;
    sum->sites++;
    sum->all.allocated.count += site->allocated.count;
    sum->all.freed.count += site->freed.count;
    if (site->depth == sum->wanted_depth && frames[0] == stack_a[0]) sum->found = *site;
}

static sum_t sum_of(unsigned depth)
{
    sum_t sum = {.wanted_depth = depth};
    samples_visit(add_site, &sum);
    return sum;
}

fresh_test(a_sample_counts_at_its_stack_until_it_is_freed)
{
    check(!add_sample(block_at(1), 100, WEIGHT_ONE, stack_a, 3, 10)); /* no tables yet */
    check(samples_create(PROFILE_SAMPLES) && samples_create(PROFILE_SAMPLES));
    check(add_sample(block_at(1), 100, 5 * WEIGHT_ONE, stack_a, 3, 1000));
    check(add_sample(block_at(2), 300, WEIGHT_ONE, stack_a, 3, 1000));
    check(add_sample(block_at(3), 7, 2 * WEIGHT_ONE, stack_b, 2, 1000));
    check(samples_exist());
    check_eq(sum_of(3).sites, 2);
    site_t site = sum_of(3).found;
    check_eq(site.allocated.count, 6 * WEIGHT_ONE);
    check_eq(site.allocated.bytes, 5 * 100 + 300);
    check_eq(site.freed.count, 0);
    samples_remove(block_at(1), 1250);
    samples_remove(block_at(1), 1250); /* is none any more */
    samples_remove(block_at(9), 1250); /* never was */
    site = sum_of(3).found;
    check_eq(site.freed.count, 5 * WEIGHT_ONE);
    check_eq(site.freed.bytes, 500);
    check_eq(site.freed_elsewhere.count, 0);
    check_eq(site.lifetime_ms, 5 * 250);
    samples_remove(block_at(2), 900); /* a clock that was read before */
    samples_remove(block_at(3), 1000);
    check(!samples_exist());
    check_eq(sum_of(3).found.lifetime_ms, 5 * 250);
}

fresh_test(blocks_of_other_sizes_are_other_sites)
{
    check(samples_create(PROFILE_SAMPLES));
    for (size_t size = 16; size <= 64; size += 16) {
        sampled_t sampled = {
            .block = block_at(size), .size = size, .block_size = size, .weight = WEIGHT_ONE};
        check(samples_add(&sampled, stack_a, 3));
    }
    check_eq(sum_of(3).sites, 4);
    check_eq(sum_of(3).all.allocated.count, 4 * WEIGHT_ONE);
}

fresh_test(a_block_that_moves_keeps_its_sample)
{
    check(samples_create(PROFILE_SAMPLES));
    check(add_sample(block_at(1), 100, WEIGHT_ONE, stack_b, 2, 0));
    samples_move(block_at(1), block_at(2));
    samples_move(block_at(1), block_at(3));
    samples_remove(block_at(1), 0);
    check(samples_exist());
    samples_remove(block_at(2), 0);
    check(!samples_exist());
}

fresh_test(a_block_that_realloc_moves_ends_where_it_is_freed)
{
    uintptr_t frames[4];
    check(samples_create(PROFILE_SAMPLES));
    check(add_sample(block_at(1), 100, 3 * WEIGHT_ONE, stack_a, 3, 1000));
    check(add_sample(block_at(2), 200, WEIGHT_ONE, stack_b, 2, 1100)); /* of the move itself */
    samples_follow(block_at(1), block_at(2), 1100);
    samples_remove(block_at(1), 1100);
    site_t site = sum_of(3).found;
    check_eq(site.freed.bytes, 3 * 100);
    check_eq(site.lifetime_ms, 3 * 100);
    check_eq(site.ended, 0);
    check_eq(samples_stack(block_at(2), frames, 4), 2);
    samples_resize(block_at(2), 250);
    samples_follow(block_at(2), block_at(3), 1200);
    check_eq(samples_stack(block_at(3), frames, 4), 0); /* it is no sample itself */
    check(samples_exist());
    check_eq(sum_of(2).found.freed.bytes, 200 + 250);
    check_eq(sum_of(2).found.ended, 200);
    samples_remove(block_at(3), 1300);
    check(!samples_exist());
    site = sum_of(3).found;
    check_eq(site.ended, 3 * 100);
    check_eq(site.freed.bytes, 3 * 100);
    check_eq(site.lifetime_ms, 3 * 100);
    check_eq(sum_of(2).found.ended, 200 + 250);
}

fresh_test(long_blocks_and_too_many_samples_are_not_followed)
{
    check(samples_create(PROFILE_SAMPLES));
    check(add_sample(block_at(1), SITE_SIZE_MOST + 1, WEIGHT_ONE, stack_a, 3, 0));
    samples_follow(block_at(1), block_at(2), 0);
    check(!samples_exist());
    check_eq(sum_of(3).found.ended, SITE_SIZE_MOST + 1);
    for (unsigned turn = 0; turn < 2 * FOLLOWED_MOST; turn++) {
        check(add_sample(block_at(2 + turn), 16, WEIGHT_ONE, stack_b, 2, 0));
        samples_follow(block_at(2 + turn), block_at(3 + turn), 0);
    }
    site_t site = sum_of(2).found;
    check_eq(site.allocated.bytes - site.ended, FOLLOWED_MOST * 16);
    samples_remove(block_at(2 + 2 * FOLLOWED_MOST), 0);
    check(!samples_exist());
}

/* Another thread is whoever has other thread-local data. */
static void *free_elsewhere(void *block)
{
    samples_remove(block, 0);
    return NULL;
}

fresh_test(a_free_by_another_thread_is_told)
{
    pthread_t thread;
    check(samples_create(PROFILE_SAMPLES));
    check(add_sample(block_at(1), 100, WEIGHT_ONE, stack_a, 3, 0));
    check_eq(pthread_create(&thread, NULL, free_elsewhere, block_at(1)), 0);
    check_eq(pthread_join(thread, NULL), 0);
    check_eq(sum_of(3).found.freed_elsewhere.bytes, 100);
}

fresh_test(the_stack_of_a_block_in_use_can_be_asked_for)
{
    uintptr_t frames[4] = {0};
    check_eq(samples_stack(block_at(1), frames, 4), 0); /* no tables yet */
    check(samples_create(64));
    check(add_sample(block_at(1), 100, WEIGHT_ONE, stack_a, 3, 0));
    check(add_sample(block_at(2), 100, WEIGHT_ONE, stack_b, 2, 0));
    check_eq(samples_stack(block_at(3), frames, 4), 0);
    check_eq(samples_stack(block_at(1), frames, 4), 3);
    check(memcmp(frames, stack_a, sizeof stack_a) == 0);
    check_eq(samples_stack(block_at(2), frames, 1), 1);
    samples_remove(block_at(1), 0);
    check_eq(samples_stack(block_at(1), frames, 4), 0);
    samples_remove(block_at(2), 0); /* asking has changed nothing */
    check(!samples_exist());
}

fresh_test(a_block_of_another_size_counts_as_such)
{
    check(samples_create(64));
    check(add_sample(block_at(1), 100, 2 * WEIGHT_ONE, stack_a, 3, 0));
    samples_resize(block_at(1), 300);
    samples_resize(block_at(2), 1000); /* is none */
    site_t site = sum_of(3).found;
    check_eq(site.allocated.bytes, 2 * (100 + 300));
    check_eq(site.freed.bytes, 2 * 100);
    samples_remove(block_at(1), 0);
    site = sum_of(3).found;
    check_eq(site.allocated.bytes, site.freed.bytes);
    check_eq(site.allocated.count, site.freed.count);
    check(!samples_exist());
}

fresh_test(tables_may_be_short)
{
    check(samples_create(64));
    for (size_t number = 0; number < 200; number++)
        check_eq(add_sample(block_at(number), 1, WEIGHT_ONE, stack_a, 3, 0), number < 63);
    for (size_t number = 0; number < 200; number++) samples_remove(block_at(number), 0);
    check(!samples_exist());
}

fresh_test(full_tables_leave_out_and_say_so)
{
    check(samples_create(PROFILE_SAMPLES));
    uint64_t before = samples_left_out();
    unsigned added = 0;
    for (size_t number = 0; number < PROFILE_SAMPLES + 10; number++)
        added += add_sample(block_at(number), 1, WEIGHT_ONE, stack_a, 3, 0);
    check_eq(added, PROFILE_SAMPLES - 1);
    check_eq(samples_left_out() - before, 11);
    for (size_t number = 0; number < PROFILE_SAMPLES + 10; number++)
        samples_remove(block_at(number), 0);
    check(!samples_exist());
    check(add_sample(block_at(1), 1, WEIGHT_ONE, stack_a, 3, 0)); /* there is room again */
    samples_remove(block_at(1), 0);
}

fresh_test(more_stacks_than_there_is_room_for_are_left_out)
{
    check(samples_create(PROFILE_SAMPLES));
    unsigned known = 0;
    for (uintptr_t number = 1; number < PROFILE_SITES + 10; number++) {
        uintptr_t stack[] = {number << 12, number};
        known += add_sample(block_at(1), 1, WEIGHT_ONE, stack, 2, 0);
        samples_remove(block_at(1), 0);
    }
    check_eq(sum_of(2).sites, PROFILE_SITES - 1);
    check_eq(known, PROFILE_SITES - 1);
}

/* ---- the profile ---- */

static unsigned char profile[1 << 20];
static size_t profile_length;

static bool keep(const void *bytes, size_t length, void *context)
{
    (void)context;
    if (profile_length + length > sizeof profile) return false;
    memcpy(profile + profile_length, bytes, length);
    profile_length += length;
    return true;
}

static uint64_t number_at(size_t *at)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        check(*at < profile_length && shift < 64);
        value |= (uint64_t)(profile[*at] & 127) << shift;
        if (profile[(*at)++] < 128) return value;
    }
}

fresh_test(the_stack_of_a_free_is_remembered_until_the_block_is_in_use_again)
{
    static const uintptr_t stack_c[] = {0x7000, 0x8000};
    uintptr_t frames[4];
    check(samples_create(64));
    unsigned before = sum_of(3).sites;
    check(add_sample(block_at(1), 100, WEIGHT_ONE, stack_a, 3, 0));
    samples_note_free(block_at(1), stack_c, 2); /* nobody wants to know */
    samples_remove(block_at(1), 0);
    check_eq(samples_stack(block_at(1), frames, 4), 0);
    check(samples_remember_frees() && samples_remember_frees());
    check(add_sample(block_at(1), 100, WEIGHT_ONE, stack_a, 3, 0));
    check_eq(samples_free_stack(block_at(1), frames, 4), 0);
    samples_note_free(block_at(1), stack_c, 2);
    samples_remove(block_at(1), 0);
    check_eq(samples_stack(block_at(1), frames, 4), 3);
    check_eq(frames[2], stack_a[2]);
    check_eq(samples_free_stack(block_at(1), frames, 1), 1);
    check_eq(frames[0], stack_c[0]);
    check_eq(samples_free_stack(block_at(2), frames, 4), 0);
    check(add_sample(block_at(1), 100, WEIGHT_ONE, stack_b, 2, 0));
    check_eq(samples_stack(block_at(1), frames, 4), 2);
    check_eq(samples_free_stack(block_at(1), frames, 4), 0);
    samples_remove(block_at(1), 0);
    samples_note_free(block_at(1), stack_c, 2); /* of a block that is no sample */
    check_eq(samples_stack(block_at(1), frames, 4), 0);
    check_eq(sum_of(3).sites, before + 2); /* code that frees is none of them */
}

fresh_test(code_that_frees_leaves_room_for_code_that_allocates)
{
    uintptr_t stack[1];
    check(samples_create(64) && samples_remember_frees());
    check(add_sample(block_at(1), 100, WEIGHT_ONE, stack_a, 3, 0));
    for (uintptr_t number = 0; number < PROFILE_SITES; number++) {
        stack[0] = 0x100000 + number;
        samples_note_free(block_at(1), stack, 1);
    }
    uint64_t left_out = samples_left_out();
    for (uintptr_t number = 0; number < PROFILE_SITES / 4; number++) {
        stack[0] = 0x900000 + number;
        check(add_sample(block_at(2), 100, WEIGHT_ONE, stack, 1, 0));
        samples_remove(block_at(2), 0);
    }
    check_eq(samples_left_out(), left_out);
}

fresh_test(without_memory_nobody_remembers_who_has_freed)
{
    uintptr_t frames[4];
    check(samples_create(64));
    fake_os_fail_always(FAKE_MAP);
    check(!samples_remember_frees());
    fake_os_fail_never();
    check(add_sample(block_at(1), 100, WEIGHT_ONE, stack_a, 3, 0));
    samples_note_free(block_at(1), stack_b, 2);
    samples_remove(block_at(1), 0);
    check_eq(samples_free_stack(block_at(1), frames, 4), 0);
}

fresh_test(the_profile_is_well_formed_and_complete)
{
    static const pprof_facts_t facts = {.written_ns = 1, .duration_ns = 2, .mean = 3};
    unsigned counts[16] = {0};
    check(samples_create(PROFILE_SAMPLES));
    check(add_sample(block_at(1), 100, 5 * WEIGHT_ONE, stack_a, 3, 0));
    check(add_sample(block_at(3), 7, 2 * WEIGHT_ONE, stack_b, 2, 0));
    const uintptr_t stack_of_code[] = {(uintptr_t)keep, (uintptr_t)number_at};
    check(add_sample(block_at(4), 7, 2 * WEIGHT_ONE, stack_of_code, 2, 0));
    unsigned sites = sum_of(3).sites;
    profile_length = 0;
    check_eq(pprof_write(&facts, keep, NULL), PPROF_DONE);
    for (size_t at = 0; at < profile_length;) {
        uint64_t tag = number_at(&at);
        check(tag >> 3 > 0 && tag >> 3 < 16 && ((tag & 7) == 0 || (tag & 7) == 2));
        counts[tag >> 3]++;
        uint64_t value = number_at(&at);
        if ((tag & 7) == 2) at += value;
        check(at <= profile_length);
    }
    check_eq(counts[1], 8);     /* kinds of values */
    check_eq(counts[2], sites); /* stacks */
    check(counts[3] > 0);       /* mappings: this program */
    check_eq(counts[4], 5);     /* addresses: two of code, three of none */
    check_eq(counts[12], 1);
    samples_remove(block_at(1), 0);
    samples_remove(block_at(3), 0);
    samples_remove(block_at(4), 0);
}

fresh_test(a_sink_that_refuses_and_missing_memory_are_told)
{
    static const pprof_facts_t facts = {0};
    check(samples_create(PROFILE_SAMPLES));
    profile_length = sizeof profile;
    fake_os_fail_always(FAKE_MAP);
    check_eq(pprof_write(&facts, keep, NULL), PPROF_NO_MEMORY);
    fake_os_fail_never();
    check_eq(pprof_write(&facts, keep, NULL), PPROF_REFUSED);
}

fresh_test(what_was_prepared_serves_again_and_again_without_memory)
{
    static const pprof_facts_t facts = {0};
    check(samples_create(PROFILE_SAMPLES));
    pprof_prepare();
    fake_os_fail_always(FAKE_MAP);
    for (unsigned turn = 0; turn < 3; turn++) {
        profile_length = 0;
        check_eq(pprof_write(&facts, keep, NULL), PPROF_DONE);
    }
}

check_main()
