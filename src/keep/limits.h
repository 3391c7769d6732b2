/* Limits on memory: what the kernel's files say of them, and how near one is. Pure functions of
 * texts and numbers; keep/control_group.c reads the files, keep/pressure.c knows what we hold. */
#ifndef HAKMEM_KEEP_LIMITS_H
#define HAKMEM_KEEP_LIMITS_H

#include "base/types.h"

#define LIMIT_NONE UINT64_MAX

/* How near the limits are, and so how long free memory may wait. */
typedef enum pressure {
    PRESSURE_NONE,
    PRESSURE_NEAR, /* a limit is near, or the machine short of memory: less is kept, for less long
                    */
    PRESSURE_FULL, /* a limit is all but reached: nothing waits */
} pressure_t;

/* What all limits together leave. */
typedef struct headroom {
    pressure_t pressure;
    uint64_t limit; /* the lowest limit; LIMIT_NONE: there is none */
    uint64_t room;  /* least difference of a limit and what counts against it */
} headroom_t;

static inline headroom_t headroom_unlimited(void)
{
    return (headroom_t){PRESSURE_NONE, LIMIT_NONE, LIMIT_NONE};
}

/* Takes in a limit (LIMIT_NONE: there is none) and what counts against it. */
void headroom_add(headroom_t *headroom, uint64_t limit, uint64_t used);

/* Takes in what other limits leave. */
void headroom_join(headroom_t *headroom, const headroom_t *other);

/* Takes in that tasks waited for memory for so many hundredths of a percent of the time. */
void headroom_add_stall(headroom_t *headroom, unsigned hundredths);

/* Bytes that free memory of one kind (free pages, kept large blocks, kept huge ones) may hold. */
size_t headroom_kept_bytes(const headroom_t *headroom);

/* Bytes that have to go so that the limit is no longer all but reached, with some to spare; 0 where
 * the pressure is not PRESSURE_FULL. */
uint64_t headroom_missing(const headroom_t *headroom);

/* How long free pages may wait where the options say `delay_ms`. */
uint64_t pressure_delay_ms(pressure_t pressure, uint64_t delay_ms);

/* ---- texts, which end in a NUL ---- */

/* Reads the number, or `max`, at the start of *text, and moves *text behind it. A number too large
 * for memory gives LIMIT_NONE: old groups say so that they have no limit. False: *text begins with
 * neither. */
bool limits_parse_number(const char **text, uint64_t *number);

/* The control group that counts a process's memory, as /proc/self/cgroup names it. */
typedef struct group_name {
    const char *path; /* within the text, from its first / on */
    size_t length;
    bool is_v1;
} group_name_t;

/* False: the text names none. */
bool limits_parse_group(const char *text, group_name_t *name);

/* Bytes of a group's memory.stat that hold files: the kernel takes those before it refuses. */
uint64_t limits_parse_file_bytes(const char *text, bool is_v1);

/* Of a memory.pressure: how long some task waited for memory within the last ten seconds, in
 * hundredths of a percent. 0: none, or not a text of that kind. */
unsigned limits_parse_stall(const char *text);

/* Of /proc/self/statm: pages of the address space, and of these such as RLIMIT_DATA counts. */
bool limits_parse_statm(const char *text, uint64_t *total_pages, uint64_t *data_pages);

#endif
