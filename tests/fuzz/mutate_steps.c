/* What libFuzzer does to an input of heap_fuzz.c half of the time: whole steps of four bytes are
   doubled, removed, moved, or changed in one byte, so that the steps behind keep their meaning. */
#include "fuzz/decode.h"

#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);

typedef struct step_bytes {
    uint8_t bytes[DECODE_BYTES];
} step_bytes_t;

static unsigned random_below(unsigned *state, size_t bound)
{
    *state = *state * 1664525u + 1013904223u; /* Numerical Recipes */
    return (unsigned)((*state >> 8) % bound);
}

/* Makes room for `count` steps at `at`; what does not fit falls off the end. */
static size_t insert(step_bytes_t *steps, size_t count, size_t room, size_t at, size_t more)
{
    if (more > room - count) more = room - count;
    memmove(&steps[at + more], &steps[at], (count - at) * DECODE_BYTES);
    return count + more;
}

static size_t copy_a_run(step_bytes_t *steps, size_t count, size_t room, unsigned *random)
{
    const size_t length = 1 + random_below(random, count < 16 ? count : 16);
    const size_t from = random_below(random, count - length + 1);
    const size_t to = random_below(random, count + 1);
    step_bytes_t copy[16];
    memcpy(copy, &steps[from], length * DECODE_BYTES);
    const size_t longer = insert(steps, count, room, to, length);
    memcpy(&steps[to], copy, (longer - count) * DECODE_BYTES);
    return longer;
}

static size_t remove_a_run(step_bytes_t *steps, size_t count, unsigned *random)
{
    const size_t length = 1 + random_below(random, count < 16 ? count : 16);
    const size_t from = random_below(random, count - length + 1);
    memmove(&steps[from], &steps[from + length], (count - from - length) * DECODE_BYTES);
    return count - length;
}

static size_t add_a_step(step_bytes_t *steps, size_t count, size_t room, unsigned *random)
{
    const size_t at = random_below(random, count + 1);
    const size_t longer = insert(steps, count, room, at, 1);
    if (longer == count) return count;
    /* Few slots, so that later steps meet them. */
    steps[at].bytes[0] = (uint8_t)random_below(random, CALL_COUNT);
    steps[at].bytes[1] = (uint8_t)random_below(random, 16);
    steps[at].bytes[2] = (uint8_t)random_below(random, 256);
    steps[at].bytes[3] = (uint8_t)random_below(random, 256);
    return longer;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)
{
    unsigned random = seed;
    step_bytes_t *steps = (step_bytes_t *)data;
    const size_t room = capacity / DECODE_BYTES;
    size_t count = size / DECODE_BYTES;
    if (room == 0 || random_below(&random, 2) == 0) return LLVMFuzzerMutate(data, size, capacity);
    for (unsigned left = 1 + random_below(&random, 4); left > 0; left--) {
        const unsigned dice = count == 0 ? 0 : random_below(&random, 5);
        switch (dice) {
        case 0: count = add_a_step(steps, count, room, &random); break;
        case 1: count = copy_a_run(steps, count, room, &random); break;
        case 2: count = remove_a_run(steps, count, &random); break;
        default:
            steps[random_below(&random, count)].bytes[random_below(&random, DECODE_BYTES)] =
                (uint8_t)random_below(&random, 256);
        }
    }
    return count * DECODE_BYTES;
}
