/* Blocks of no bytes. See zero_blocks.h. */
#include "check/zero_blocks.h"

#include "base/bitmap.h"
#include "os/os.h"
#include "options/tuning.h"

static struct {
    lock_t lock;       /* of the next field and of the bits below */
    size_t next_look;  /* number of the block where the search for a free one goes on: late reuse */
    char *first_block; /* NULL: there are none; written at initialisation */
} zero_blocks_state = {.lock = LOCK_INITIAL(LOCK_ZERO)};

static uint64_t zero_blocks_used[ZERO_BLOCK_COUNT / 64] SPARSE; /* a bit for each */

void zero_blocks_create(void)
{
    zero_blocks_state.first_block = os_reserve(ZERO_BLOCK_COUNT * BLOCK_ALIGNMENT);
}

static size_t zero_block_number(const void *ptr)
{
    return ((uintptr_t)ptr - (uintptr_t)zero_blocks_state.first_block) / BLOCK_ALIGNMENT;
}

bool zero_blocks_have(const void *ptr)
{
    return zero_blocks_state.first_block != NULL && zero_block_number(ptr) < ZERO_BLOCK_COUNT;
}

void *zero_block_alloc(void)
{
    if (zero_blocks_state.first_block == NULL)
        return NULL;
    lock_acquire(&zero_blocks_state.lock);
    size_t number = bitmap_find(zero_blocks_used, zero_blocks_state.next_look,
                                ZERO_BLOCK_COUNT, false);
    if (number == ZERO_BLOCK_COUNT)
        number = bitmap_find(zero_blocks_used, 0, ZERO_BLOCK_COUNT, false);
    if (number < ZERO_BLOCK_COUNT) {
        bitmap_set(zero_blocks_used, number, 1);
        zero_blocks_state.next_look = number + 1;
    }
    lock_release(&zero_blocks_state.lock);
    return number < ZERO_BLOCK_COUNT ? zero_blocks_state.first_block + number * BLOCK_ALIGNMENT
                                     : NULL;
}

bool zero_block_is_used(const void *ptr)
{
    lock_acquire(&zero_blocks_state.lock);
    bool is_used = is_aligned(ptr, BLOCK_ALIGNMENT) &&
                   bitmap_has(zero_blocks_used, zero_block_number(ptr));
    lock_release(&zero_blocks_state.lock);
    return is_used;
}

bool zero_block_free(void *ptr)
{
    lock_acquire(&zero_blocks_state.lock);
    bool was_used = is_aligned(ptr, BLOCK_ALIGNMENT) &&
                    bitmap_has(zero_blocks_used, zero_block_number(ptr));
    if (was_used)
        bitmap_clear(zero_blocks_used, zero_block_number(ptr), 1);
    lock_release(&zero_blocks_state.lock);
    return was_used;
}

void zero_blocks_at_fork(fork_phase_t phase)
{
    lock_at_fork(&zero_blocks_state.lock, phase);
}
