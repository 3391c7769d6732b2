/* Build variants. The only place where a build flag becomes a constant of the language;
 * everywhere else a variant is an ordinary `if` on one of these names. */
#ifndef HAKMEM_BASE_CONFIG_H
#define HAKMEM_BASE_CONFIG_H

#include <stdbool.h>

#ifndef HAKMEM_CHECKED
#define HAKMEM_CHECKED 0
#endif

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

/* Diagnostic build: MUST is checked, upkeep asserts the laws of depots, central lists, private
 * heaps, span cache and page heaps once a second, lock ranks are enforced, and every call counts
 * the route that served it. */
static const bool config_checked = HAKMEM_CHECKED;

/* Built for libhakmem.so: all code between the ends of the linked file is ours. */
#ifndef HAKMEM_SHARED
#define HAKMEM_SHARED 0
#endif
static const bool config_shared = HAKMEM_SHARED;

/* The compiler's runtime can walk the stack. os/stack.c leaves out what it could not link. */
#ifndef HAKMEM_UNWINDER
#define HAKMEM_UNWINDER 1
#endif

/* Built with a sanitizer, which has to know of every thread. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
static const bool config_sanitised = true;
#else
static const bool config_sanitised = false;
#endif

#endif
