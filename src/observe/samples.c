/* The samples of a profile. See samples.h. */
#include "observe/samples.h"

#include "base/bits.h"
#include "base/count.h"
#include "observe/sampler.h"
#include "os/os.h"

#define SITE_BUCKETS (PROFILE_SITES / 8)

/* A sampled block in use. Number 0 is none. */
typedef struct sample {
    uintptr_t block;
    size_t size;
    uint64_t weight;
    uint64_t allocated_ms;
    uint32_t site;
    uint32_t next; /* of the same bucket, or free */
    uint64_t thread; /* 0: realloc has moved the block, and only its end counts (samples_follow) */
} sample_t;

/* A sampled block that was freed: numbers of sites. */
typedef struct freed_block {
    uintptr_t block;
    uint32_t allocated_by;
    uint32_t freed_by;
} freed_block_t;

/* A small profile touches few pages: all but buckets fill in the order in which things come. */
typedef struct tables {
    uint32_t site_buckets[SITE_BUCKETS]; /* by hash: the number of the last site; 0: none */
    site_t sites[PROFILE_SITES];         /* number 0 is none */
    uintptr_t frames[PROFILE_FRAMES];
    sample_t samples[]; /* behind them the buckets */
} tables_t;

_Static_assert((PROFILE_SITES & (PROFILE_SITES - 1)) == 0, "hashes are cut by a mask");
_Static_assert((PROFILE_SAMPLES & (PROFILE_SAMPLES - 1)) == 0, "hashes are cut by a mask");
_Static_assert((LEAK_BLOCKS & (LEAK_BLOCKS - 1)) == 0, "hashes are cut by a mask");

/* The lock protects all of it; live_count is also read without the lock. */
static struct {
    lock_t lock;
    tables_t *tables;            /* NULL: not mapped yet */
    freed_block_t *freed_blocks; /* by hash; a later block replaces one that has its place */
    uint32_t *buckets;           /* number of the first sample of each */
    size_t sample_room;          /* how many samples and buckets there are */
    uint32_t site_count; /* the last number */
    size_t frame_count;
    size_t live_count;     /* samples whose block is in use */
    uint64_t left_out;     /* samples that found no room */
    uint64_t thread_count; /* threads that have a number */
    uint32_t ever_used;    /* samples from this number on were never used */
    uint32_t first_free;   /* of those that were used and are free; 0: none */
} samples_state = {.lock = LOCK_INITIAL(LOCK_SAMPLES), .ever_used = 1};

/* The caller holds the lock. */
static uint64_t samples_this_thread(void)
{
    if (sampler_own.thread == 0)
        sampler_own.thread = ++samples_state.thread_count;
    return sampler_own.thread;
}

/* The caller holds the lock. */
static void samples_map_tables(size_t room)
{
    size_t size = sizeof *samples_state.tables +
                  room * (sizeof *samples_state.tables->samples + sizeof *samples_state.buckets);
    samples_state.tables = os_map(align_up(size, os_page_size()));
    if (samples_state.tables == NULL)
        return;
    samples_state.buckets = (uint32_t *)(void *)(samples_state.tables->samples + room);
    samples_state.sample_room = room;
}

bool samples_create(size_t most_in_use)
{
    lock_acquire(&samples_state.lock);
    if (samples_state.tables == NULL)
        samples_map_tables(most_in_use);
    lock_release(&samples_state.lock);
    return samples_state.tables != NULL;
}

bool samples_exist(void)
{
    return count_read(&samples_state.live_count) != 0;
}

/* ---- sites ---- */

