/* Depots. See depot.h. */
#include "cache/depot.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/config.h"
#include "base/count.h"
#include "os/lock.h"
#include "os/meta.h"
#include "options/tuning.h"
#include "slab/central_list.h"

typedef struct depot {
    lock_t lock;
    uint32_t full_count;
    uint32_t empty_count;
    uint32_t least_full; /* fewest full ones since the last trim: nobody wanted these */
    size_t published_bytes; /* its part of depots_total */
    magazine_t *full;    /* last in, first out: the warmest blocks first */
    magazine_t *empty;
} __attribute__((aligned(CACHE_LINE))) depot_t;

shared_total_t depots_total;

static struct {
    depot_t depots[CLASS_COUNT];
    size_t next; /* index of the depot that gives up first; written by any thread: a guess */
} depot_state SPARSE;

void depots_create(void)
{
    /* The rest is zero, and stays untouched for the classes that a program does not use. */
    for (unsigned class = 0; config_checked && class < CLASS_COUNT; class++)
        depot_state.depots[class].lock.rank = LOCK_DEPOT;
}

static void magazine_push(magazine_t **stack, magazine_t *magazine)
{
    magazine->next = *stack;
    *stack = magazine;
}

/* Bytes in so many full magazines. */
static size_t magazine_bytes(const depot_t *depot, uint32_t count)
{
    const size_class_t *shape = &size_classes[depot - depot_state.depots];
    return (size_t)count * shape->bin_max * shape->size;
}

static void depot_set_full_count(depot_t *depot, uint32_t count)
{
    MUST(lock_is_held(&depot->lock));
    /* relaxed: read without the lock by those who only look */
    __atomic_store_n(&depot->full_count, count, __ATOMIC_RELAXED);
    shared_total_publish(&depots_total, &depot->published_bytes, magazine_bytes(depot, count),
                         CLASS_COUNT);
}

static magazine_t *magazine_pop(magazine_t **stack)
{
    magazine_t *magazine = *stack;
    if (magazine != NULL)
        *stack = magazine->next;
    return magazine;
}

magazine_t *magazine_create(void)
{
    return meta_alloc(MAGAZINE_SIZE);
}

void magazine_destroy(magazine_t *magazine)
{
    MUST(magazine->bottom == NULL);
    meta_free(magazine, MAGAZINE_SIZE);
}

void magazine_fill(magazine_t *magazine, unsigned class, unsigned count)
{
    void **end = magazine->slots + count;
    unsigned taken = central_list_take(class, end, count);
    if (taken < count)
        memmove(magazine->slots, end - taken, taken * sizeof(void *));
    magazine->count = taken;
}

magazine_t *depot_take(unsigned class, magazine_t *empty)
{
    depot_t *depot = &depot_state.depots[class];
    /* A look without the lock: nothing is lost by missing a magazine that is just being left. */
    if (__atomic_load_n(&depot->full_count, __ATOMIC_RELAXED) == 0)
        return NULL;
    lock_acquire(&depot->lock);
    magazine_t *full = magazine_pop(&depot->full);
    if (full != NULL) {
        depot_set_full_count(depot, depot->full_count - 1);
        if (depot->full_count < depot->least_full)
            depot->least_full = depot->full_count;
        if (empty != NULL && depot->empty_count < EMPTIES_KEPT) {
            magazine_push(&depot->empty, empty);
            depot->empty_count++;
            empty = NULL;
        }
    }
    lock_release(&depot->lock);
    if (full != NULL && empty != NULL)
        magazine_destroy(empty);
    return full;
}

static void magazine_send_down(unsigned class, magazine_t *magazine)
{
    central_list_give(class, magazine->slots, (unsigned)magazine->count);
    magazine->count = 0;
}

static void depot_push(depot_t *depot, magazine_t *full)
{
    magazine_push(&depot->full, full);
    depot_set_full_count(depot, depot->full_count + 1);
}

/* The depot has no empty magazine to give: takes one from elsewhere first. Others may have filled
 * the depot meanwhile; a magazine more per thread is no harm. */
static NOINLINE magazine_t *depot_give_for_new_one(depot_t *depot, unsigned class, magazine_t *full)
{
    magazine_t *empty = magazine_create();
    if (empty == NULL) {
        magazine_send_down(class, full);
        return full;
    }
    lock_acquire(&depot->lock);
    depot_push(depot, full);
    lock_release(&depot->lock);
    return empty;
}

/* Do its blocks lie side by side, in order or against it? Some of the pairs are looked at. */
static bool magazine_is_in_order(const magazine_t *magazine, unsigned class)
{
    size_t size = size_classes[class].size;
    unsigned breaks = 0;
    for (size_t index = 1; index < magazine->count; index += ORDER_STEP) {
        size_t step = (uintptr_t)magazine->slots[index] - (uintptr_t)magazine->slots[index - 1];
        breaks += (step != size) & (step != -size);
    }
    return breaks <= ORDER_BREAKS;
}

