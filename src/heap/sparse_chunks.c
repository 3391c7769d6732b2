/* Chunks that have lost some of their pages. See sparse_chunks.h. */
#include "heap/sparse_chunks.h"

#include "base/bits.h"
#include "heap/page_map.h"
#include "os/os.h"
#include "os/threads.h"
#include "options/tuning.h"

/* Values of window_tables.sparse. */
enum { CHUNK_IS_SMALL, CHUNK_MAY_BE_HUGE, CHUNK_IS_SPARSE };

static uint64_t count; /* of those that are sparse */

static void chunk_note_sparse(size_t chunk)
{
    uint8_t expected = CHUNK_MAY_BE_HUGE;
    /* relaxed: of two threads that give pages of one chunk back, one makes the call */
    if (counter_read(&count) >= SPARSE_CHUNKS_MOST ||
        !__atomic_compare_exchange_n(&window_tables.sparse[chunk], &expected, CHUNK_IS_SPARSE,
                                     false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    counter_add(&count, 1);
    os_advise_huge_pages(unit_address(chunk * CHUNK_UNITS), CHUNK_UNITS * UNIT_SIZE, false);
}

static void chunk_set_state(size_t chunk, uint8_t state)
{
    /* No write where nothing changes: the table of a small heap holds no memory. */
    if (__atomic_load_n(&window_tables.sparse[chunk], __ATOMIC_RELAXED) == state)
        return;
    /* relaxed: only the state counts. An exchange, for another thread may note the chunk now. */
    uint8_t before = __atomic_exchange_n(&window_tables.sparse[chunk], state, __ATOMIC_RELAXED);
    if (before == CHUNK_IS_SPARSE)
        counter_add(&count, (uint64_t)-1);
}

static bool chunk_is_sparse(size_t chunk)
{
    return __atomic_load_n(&window_tables.sparse[chunk], __ATOMIC_RELAXED) == CHUNK_IS_SPARSE;
}

void sparse_chunks_note(size_t first_unit, size_t unit_count)
{
    size_t end = first_unit + unit_count;
    if (first_unit % CHUNK_UNITS != 0)
        chunk_note_sparse(first_unit / CHUNK_UNITS);
    /* The last one, if it is not the same, or is but begins here. */
    if (end % CHUNK_UNITS != 0 &&
        (first_unit % CHUNK_UNITS == 0 || first_unit / CHUNK_UNITS != end / CHUNK_UNITS))
        chunk_note_sparse(end / CHUNK_UNITS);
}

void sparse_chunks_spare(size_t first_unit, size_t unit_count)
{
    for (size_t chunk = first_unit / CHUNK_UNITS; chunk * CHUNK_UNITS < first_unit + unit_count;
         chunk++)
        chunk_note_sparse(chunk);
}

void sparse_chunks_reuse(size_t free_unit, size_t free_count, size_t first_unit, size_t unit_count,
                         bool wanted)
{
    size_t from = larger_of(align_up(free_unit, CHUNK_UNITS), align_down(first_unit, CHUNK_UNITS));
    size_t end = align_down(free_unit + free_count, CHUNK_UNITS);
    end = smaller_of(end, align_up(first_unit + unit_count, CHUNK_UNITS));
    for (; from < end; from += CHUNK_UNITS)
        if (chunk_is_sparse(from / CHUNK_UNITS)) {
            chunk_set_state(from / CHUNK_UNITS, wanted ? CHUNK_MAY_BE_HUGE : CHUNK_IS_SMALL);
            if (wanted)
                os_advise_huge_pages(unit_address(from), CHUNK_UNITS * UNIT_SIZE, true);
        }
}

void sparse_chunks_set(size_t first_unit, size_t unit_count, bool may_be_huge)
{
    for (size_t unit = first_unit; unit < first_unit + unit_count; unit += CHUNK_UNITS)
        chunk_set_state(unit / CHUNK_UNITS, may_be_huge ? CHUNK_MAY_BE_HUGE : CHUNK_IS_SMALL);
}

bool sparse_chunks_may_be_huge(size_t unit)
{
    return __atomic_load_n(&window_tables.sparse[unit / CHUNK_UNITS], __ATOMIC_RELAXED) ==
           CHUNK_MAY_BE_HUGE;
}

size_t sparse_chunks_count(void)
{
    return (size_t)counter_read(&count);
}
