/* Fitted size classes. See class_fit.h.
 *
 * Requests are counted where a thread takes a bin full of blocks from the slabs, all of them for
 * the size of the request that missed. What goes round between the program and its bins is not
 * counted: it takes no memory. Counts are written without a lock, and now and then one is lost. */
#include "slab/class_fit.h"

#include "base/bits.h"
#include "options/options.h"
#include "options/tuning.h"
#include "slab/central_list.h"

/* Of the widest class, the last one. */
#define GRANULES_OF_A_CLASS (GRANULE_COUNT / 16)

/* What one fixed class has seen since a class was last made of it. */
typedef struct fit_seen {
    uint32_t blocks;
    uint32_t next_look; /* blocks, when the next look is due */
} fit_seen_t;

/* Of classes, by the order in which they were made; those of groups are no fits and have no size.
 * Decisions are made under size_classes_lock. */
static struct {
    uint32_t counts[GRANULE_COUNT];
    fit_seen_t seen[FIXED_CLASS_COUNT];
    fit_t fits[MADE_CLASSES_MOST];
    uint32_t taken[MADE_CLASSES_MOST];  /* blocks, since that was last judged */
    uint32_t others[MADE_CLASSES_MOST]; /* likewise, of its fixed class */
} class_fit_state SPARSE;

