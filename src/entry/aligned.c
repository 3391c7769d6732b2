/* The aligned relatives of malloc. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "entry/aligned_hit.h"
#include "entry/slow.h"
#include "base/bits.h"
#include "os/os.h"

static void *invalid_argument(void)
{
    errno = EINVAL;
    return NULL;
}

/* C17 asks for a supported alignment, C23 no longer for a size that is a multiple of it. */
PUBLIC void *aligned_alloc(size_t alignment, size_t size)
{
    if (UNLIKELY(!is_power_of_two(alignment)))
        return invalid_argument();
    void *block = aligned_hit(alignment, size, size_open_granules);
    return LIKELY(block != NULL) ? block : allocate_aligned(alignment, size);
}

/* As glibc: an alignment that is no power of two is rounded up to one. */
PUBLIC void *memalign(size_t alignment, size_t size)
{
    if (alignment > (size_t)PTRDIFF_MAX + 1)
        return invalid_argument();
    alignment = power_of_two_at_least(alignment);
    void *block = aligned_hit(alignment, size, size_open_granules);
    return block != NULL ? block : allocate_aligned(alignment, size);
}

/* A refusal leaves ENOMEM in errno too. POSIX does not ask for that; glibc does it. */
COLD static int posix_memalign_slow(void **result, size_t alignment, size_t size)
{
    void *block = allocate_aligned(alignment, size);
    if (block == NULL)
        return ENOMEM;
    *result = block;
    return 0;
}

PUBLIC int posix_memalign(void **result, size_t alignment, size_t size)
{
    if (UNLIKELY(!is_power_of_two(alignment) || alignment % sizeof(void *) != 0))
        return EINVAL;
    void *block = aligned_hit(alignment, size, size_open_granules);
    if (UNLIKELY(block == NULL))
        return posix_memalign_slow(result, alignment, size);
    *result = block;
    return 0;
}

PUBLIC void *valloc(size_t size)
{
    return allocate_aligned(os_page_size(), size);
}

/* A whole number of pages. */
PUBLIC void *pvalloc(size_t size); /* of the C libraries only glibc has it */
PUBLIC void *pvalloc(size_t size)
{
    size_t page = os_page_size();
    if (size > PTRDIFF_MAX)
        return out_of_memory();
    return allocate_aligned(page, align_up(larger_of(size, 1), page));
}
