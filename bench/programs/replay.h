/*
 * The file that replay_prepare makes of an allocation trace, and that replay does.
 *
 *   replay_head_t, worker_count × replay_worker_t, then the steps of each worker, one after another
 *
 * A place holds one block at a time. What the program did to a block, one after the other, the
 * workers do in the same order, whichever of them does it: each step waits for its turn there.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <stdint.h>

#define REPLAY_MAGIC UINT64_C(0x31796c7065726b68) /* "hkreply1" */

/* More threads at a time than this are refused, and places that many. */
enum { REPLAY_MOST_WORKERS = 1024 };
#define REPLAY_MOST_PLACES UINT64_C(0xffffffff)

typedef struct replay_head {
    uint64_t magic;
    uint64_t worker_count;
    uint64_t place_count;
} replay_head_t;

typedef struct replay_worker {
    uint64_t offset; /* of its first step in the file */
    uint64_t count;
} replay_worker_t;

typedef enum replay_action {
    REPLAY_ALLOCATE,
    REPLAY_ALLOCATE_ZEROED,
    REPLAY_ALLOCATE_ALIGNED,
    REPLAY_RESIZE,
    REPLAY_FREE,
    REPLAY_ACTION_COUNT
} replay_action_t;

typedef struct replay_step {
    uint32_t place;
    uint32_t turn; /* how many steps were done there before */
    uint64_t what; /* replay_what */
} replay_step_t;

/* `size` in bytes, below 2^48; `shift`: ALIGNED is to 2^shift, else 0. */
static inline uint64_t replay_what(replay_action_t action, uint64_t size, uint64_t shift)
{
    return size << 16 | shift << 8 | (uint64_t)action;
}

static inline uint64_t replay_size(const replay_step_t *step)
{
    return step->what >> 16;
}

static inline unsigned replay_shift(const replay_step_t *step)
{
    return (unsigned)(step->what >> 8 & 255);
}

static inline replay_action_t replay_action(const replay_step_t *step)
{
    return (replay_action_t)(step->what & 255);
}

_Static_assert(sizeof(replay_step_t) == 16, "as the file has it");

#endif
