/* The functions of hakmem_jemalloc.h, by what hakmem.h and malloc offer. A library of its own: the
 * allocator does not know it. Arenas and thread caches that flags name do not exist here. */
#include "hakmem_jemalloc.h"

#include "hakmem.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

static size_t alignment_of(int flags)
{
    return (size_t)1 << (flags & 63);
}

/* malloc aligns to 16 already. aligned_alloc of HAKMEM takes any size. */
static void *allocate(size_t size, int flags)
{
    const size_t alignment = alignment_of(flags);
    return alignment <= 16 ? malloc(size) : aligned_alloc(alignment, size);
}

/* Clears a block from `start` to its real end. */
static void *cleared(char *block, size_t start)
{
    const size_t end = block == NULL ? 0 : malloc_usable_size(block);
    if (start < end)
        memset(block + start, 0, end - start);
    return block;
}

API void *mallocx(size_t size, int flags)
{
    if (!(flags & MALLOCX_ZERO))
        return allocate(size, flags);
    if (alignment_of(flags) <= 16) /* calloc knows which memory is zero already */
        return cleared(calloc(1, size), size);
    return cleared(allocate(size, flags), 0);
}

/* realloc keeps no alignment beyond 16 when it moves a block. */
static void *resize(void *ptr, size_t size, int flags)
{
    const size_t alignment = alignment_of(flags);
    if (alignment <= 16)
        return realloc(ptr, size);
    const size_t old = malloc_usable_size(ptr);
    if ((uintptr_t)ptr % alignment == 0 && size <= old && size > old / 2)
        return ptr;
    void *block = allocate(size, flags);
    if (block == NULL)
        return NULL;
    memcpy(block, ptr, old < size ? old : size);
    free(ptr);
    return block;
}

API void *rallocx(void *ptr, size_t size, int flags)
{
    const size_t old = malloc_usable_size(ptr);
    void *block = resize(ptr, size, flags);
    return flags & MALLOCX_ZERO ? cleared(block, old) : block;
}

API void dallocx(void *ptr, int flags)
{
    (void)flags;
    free(ptr);
}

/* free_sized wants the size that was asked for; jemalloc takes the real one too. */
API void sdallocx(void *ptr, size_t size, int flags)
{
    (void)size;
    dallocx(ptr, flags);
}

/* Asks the allocator itself, so that the answer is true. A block that nobody writes costs addresses
 * for this moment, and no memory. */
API size_t nallocx(size_t size, int flags)
{
    void *block = allocate(size, flags);
    const size_t real = malloc_usable_size(block); /* 0 for NULL */
    free(block);
    return real;
}

/* ---- mallctl ---- */

typedef enum { EPOCH, ALLOCATED, RESIDENT, MAPPED, PURGE, CONTROLS } control_t;

/* "#" stands for a number, which the identifier of the name (mib) keeps. */
static const char *const control_names[CONTROLS] = {
    "epoch", "stats.allocated", "stats.resident", "stats.mapped", "arena.#.purge",
};
enum { MOST_PARTS = 3 };

static uint64_t epoch = 1;

static size_t parts_of(const char *name)
{
    size_t count = 1;
    for (; *name != '\0'; name++)
        count += *name == '.';
    return count;
}

/* Is the name this pattern? Its number, if the pattern has one, goes to *number. */
static bool is_name(const char *pattern, const char *name, size_t *number)
{
    const size_t before = strcspn(pattern, "#");
    if (strncmp(pattern, name, before) != 0)
        return false;
    if (pattern[before] == '\0')
        return name[before] == '\0';
    const size_t digits = strspn(name + before, "0123456789");
    *number = strtoul(name + before, NULL, 10);
    return digits > 0 && strcmp(pattern + before + 1, name + before + digits) == 0;
}

API int mallctlnametomib(const char *name, size_t *mib, size_t *mib_length)
{
    for (size_t control = 0; control < CONTROLS; control++) {
        size_t number = 0;
        if (!is_name(control_names[control], name, &number))
            continue;
        const size_t parts[MOST_PARTS] = {control, number, 0};
        const size_t count = parts_of(control_names[control]);
        if (count < *mib_length)
            *mib_length = count;
        memcpy(mib, parts, *mib_length * sizeof(size_t));
        return 0;
    }
    return ENOENT;
}

/* A value of another length than the caller expects is copied as far as both have it. */
static int give(const void *value, size_t length, void *old, size_t *old_length)
{
    if (old == NULL || old_length == NULL)
        return 0;
    const bool fits = *old_length == length;
    if (*old_length > length)
        *old_length = length;
    memcpy(old, value, *old_length);
    return fits ? 0 : EINVAL;
}

static int control_epoch(void *old, size_t *old_length, const void *new_, size_t new_length)
{
    if (new_ != NULL && new_length != sizeof(epoch))
        return EINVAL;
    /* relaxed: nothing else hangs on the number */
    const uint64_t now = __atomic_add_fetch(&epoch, new_ != NULL, __ATOMIC_RELAXED);
    return give(&now, sizeof(now), old, old_length);
}

static int control_purge(const void *old, const size_t *old_length, const void *new_)
{
    if (old != NULL || old_length != NULL || new_ != NULL)
        return EPERM;
    (void)hakmem_purge();
    return 0;
}

API int mallctlbymib(const size_t *mib, size_t mib_length, void *old, size_t *old_length,
                     void *new_, size_t new_length)
{
    if (mib_length == 0 || mib[0] >= CONTROLS || mib_length != parts_of(control_names[mib[0]]))
        return ENOENT;
    if (mib[0] == EPOCH)
        return control_epoch(old, old_length, new_, new_length);
    if (mib[0] == PURGE)
        return control_purge(old, old_length, new_);
    if (new_ != NULL || new_length != 0)
        return EPERM;
    hakmem_statistics_t now;
    (void)hakmem_get_statistics(&now);
    const size_t value = mib[0] == ALLOCATED  ? now.used
                         : mib[0] == RESIDENT ? now.resident
                                              : now.mapped - now.clean_pages;
    return give(&value, sizeof(value), old, old_length);
}

API int mallctl(const char *name, void *old, size_t *old_length, void *new_, size_t new_length)
{
    size_t mib[MOST_PARTS];
    size_t mib_length = MOST_PARTS;
    const int error = mallctlnametomib(name, mib, &mib_length);
    return error ? error : mallctlbymib(mib, mib_length, old, old_length, new_, new_length);
}
