/* Mappings for huge blocks. See huge_map.h. */
#include "large/huge_map.h"

#include "base/bits.h"
#include "large/huge.h"
#include "large/huge_table.h"
#include "os/meta.h"
#include "os/os.h"

/* Unmaps memory that no block ever lay in. Where the kernel refuses, it becomes an idle block. */
static void huge_map_release(char *start, size_t size, huge_t **spare)
{
    if (size == 0 || os_release(start, size))
        return;
    huge_t *huge = *spare;
    *spare = NULL;
    huge->range.start = start;
    huge->range.size = size;
    huge->state = HUGE_CACHED;
    huge_table_set_mapping(huge);
    lock_acquire(&huge_table.lock);
    huge_table_insert(huge);
    huge_kept_add_idle(huge);
    lock_release(&huge_table.lock);
}

static char *huge_map_aligned(size_t size, size_t alignment, huge_t **spares)
{
    char *start = os_map(size);
    if (start == NULL || is_aligned(start, alignment))
        return start;
    huge_map_release(start, size, &spares[0]);
    start = size + alignment < size ? NULL : os_map(size + alignment);
    if (start == NULL)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)start & (alignment - 1));
    huge_map_release(start, before, &spares[1]);
    huge_map_release(start + before + size, alignment - before, &spares[2]);
    return start + before;
}

char *huge_map(size_t size, size_t alignment)
{
    enum { LEFTOVERS = 3 };
    huge_t *spares[LEFTOVERS] = {NULL};
    unsigned count = 0;
    if (alignment <= os_page_size())
        return os_map(size);
    /* Before anything is mapped: what cannot be described could be lost. */
    while (count < LEFTOVERS && (spares[count] = meta_alloc(sizeof(huge_t))) != NULL)
        count++;
    char *start = count == LEFTOVERS ? huge_map_aligned(size, alignment, spares) : NULL;
    for (unsigned index = 0; index < LEFTOVERS; index++)
        if (spares[index] != NULL)
            meta_free(spares[index], sizeof(huge_t));
    return start;
}

bool huge_could_map(size_t size)
{
    huge_t *spare = meta_alloc(sizeof *spare);
    if (spare == NULL)
        return false;
    size = align_up(size, os_page_size());
    char *trial = os_map(size);
    if (trial != NULL)
        huge_map_release(trial, size, &spare);
    if (spare != NULL)
        meta_free(spare, sizeof *spare);
    return trial != NULL;
}
