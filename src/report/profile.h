/* The heap profile, from options and from include/hakmem.h. */
#ifndef HAKMEM_REPORT_PROFILE_H
#define HAKMEM_REPORT_PROFILE_H

#include "base/types.h"

/* A block was handed out for a request of `size` bytes that is a sample. `caller`: return address
 * of the entry point. May be called before anything of a profile exists. */
void profile_sample(const void *block, size_t size, const void *caller);

/* The block is about to be freed by the program. `caller`: return address of the entry point, NULL
 * if that is not known. Only where messages tell call stacks this does something. */
void profile_note_free(const void *block, const void *caller);

/* As hakmem_profile_start, in a process that has been initialised. */
int profile_start(size_t mean);

/* Begins a profile if the option says so; once, at initialisation. */
void profile_prepare(void);

/* Writes what was sampled so far, if it is time for that: a program that is killed leaves it. The
 * caller holds no lock. */
void profile_keep_up(uint64_t now_ms);

/* Writes it, at the end of the process that has begun it, or, where the name of the file has the
 * number of the process, of any child of it as well. */
void profile_at_exit(void);

void profile_at_fork_in_child(void);

#endif
