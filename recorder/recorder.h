/* The recorder: preloaded in front of an allocator, it writes down every call of malloc and its
 * family, with the innermost return addresses of the call (docs/trace.md). Any allocator may stand
 * behind it: what is recorded is which block, how long, where from and when.
 *
 *     RECORDER_FILE=/tmp/%p.trace LD_PRELOAD="librecorder.so libhakmem.so" program
 *
 * %p is the number of the process. Without it only the first process is recorded. The file is
 * mapped, so a process that a signal ends loses nothing. It is a head and records of 32 bytes
 * (records.c), and is as long as it may become, with a hole for what is not used. A record of the
 * kind STACK names a new number; the record behind it is four return addresses, innermost first,
 * 0 where the stack has fewer. realloc is two records of its thread, between which other threads
 * may have some: RESIZE with the old address, RESIZED with the new one, or with the old one and its
 * length where realloc has failed. ZEROED is a BLOCK of calloc.
 *
 * The order is exact: FREED and RESIZE are written before the call, the others behind it. No lock
 * is held meanwhile, so the allocator may wait for other threads, and they may record. The child of
 * a fork begins a file of its own, without what its parent held. A child that no handler of fork
 * has seen records nothing. */
#ifndef RECORDER_H
#define RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define OWN __thread __attribute__((tls_model("initial-exec")))

#define RECORDER_MAGIC "hakmem trace 2\n" /* with its NUL 16 bytes */

typedef enum kind { STACK = 1, BLOCK, FREED, RESIZE, RESIZED, ZEROED } kind_t;

/* Opens the file, if none is open and the environment is there. */
void records_begin(void);

/* False: there is no file. */
bool records_are_wanted(void);

/* `caller`: the return address from which on the stack is recorded; NULL: it is not. An alignment
 * of 0 is that of malloc. The caller sees to errno, and that nothing called here is recorded. */
void records_add(kind_t kind, const void *block, size_t size, size_t alignment, void *caller);

void records_before_fork(void);
void records_after_fork(void);
/* `goes_on`: a call of ours, which a signal handler has interrupted that forked. That child records
 * nothing. */
void records_in_child(bool goes_on);

#endif
