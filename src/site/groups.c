/* Groups. See groups.h. */
#include "site/groups.h"

#include "os/os.h"
#include "options/options.h"

static private_heap_t *groups[SITE_GROUPS + 1];

/* acquire: pairs with the release in group_provide; the heap is whole */
static private_heap_t *group_made(unsigned group)
{
    return __atomic_load_n(&groups[group], __ATOMIC_ACQUIRE);
}

static NOINLINE private_heap_t *group_provide(unsigned group)
{
    private_heap_t *fresh = private_heap_create();
    private_heap_t *other = NULL;
    if (fresh == NULL)
        return group_made(group);
    if (__atomic_compare_exchange_n(&groups[group], &other, fresh, false, __ATOMIC_RELEASE,
                                    __ATOMIC_ACQUIRE))
        return fresh;
    (void)private_heap_destroy(fresh, os_clock_ms()); /* another thread was first */
    return other;
}

private_heap_t *group_heap(unsigned group)
{
    if (group - 1 >= SITE_GROUPS)
        return NULL;
    /* Blocks of private heaps are not guarded. Who looks for overflows wants guards, not pages. */
    if (options.junk)
        return NULL;
    private_heap_t *heap = group_made(group);
    return LIKELY(heap != NULL) ? heap : group_provide(group);
}

bool groups_own(const private_heap_t *heap)
{
    for (unsigned group = 1; group <= SITE_GROUPS; group++)
        if (group_made(group) == heap)
            return heap != NULL;
    return false;
}