static uint64_t hash_of_stack(const uintptr_t *frames, unsigned depth, size_t block_size)
{
    uint64_t hash = block_size;
    for (unsigned index = 0; index < depth; index++) {
        hash = (hash ^ frames[index]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static bool site_matches(const site_t *site, const site_t *wanted, const uintptr_t *frames)
{
    if (site->hash != wanted->hash || site->depth != wanted->depth ||
        site->block_size != wanted->block_size)
        return false;
    const uintptr_t *own = &samples_state.tables->frames[site->first_frame];
    for (unsigned index = 0; index < wanted->depth; index++)
        if (own[index] != frames[index])
            return false;
    return true;
}

/* `block_size` 0: of calls that free. NULL: no room. */
static site_t *site_provide(const uintptr_t *frames, unsigned depth, size_t block_size)
{
    site_t wanted = {.hash = hash_of_stack(frames, depth, block_size),
                     .block_size = block_size,
                     .first_frame = (uint32_t)samples_state.frame_count,
                     .depth = depth};
    uint32_t *bucket = &samples_state.tables->site_buckets[wanted.hash % SITE_BUCKETS];
    for (uint32_t number = wanted.next = *bucket; number != 0;) {
        site_t *site = &samples_state.tables->sites[number];
        if (site_matches(site, &wanted, frames))
            return site;
        number = site->next;
    }
    size_t share = block_size == 0 ? 3 : 1; /* most are for calls that allocate */
    if (samples_state.site_count + 1 >= PROFILE_SITES / share ||
        samples_state.frame_count + depth > PROFILE_FRAMES / share)
        return NULL;
    for (unsigned index = 0; index < depth; index++)
        samples_state.tables->frames[samples_state.frame_count++] = frames[index];
    *bucket = ++samples_state.site_count;
    samples_state.tables->sites[*bucket] = wanted;
    return &samples_state.tables->sites[*bucket];
}

/* ---- sampled blocks ---- */

/* Nearly all begin at a unit of their own: those of near units are near. */
static size_t hash_of_block(uintptr_t block)
{
    return (block >> UNIT_SHIFT) +
           (size_t)((uint64_t)(block % UNIT_SIZE) * 0x9e3779b97f4a7c15u >> 32);
}

static uint32_t *bucket_of(uintptr_t block)
{
    return &samples_state.buckets[hash_of_block(block) & (samples_state.sample_room - 1)];
}

/* Under its block. */
static void sample_insert(uint32_t number)
{
    sample_t *sample = &samples_state.tables->samples[number];
    uint32_t *bucket = bucket_of(sample->block);
    sample->next = *bucket;
    *bucket = number;
}

/* The number of a sample of the block, which is in no bucket then; 0: it has none. The
 * samples of blocks that realloc has moved there are samples of it too. */
static uint32_t sample_take_out(const void *block)
{
    if (samples_state.tables == NULL)
        return 0;
    uint32_t *link = bucket_of((uintptr_t)block);
    while (*link != 0 && samples_state.tables->samples[*link].block != (uintptr_t)block)
        link = &samples_state.tables->samples[*link].next;
    uint32_t number = *link;
    if (number != 0)
        *link = samples_state.tables->samples[number].next;
    return number;
}

/* The number of the sample that the block is; 0: it is none. */
static uint32_t sample_find(const void *block)
{
    uint32_t number = samples_state.tables == NULL ? 0 : *bucket_of((uintptr_t)block);
    while (number != 0 && (samples_state.tables->samples[number].block != (uintptr_t)block ||
                           samples_state.tables->samples[number].thread == 0))
        number = samples_state.tables->samples[number].next;
    return number;
}

/* The number of an unused sample; 0: there is none. */
static uint32_t sample_provide(void)
{
    uint32_t number = samples_state.first_free;
    if (number != 0)
        samples_state.first_free = samples_state.tables->samples[number].next;
    else if (samples_state.ever_used < samples_state.sample_room)
        number = samples_state.ever_used++;
    return number;
}

static uint64_t sample_bytes(const sample_t *sample)
{
    return sample->weight * sample->size / WEIGHT_ONE;
}

static void amount_add(amount_t *amount, const sample_t *sample)
{
    amount->count += sample->weight;
    amount->bytes += sample_bytes(sample);
}

/* Slots that differ from sample to sample are unknown: a function has frames of several lengths. */
static void site_note_call(site_t *site, const sampled_t *sampled)
{
    bool is_first = site->allocated.count == 0;
    site->is_unnamed |= sampled->is_unnamed;
    for (unsigned index = 0; index < SITE_FRAMES_MOST - 1; index++)
        if (is_first)
            site->slots[index] = sampled->slots[index];
        else if (site->slots[index] != sampled->slots[index])
            site->slots[index] = 0;
}

/* The caller holds the lock. */
static bool samples_add_locked(const sampled_t *sampled, const uintptr_t *frames, unsigned depth)
{
    site_t *site = site_provide(frames, depth, sampled->block_size);
    uint32_t number = site == NULL ? 0 : sample_provide();
    if (number == 0)
        return false;
    sample_t *sample = &samples_state.tables->samples[number];
    *sample = (sample_t){.block = (uintptr_t)sampled->block,
                         .size = sampled->size,
                         .weight = sampled->weight,
                         .allocated_ms = sampled->now_ms,
                         .thread = samples_this_thread(),
                         .site = (uint32_t)(site - samples_state.tables->sites)};
    sample_insert(number);
    count_add(&samples_state.live_count, 1);
    site_note_call(site, sampled);
    amount_add(&site->allocated, sample);
    return true;
}

bool samples_add(const sampled_t *sampled, const uintptr_t *frames, unsigned depth)
{
    lock_acquire(&samples_state.lock);
    bool is_added =
        samples_state.tables != NULL && depth != 0 && samples_add_locked(sampled, frames, depth);
    samples_state.left_out += !is_added;
    lock_release(&samples_state.lock);
    return is_added;
}

/* The block of the sample was freed, or moved. The caller holds the lock. */
static void sample_note_freed(const sample_t *sample, uint64_t now_ms)
{
    site_t *site = &samples_state.tables->sites[sample->site];
    uint64_t age_ms = now_ms > sample->allocated_ms ? now_ms - sample->allocated_ms : 0;
    if (sample->thread == 0) /* that was noted when it was moved */
        return;
    amount_add(&site->freed, sample);
    if (sample->thread != samples_this_thread())
        amount_add(&site->freed_elsewhere, sample);
    site->lifetime_ms += age_ms * (sample->weight / WEIGHT_ONE) +
                         age_ms * (sample->weight % WEIGHT_ONE) / WEIGHT_ONE;
}

/* The caller holds the lock. */
static void sample_end(uint32_t number)
{
    sample_t *sample = &samples_state.tables->samples[number];
    samples_state.tables->sites[sample->site].ended += sample_bytes(sample);
    sample->block = 0;
    sample->next = samples_state.first_free;
    samples_state.first_free = number;
    count_subtract(&samples_state.live_count, 1);
}

void samples_remove(const void *block, uint64_t now_ms)
{
    uint32_t number;
    lock_acquire(&samples_state.lock);
    while ((number = sample_take_out(block)) != 0) {
        sample_note_freed(&samples_state.tables->samples[number], now_ms);
        sample_end(number);
    }
    lock_release(&samples_state.lock);
}

void samples_move(const void *from, const void *to)
{
    uint32_t number;
    lock_acquire(&samples_state.lock);
    while (from != to && (number = sample_take_out(from)) != 0) {
        samples_state.tables->samples[number].block = (uintptr_t)to;
        sample_insert(number);
    }
    lock_release(&samples_state.lock);
}

bool samples_have(const void *block)
{
    lock_acquire(&samples_state.lock);
    uint32_t number = sample_take_out(block);
    if (number != 0)
        sample_insert(number);
    lock_release(&samples_state.lock);
    return number != 0;
}

void samples_follow(const void *from, const void *to, uint64_t now_ms)
{
    uint32_t number;
    lock_acquire(&samples_state.lock);
    for (unsigned count = 0; (number = sample_take_out(from)) != 0; count++) {
        sample_t *sample = &samples_state.tables->samples[number];
        sample_note_freed(sample, now_ms);
        if (sample->size > SITE_SIZE_MOST || count >= FOLLOWED_MOST) {
            sample_end(number);
            continue;
        }
        sample->thread = 0;
        sample->block = (uintptr_t)to;
        sample_insert(number);
    }
    lock_release(&samples_state.lock);
}

void samples_resize(const void *block, size_t size)
{
    lock_acquire(&samples_state.lock);
    uint32_t number = sample_find(block);
    if (number != 0) {
        sample_t *sample = &samples_state.tables->samples[number];
        site_t *site = &samples_state.tables->sites[sample->site];
        amount_add(&site->freed, sample);
        site->ended += sample_bytes(sample);
        sample->size = size;
        amount_add(&site->allocated, sample);
    }
    lock_release(&samples_state.lock);
}

/* ---- stacks of single blocks ---- */

bool samples_remember_frees(void)
{
    lock_acquire(&samples_state.lock);
    if (samples_state.freed_blocks == NULL)
        samples_state.freed_blocks =
            os_map(align_up(PROFILE_SITES * sizeof *samples_state.freed_blocks, os_page_size()));
    lock_release(&samples_state.lock);
    return samples_state.freed_blocks != NULL;
}

static freed_block_t *freed_place(const void *block)
{
    return &samples_state.freed_blocks[hash_of_block((uintptr_t)block) & (PROFILE_SITES - 1)];
}

/* NULL: it is not remembered. The caller holds the lock. */
static const freed_block_t *freed_find(const void *block)
{
    const freed_block_t *freed = samples_state.freed_blocks == NULL ? NULL : freed_place(block);
    return freed != NULL && freed->block == (uintptr_t)block ? freed : NULL;
}

void samples_note_free(const void *block, const uintptr_t *frames, unsigned depth)
{
    lock_acquire(&samples_state.lock);
    uint32_t number = samples_state.freed_blocks != NULL && depth != 0 ? sample_find(block) : 0;
    const site_t *site = number == 0 ? NULL : site_provide(frames, depth, 0);
    if (site != NULL)
        *freed_place(block) =
            (freed_block_t){.block = (uintptr_t)block,
                            .allocated_by = samples_state.tables->samples[number].site,
                            .freed_by = (uint32_t)(site - samples_state.tables->sites)};
    else if (freed_find(block) != NULL) /* what is known is of an earlier block there */
        *freed_place(block) = (freed_block_t){.block = 0};
    lock_release(&samples_state.lock);
}

/* The caller holds the lock. */
static unsigned site_copy_stack(uint32_t site_number, uintptr_t *frames, unsigned most)
{
    const site_t *site = &samples_state.tables->sites[site_number];
    unsigned depth = 0;
    for (; depth < site->depth && depth < most; depth++)
        frames[depth] = samples_state.tables->frames[site->first_frame + depth];
    return depth;
}

unsigned samples_stack(const void *block, uintptr_t *frames, unsigned most)
{
    unsigned depth = 0;
    lock_acquire(&samples_state.lock);
    uint32_t number = sample_find(block);
    const freed_block_t *freed = freed_find(block);
    if (number != 0)
        depth = site_copy_stack(samples_state.tables->samples[number].site, frames, most);
    else if (freed != NULL)
        depth = site_copy_stack(freed->allocated_by, frames, most);
    lock_release(&samples_state.lock);
    return depth;
}

unsigned samples_free_stack(const void *block, uintptr_t *frames, unsigned most)
{
    unsigned depth = 0;
    lock_acquire(&samples_state.lock);
    const freed_block_t *freed = freed_find(block);
    if (freed != NULL && sample_find(block) == 0)
        depth = site_copy_stack(freed->freed_by, frames, most);
    lock_release(&samples_state.lock);
    return depth;
}

/* ---- all of them ---- */

/* The samples weigh nothing from now on, so that their frees change no amount. */
void samples_leave_to_parent(void)
{
    lock_acquire(&samples_state.lock);
    for (uint32_t number = 1; samples_state.tables != NULL && number < samples_state.ever_used;
         number++)
        samples_state.tables->samples[number].weight = 0;
    for (uint32_t number = 1; number <= samples_state.site_count; number++) {
        site_t *site = &samples_state.tables->sites[number];
        site->allocated = site->freed = site->freed_elsewhere = (amount_t){0};
        site->lifetime_ms = site->ended = 0;
    }
    samples_state.left_out = 0;
    lock_release(&samples_state.lock);
}

void samples_visit(site_visitor_t visit, void *context)
{
    lock_acquire(&samples_state.lock);
    for (uint32_t number = 1; number <= samples_state.site_count; number++) {
        const site_t *site = &samples_state.tables->sites[number];
        if (site->allocated.count != 0)
            visit(site, &samples_state.tables->frames[site->first_frame], context);
    }
    lock_release(&samples_state.lock);
}

uint64_t samples_left_out(void)
{
    lock_acquire(&samples_state.lock);
    uint64_t count = samples_state.left_out;
    lock_release(&samples_state.lock);
    return count;
}

void samples_at_fork(fork_phase_t phase)
{
    lock_at_fork(&samples_state.lock, phase);
}
