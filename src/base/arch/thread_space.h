/* Thread-local data by a number that means the same in every thread: its distance.
 *
 * On x86-64 the distance is counted from the thread pointer, the base of %fs: an instruction then
 * reaches the data of its thread without loading any address. At distance 0 stands the one word
 * that holds its own address; the ABI says so (ELF Handling For Thread-Local Storage, 3.4.6).
 *
 * Elsewhere the distance is counted from the start of the data themselves. The same holds under
 * sanitizers, which take a pointer relative to %fs for an ordinary one, and in a build for
 * libraries opened at run time: no distance from the thread pointer finds their data. */
#ifndef HAKMEM_BASE_ARCH_THREAD_SPACE_H
#define HAKMEM_BASE_ARCH_THREAD_SPACE_H

#include "base/config.h"
#include "base/types.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define THREAD_SPACE_IS_WATCHED
#endif

#if defined(__SEG_FS) && !defined(THREAD_SPACE_IS_WATCHED) && !HAKMEM_DYNAMIC_TLS

/* Qualifies what a pointer to thread-local data points to, if it was made from a distance. */
#define THREAD_SPACE __seg_fs

/* The pointer, as a number, to what lies so far from the origin of `data`. */
static inline uintptr_t thread_space_at(const void *data, ptrdiff_t distance)
{
    (void)data;
    return (uintptr_t)distance;
}

/* The distance of the data's start. */
static inline ptrdiff_t thread_space_distance(const void *data)
{
    return (const char *)data - (const char *)__builtin_thread_pointer();
}

#else

#define THREAD_SPACE

static inline uintptr_t thread_space_at(const void *data, ptrdiff_t distance)
{
    return (uintptr_t)data + (uintptr_t)distance;
}

static inline ptrdiff_t thread_space_distance(const void *data)
{
    (void)data;
    return 0;
}

#endif
#endif
