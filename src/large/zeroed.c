/* How densely large zeroed blocks are written. See zeroed.h. */
#include "large/zeroed.h"

#include "base/bits.h"
#include "base/count.h"
#include "options/tuning.h"
#include "os/os.h"

/* The mean share of pages that were touched, in parts of ZEROED_WHOLE; atomic, and a guess where
 * threads meet. At first no few blocks decide. */
#define ZEROED_WHOLE 1024
static size_t zeroed_share = 2 * ZEROED_WHOLE / ZEROED_SPARSE_SHARE;

bool zeroed_are_sparse(void)
{
    return count_read(&zeroed_share) < ZEROED_WHOLE / ZEROED_SPARSE_SHARE;
}

/* Looked at are chunks at even distances. 0 where the kernel does not tell. */
static size_t zeroed_touched_share(const char *start, size_t size)
{
    size_t step = align_up(larger_of(size / ZEROED_LOOKS, OS_RESIDENT_MOST), os_page_size());
    size_t looked = 0;
    size_t touched = 0;
    for (size_t from = 0; from < size; from += step) {
        size_t part = smaller_of(size - from, OS_RESIDENT_MOST);
        touched += os_resident_size(start + from, part);
        looked += part;
    }
    return (touched * ZEROED_WHOLE + looked - 1) / looked; /* one page is more than none */
}

bool zeroed_note_freed(const char *start, size_t size)
{
    if (!is_aligned(start, os_page_size()) || size % os_page_size() != 0)
        return false;
    size_t share = zeroed_touched_share(start, size);
    size_t mean = count_read(&zeroed_share);
    if (share == 0) /* or the kernel does not tell */
        return false;
    mean += share / ZEROED_FADING - mean / ZEROED_FADING;
    __atomic_store_n(&zeroed_share, mean, __ATOMIC_RELAXED);
    return share < ZEROED_WHOLE / ZEROED_SPARSE_SHARE;
}