static uint32_t fit_read(const uint32_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

static void fit_set(uint32_t *count, uint32_t value)
{
    __atomic_store_n(count, value, __ATOMIC_RELAXED);
}

/* No sum needs to be exact. */
static uint32_t fit_add(uint32_t *count, uint32_t more)
{
    uint32_t sum = fit_read(count) + more;
    fit_set(count, sum);
    return sum;
}

fit_proposal_t fit_propose(const fit_demand_t *demand)
{
    fit_proposal_t best = {.size = 0};
    uint32_t counts[GRANULES_OF_A_CLASS]; /* others go on counting */
    size_t fixed_bytes = size_class_bytes_per_block(size_classes[demand->fixed].size);
    uint64_t total = 0;
    for (size_t at = 0; at < demand->length; at++) {
        counts[at] = demand->numbers[at] == demand->fixed ? fit_read(&demand->counts[at]) : 0;
        total += counts[at];
    }
    for (size_t top = 0; top < demand->length; top++) {
        size_t size = (demand->first + top + 1) << GRANULE_SHIFT;
        size_t bytes = size_class_bytes_per_block(size);
        uint64_t share = 0;
        if (counts[top] == 0 || bytes >= fixed_bytes)
            continue;
        for (size_t at = 0; at <= top; at++)
            if (size_class_fits(size, (demand->first + at + 1) << GRANULE_SHIFT))
                share += counts[at];
        if (share * (fixed_bytes - bytes) > best.saved)
            best = (fit_proposal_t){size, share * (fixed_bytes - bytes), share, total};
    }
    return best;
}

/* The classes that serve, as size_class_map wants them. */
static uint64_t class_fit_wanted(void)
{
    uint64_t wanted = 0;
    for (unsigned index = 0; index < MADE_CLASSES_MOST; index++)
        if (class_fit_state.fits[index].size != 0 &&
            class_fit_state.fits[index].state != FIT_WITHDRAWN)
            wanted |= (uint64_t)1 << index;
    return wanted;
}

/* Do the requests come that a fitted class was made for? */
static void class_fit_judge(unsigned fixed, unsigned index)
{
    fit_t *fit = &class_fit_state.fits[index];
    uint64_t taken = fit_read(&class_fit_state.taken[index]);
    uint64_t all = taken + fit_read(&class_fit_state.others[index]);
    if (fit->state == FIT_WITHDRAWN || all * fit->size < FIT_CANARY_BYTES)
        return;
    fit->counted = (uint32_t)(taken * 1024 / all);
    if (fit->counted < fit->share / (fit->state == FIT_CANARY ? FIT_CANARY_PART : FIT_FROZEN_PART))
        fit->state = FIT_WITHDRAWN;
    else
        fit->state = FIT_FROZEN;
    fit_set(&class_fit_state.taken[index], 0);
    fit_set(&class_fit_state.others[index], 0);
    size_class_map(fixed, class_fit_wanted());
}

/* Divides what was counted for the fixed class. */
static void class_fit_fade(const fit_demand_t *demand, uint32_t divisor)
{
    uint32_t sum = 0;
    for (size_t at = 0; at < demand->length; at++) {
        uint32_t *count = &class_fit_state.counts[demand->first + at];
        fit_set(count, fit_read(count) / divisor);
        sum += fit_read(count);
    }
    fit_set(&class_fit_state.seen[demand->fixed].blocks, sum);
}

static bool class_fit_may_make_more(unsigned made)
{
    unsigned count = 0;
    for (unsigned index = 0; index < made; index++)
        count += class_fit_state.fits[index].size != 0;
    return made < MADE_CLASSES_MOST && count < FITTED_CLASSES_MOST;
}

static void class_fit_make(const fit_demand_t *demand, const fit_proposal_t *proposal,
                           uint64_t bytes)
{
    unsigned made = size_class_count - FIXED_CLASS_COUNT;
    unsigned index = 0;
    while (index < made && class_fit_state.fits[index].size != proposal->size)
        index++; /* one that was withdrawn serves again */
    if (index == made && !class_fit_may_make_more(made))
        return;
    fit_t *fit = &class_fit_state.fits[index];
    if (index == made) { /* written once: class_fit_note reads them without the lock */
        fit->size = (uint32_t)proposal->size;
        fit->fixed_size = size_classes[demand->fixed].size;
    }
    fit->state = FIT_CANARY;
    fit->share = (uint32_t)(proposal->share * 1024 / proposal->total);
    fit->counted = 0;
    fit->predicted_bytes = bytes;
    fit_set(&class_fit_state.taken[index], 0);
    fit_set(&class_fit_state.others[index], 0);
    if (index == made) /* those who count see it with the class */
        (void)size_class_make(proposal->size, 0);
    size_class_map(demand->fixed, class_fit_wanted());
    class_fit_fade(demand, UINT32_MAX);
}

/* The caller holds the lock. */
static void class_fit_look(unsigned fixed)
{
    size_t end = granule_of(size_classes[fixed].size) + 1;
    size_t first = granule_of(size_classes[fixed - 1].size) + 1;
    fit_demand_t demand = {.first = first,
                           .length = end - first,
                           .counts = class_fit_state.counts + first,
                           .numbers = size_class_numbers + first,
                           .fixed = fixed};
    for (unsigned index = 0; index < MADE_CLASSES_MOST; index++)
        if (class_fit_state.fits[index].fixed_size == size_classes[fixed].size)
            class_fit_judge(fixed, index);
    fit_proposal_t proposal = fit_propose(&demand);
    if (fit_read(&class_fit_state.seen[fixed].blocks) >= FIT_BLOCKS_MOST)
        class_fit_fade(&demand, 2);
    if (proposal.size == 0 || size_class_is_closed(fixed))
        return;
    central_statistics_t central = central_list_statistics(fixed);
    size_t live = central.block_count - smaller_of(central.block_count, central.free_count);
    uint64_t saved = proposal.saved * smaller_of(live, proposal.total) / proposal.total;
    if (saved >= (uint64_t)FIT_WORTH_SLABS * size_classes[fixed].unit_count * UNIT_SIZE)
        class_fit_make(&demand, &proposal, saved);
}

/* Between two looks a class takes an eighth more blocks than before, some slabs at least. */
static NOINLINE void class_fit_look_if_due(unsigned fixed)
{
    fit_seen_t *seen = &class_fit_state.seen[fixed];
    uint32_t least = (uint32_t)FIT_LOOK_SLABS * size_classes[fixed].block_count;
    if (!lock_try(&size_classes_lock))
        return;
    if (fit_read(&seen->next_look) != 0)
        class_fit_look(fixed);
    uint32_t blocks = fit_read(&seen->blocks);
    fit_set(&seen->next_look, blocks + (uint32_t)larger_of(blocks / 8, least));
    lock_release(&size_classes_lock);
}

unsigned class_fit_list(fit_t fits[FITTED_CLASSES_MOST])
{
    unsigned count = 0;
    lock_acquire(&size_classes_lock);
    for (unsigned index = 0; index < MADE_CLASSES_MOST; index++)
        if (class_fit_state.fits[index].size != 0)
            fits[count++] = class_fit_state.fits[index];
    lock_release(&size_classes_lock);
    return count;
}

void class_fit_close(unsigned fixed)
{
    lock_acquire(&size_classes_lock);
    for (unsigned index = 0; index < MADE_CLASSES_MOST; index++)
        if (class_fit_state.fits[index].fixed_size == size_classes[fixed].size)
            class_fit_state.fits[index].state = FIT_WITHDRAWN;
    size_class_map(fixed, class_fit_wanted());
    size_class_close(fixed);
    lock_release(&size_classes_lock);
}

void class_fit_note(size_t size, unsigned class, unsigned count)
{
    if (size <= FIT_ABOVE || !options.fit_classes || size_classes[class].group != 0)
        return;
    unsigned fixed = size_class_fixed_of(size);
    (void)fit_add(&class_fit_state.counts[granule_of(size)], count);
    if (class >= FIXED_CLASS_COUNT)
        (void)fit_add(&class_fit_state.taken[class - FIXED_CLASS_COUNT], count);
    for (unsigned index = 0; index + FIXED_CLASS_COUNT < size_classes_made(); index++)
        if (class == fixed && class_fit_state.fits[index].fixed_size == size_classes[fixed].size)
            (void)fit_add(&class_fit_state.others[index], count);
    fit_seen_t *seen = &class_fit_state.seen[fixed];
    if (UNLIKELY(fit_add(&seen->blocks, count) >= fit_read(&seen->next_look)))
        class_fit_look_if_due(fixed);
}
