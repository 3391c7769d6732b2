/* Chunks that have lost some of their pages. See sparse_chunks.h. */
#include "span/sparse_chunks.h"

#include "base/bits.h"
#include "os/os.h"
#include "os/threads.h"
#include "policy/tuning.h"

static uint64_t count; /* of those that are marked */

static void note(size_t chunk)
{
    /* relaxed: of two threads that give pages of one chunk back, one makes the call */
    if (counter_read(&count) >= SPARSE_CHUNKS_MOST ||
        __atomic_exchange_n(&window_sparse[chunk], 1, __ATOMIC_RELAXED) != 0)
        return;
    counter_add(&count, 1);
    os_advise_huge_pages(unit_address(chunk * CHUNK_UNITS), CHUNK_UNITS * UNIT_SIZE, false);
}

/* True: it was marked. */
static bool forget(size_t chunk)
{
    if (__atomic_load_n(&window_sparse[chunk], __ATOMIC_RELAXED) == 0)
        return false;
    __atomic_store_n(&window_sparse[chunk], 0, __ATOMIC_RELAXED);
    counter_add(&count, (uint64_t)-1);
    return true;
}

void sparse_chunks_note(size_t first_unit, size_t unit_count)
{
    size_t end = first_unit + unit_count;
    if (first_unit % CHUNK_UNITS != 0)
        note(first_unit / CHUNK_UNITS);
    /* The last one, if it is not the same, or is but begins here. */
    if (end % CHUNK_UNITS != 0 &&
        (first_unit % CHUNK_UNITS == 0 || first_unit / CHUNK_UNITS != end / CHUNK_UNITS))
        note(end / CHUNK_UNITS);
}

void sparse_chunks_reuse(size_t free_unit, size_t free_count, size_t first_unit, size_t unit_count,
                         bool wanted)
{
    size_t from = larger_of(align_up(free_unit, CHUNK_UNITS), align_down(first_unit, CHUNK_UNITS));
    size_t end = align_down(free_unit + free_count, CHUNK_UNITS);
    end = smaller_of(end, align_up(first_unit + unit_count, CHUNK_UNITS));
    for (; from < end; from += CHUNK_UNITS)
        if (forget(from / CHUNK_UNITS) && wanted)
            os_advise_huge_pages(unit_address(from), CHUNK_UNITS * UNIT_SIZE, true);
}

void sparse_chunks_forget(size_t first_unit, size_t unit_count)
{
    for (size_t unit = first_unit; unit < first_unit + unit_count; unit += CHUNK_UNITS)
        (void)forget(unit / CHUNK_UNITS);
}

size_t sparse_chunks_count(void)
{
    return (size_t)counter_read(&count);
}
