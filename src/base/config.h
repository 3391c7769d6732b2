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
 * heaps, span cache and page heap at each look (at most ten times a second), lock ranks are
 * enforced, and every call counts the route that served it. */
static const bool config_checked = HAKMEM_CHECKED;

/* Built for libhakmem.so: all code between the ends of the linked file is ours. CMakeLists.txt
 * compiles the sources that have this name for each form of the library: configure anew where one
 * gets or loses it. */
#ifndef HAKMEM_SHARED
#define HAKMEM_SHARED 0
#endif
static const bool config_shared = HAKMEM_SHARED;

/* Thread-local data lie at another distance in each thread (base/arch/thread_space.h). */
#ifndef HAKMEM_DYNAMIC_TLS
#define HAKMEM_DYNAMIC_TLS 0
#endif

/* The compiler's runtime can walk the stack. os/stack.c leaves out what it could not link. */
#ifndef HAKMEM_UNWINDER
#define HAKMEM_UNWINDER 1
#endif

/* PROBE(name, values...): a static probe, for bpftrace, perf, SystemTap and gdb. A no-operation and
 * a note in the file, where the header of SystemTap is installed; elsewhere nothing. On slow paths
 * only. docs/trace.md lists them. */
#ifndef HAKMEM_PROBES
#define HAKMEM_PROBES 0
#endif
#if HAKMEM_PROBES
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>
#define PROBE(...) STAP_PROBEV(hakmem, __VA_ARGS__)
#else
#define PROBE(...) ((void)0)
#endif

#endif
