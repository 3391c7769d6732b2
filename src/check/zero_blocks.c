/* Blocks of no bytes. See zero_blocks.h. */
#include "check/zero_blocks.h"

#include "base/bitmap.h"
#include "os/os.h"
#include "options/tuning.h"

static lock_t lock = LOCK_INITIAL(LOCK_ZERO);
static char *first_block;
static uint64_t used_bits[ZERO_BLOCK_COUNT / 64];
static size_t next_look; /* where the search for a free one goes on: late reuse */

void zero_blocks_create(void)
{
    first_block = os_reserve(ZERO_BLOCK_COUNT * BLOCK_ALIGNMENT);
}

static size_t number_of(const void *ptr)
{
    return ((uintptr_t)ptr - (uintptr_t)first_block) / BLOCK_ALIGNMENT;
}

bool zero_blocks_have(const void *ptr)
{
    return first_block != NULL && number_of(ptr) < ZERO_BLOCK_COUNT;
}

void *zero_block_alloc(void)
{
    if (first_block == NULL)
        return NULL;
    lock_acquire(&lock);
    size_t number = bitmap_find(used_bits, next_look, ZERO_BLOCK_COUNT, false);
    if (number == ZERO_BLOCK_COUNT)
        number = bitmap_find(used_bits, 0, ZERO_BLOCK_COUNT, false);
    if (number < ZERO_BLOCK_COUNT) {
        bitmap_set(used_bits, number, 1);
        next_look = number + 1;
    }
    lock_release(&lock);
    return number < ZERO_BLOCK_COUNT ? first_block + number * BLOCK_ALIGNMENT : NULL;
}

bool zero_block_is_used(const void *ptr)
{
    lock_acquire(&lock);
    bool is_used = is_aligned(ptr, BLOCK_ALIGNMENT) && bitmap_has(used_bits, number_of(ptr));
    lock_release(&lock);
    return is_used;
}

bool zero_block_free(void *ptr)
{
    lock_acquire(&lock);
    bool was_used = is_aligned(ptr, BLOCK_ALIGNMENT) && bitmap_has(used_bits, number_of(ptr));
    if (was_used)
        bitmap_clear(used_bits, number_of(ptr), 1);
    lock_release(&lock);
    return was_used;
}

void zero_blocks_at_fork(fork_phase_t phase)
{
    lock_at_fork(&lock, phase);
}
