/* The functions of include/hakmem.h; and malloc_trim, which is one of them by another name. */
#include "hakmem.h"

#include <errno.h>

#include "check/guard.h"
#include "entry/init.h"
#include "report/profile.h"
#include "report/report.h"
#include "cache/thread_cache.h"
#include "upkeep/reclaim.h"
#include "options/options.h"
#include "check/zero_blocks.h"
#include "large/huge.h"
#include "heap/span.h"

PUBLIC const char *hakmem_version(void)
{
    return report_version;
}

PUBLIC bool hakmem_owns(const void *ptr)
{
    if (!ensure_init())
        return false;
    const span_t *span = span_of(ptr);
    if (span != NULL)
        return span_state(span) != SPAN_CACHED;
    size_t size;
    huge_state_t state = huge_find(ptr, &size);
    return state == HUGE_LIVE || state == HUGE_INSIDE || zero_blocks_have(ptr);
}

PUBLIC size_t hakmem_purge(void)
{
    return ensure_init() ? reclaim_all() : 0;
}

/* Declared here: of the C libraries only glibc has it. Gives everything idle back whatever `pad`
 * says: there is no top of the heap to pad. */
PUBLIC int malloc_trim(size_t pad);
PUBLIC int malloc_trim(size_t pad)
{
    (void)pad;
    return ensure_init() && reclaim_all() != 0;
}

PUBLIC size_t hakmem_check(void)
{
    return ensure_init() ? guard_check_all() : 0;
}

PUBLIC void hakmem_idle(void)
{
    thread_cache_t *cache = thread_cache_own;
    if (!thread_cache_is_empty_cache(cache))
        thread_cache_trim(cache, true);
}

PUBLIC bool hakmem_get_statistics(hakmem_statistics_t *statistics)
{
    if (statistics == NULL)
        return false;
    *statistics = ensure_init() ? report_make(NULL, NULL).bytes : (hakmem_statistics_t){0};
    return true;
}

PUBLIC int hakmem_profile_start(size_t mean)
{
    return ensure_init() ? profile_start(mean) : ENOMEM;
}

PUBLIC int hakmem_option_get(const char *name, int64_t *value)
{
    (void)ensure_init();
    if (name == NULL || value == NULL)
        return EINVAL;
    return option_find(name, value) ? 0 : EINVAL;
}