/* Blocks in no order find little room, unless others are at the slabs just now. */
static uint32_t depot_room_for(const magazine_t *magazine, unsigned class)
{
    uint32_t room = size_classes[class].depot_max;
    if (magazine_is_in_order(magazine, class) || central_list_is_busy(class))
        return room;
    return (uint32_t)smaller_of(room, larger_of(room / DEPOT_SCATTERED_SHARE, DEPOT_LEAST));
}

magazine_t *depot_give(unsigned class, magazine_t *full)
{
    depot_t *depot = &depot_state.depots[class];
    uint32_t room = depot_room_for(full, class);
    lock_acquire(&depot->lock);
    bool has_room = depot->full_count < room;
    magazine_t *empty = has_room ? magazine_pop(&depot->empty) : NULL;
    if (empty != NULL) {
        depot->empty_count--;
        depot_push(depot, full);
    }
    lock_release(&depot->lock);
    if (empty != NULL)
        return empty;
    if (has_room)
        return depot_give_for_new_one(depot, class, full);
    magazine_send_down(class, full);
    return full;
}

static void depot_trim(depot_t *depot, unsigned class, bool all)
{
    magazine_t *leaving = NULL;
    if (__atomic_load_n(&depot->full_count, __ATOMIC_RELAXED) == 0) /* a look is enough */
        return;
    lock_acquire(&depot->lock);
    uint32_t leaving_count = all ? depot->full_count : depot->least_full;
    depot_set_full_count(depot, depot->full_count - leaving_count);
    depot->least_full = depot->full_count;
    /* The warmest stand in front and stay. */
    magazine_t **cut = &depot->full;
    for (uint32_t staying = depot->full_count; staying > 0; staying--)
        cut = &(*cut)->next;
    leaving = *cut;
    *cut = NULL;
    lock_release(&depot->lock);
    while (leaving != NULL) {
        magazine_t *magazine = magazine_pop(&leaving);
        central_list_give_idle(class, magazine->slots, (unsigned)magazine->count);
        magazine->count = 0;
        magazine_destroy(magazine);
    }
}

void depots_trim(bool all)
{
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        depot_trim(&depot_state.depots[class], class, all);
}

/* One class after another has its turn. */
size_t depots_give_up(size_t most_bytes)
{
    size_t sum = 0;
    size_t first = count_read(&depot_state.next);
    unsigned classes = size_classes_made();
    for (size_t step = 0; step < classes && sum < most_bytes; step++) {
        unsigned class = (unsigned)((first + step) % classes);
        magazine_t *magazine = depot_take(class, NULL);
        if (magazine == NULL)
            continue;
        sum += magazine->count * size_classes[class].size;
        magazine_send_down(class, magazine);
        magazine_destroy(magazine);
        /* relaxed: a guess */
        __atomic_store_n(&depot_state.next, class, __ATOMIC_RELAXED);
    }
    return sum;
}

size_t depot_block_count(unsigned class)
{
    depot_t *depot = &depot_state.depots[class];
    size_t count = 0;
    lock_acquire(&depot->lock);
    for (const magazine_t *magazine = depot->full; magazine != NULL; magazine = magazine->next)
        count += magazine->count;
    lock_release(&depot->lock);
    return count;
}

static bool depot_is_valid(const depot_t *depot)
{
    uint32_t full_count = 0;
    uint32_t empty_count = 0;
    for (const magazine_t *magazine = depot->full; magazine != NULL; magazine = magazine->next) {
        if (magazine->count == 0 || magazine->count > MAGAZINE_SLOTS || magazine->bottom != NULL)
            return false;
        full_count++;
    }
    for (const magazine_t *magazine = depot->empty; magazine != NULL; magazine = magazine->next)
        empty_count++;
    return full_count == depot->full_count && empty_count == depot->empty_count &&
           depot->least_full <= full_count && empty_count <= EMPTIES_KEPT &&
           shared_total_is_near(depot->published_bytes, magazine_bytes(depot, full_count),
                                CLASS_COUNT);
}

bool depots_are_valid(void)
{
    bool are_valid = true;
    unsigned end = size_classes_made(); /* one that is made meanwhile has no shape yet */
    for (unsigned class = 1; class < end; class++) {
        depot_t *depot = &depot_state.depots[class];
        lock_acquire(&depot->lock);
        are_valid &= depot_is_valid(depot);
        lock_release(&depot->lock);
    }
    return are_valid;
}

void depots_at_fork(fork_phase_t phase)
{
    for (unsigned class = 0; class < CLASS_COUNT; class++)
        lock_at_fork(&depot_state.depots[class].lock, phase);
}
