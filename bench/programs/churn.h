/*
 * The slot loop: each step picks a slot at random; a full slot is freed, an empty one is filled
 * with a block of random size. One step is one operation. bench_random_mixed, bench_mid_large_mt
 * and bench_vm_mixed are this loop; bench_aligned and bench_tail write it out their own way.
 */
#ifndef CHURN_H
#define CHURN_H

#include "bench.h"

#include <stdlib.h>

typedef struct churn {
    unsigned char **slots;
    uint64_t slot_count;
    uint64_t cycles;
    uint64_t least_size;
    uint64_t size_range; /* most - least + 1 */
    touch_t touch;
    bench_random_t random;
} churn_t;

static inline churn_t churn_create(uint64_t cycles, uint64_t slot_count, uint64_t least_size,
                                   uint64_t most_size, bench_random_t random)
{
    return (churn_t){.slots = bench_map(slot_count, sizeof(unsigned char *)),
                     .slot_count = slot_count,
                     .cycles = cycles,
                     .least_size = least_size,
                     .size_range = most_size - least_size + 1,
                     .random = random};
}

/* Low half of the random bits: the slot. High half: the size. */
static inline void churn_run(churn_t *churn)
{
    bench_random_t random = churn->random;
    unsigned char **slots = churn->slots;
    uint64_t slot_count = churn->slot_count;
    uint64_t least_size = churn->least_size;
    uint64_t size_range = churn->size_range;
    touch_t touch = churn->touch;
    for (uint64_t cycle = churn->cycles; cycle != 0; cycle--) {
        uint64_t bits = bench_random_next(&random);
        unsigned char **slot = &slots[bench_scale(bits, slot_count)];
        if (*slot != NULL) {
            free(*slot);
            *slot = NULL;
        } else {
            uint64_t size = least_size + bench_scale(bits >> 32, size_range);
            unsigned char *block = malloc(size);
            bench_touch(block, size, touch);
            *slot = block;
        }
    }
    churn->random = random;
}

static inline void churn_drain(churn_t *churn)
{
    for (uint64_t index = 0; index < churn->slot_count; index++) free(churn->slots[index]);
}

#endif
