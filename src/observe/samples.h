/* What the samples of a profile say: for each call stack and size of blocks what it has allocated,
 * and which of its sampled blocks are still in use.
 *
 * All counts are estimates: a sample adds as many blocks and bytes as it stands for (sampler.h).
 * Stacks and blocks have tables of fixed length, which are mapped when the first profile begins
 * and take memory as they fill. A sample that finds no room is counted and otherwise left out. One
 * lock; any thread. */
#ifndef HAKMEM_OBSERVE_SAMPLES_H
#define HAKMEM_OBSERVE_SAMPLES_H

#include "base/types.h"
#include "os/lock.h"
#include "options/tuning.h"

/* Blocks and their bytes, as estimated. */
typedef struct amount {
    uint64_t count; /* in parts of WEIGHT_ONE */
    uint64_t bytes;
} amount_t;

typedef struct site {
    uint64_t hash;
    size_t block_size;    /* of its blocks: of their size class */
    uint32_t first_frame; /* among all frames */
    uint32_t depth;
    uint32_t next; /* of the same bucket; 0: none */
    uint16_t slots[SITE_FRAMES_MOST - 1]; /* as os_call_stack says them; 0 if they differ */
    bool is_unnamed;      /* no rule can name the call: it is one of realloc, say */
    amount_t allocated;
    amount_t freed;
    amount_t freed_elsewhere; /* part of `freed`: by another thread than had allocated them */
    uint64_t lifetime_ms;     /* of the freed blocks, added up */
    uint64_t ended;           /* bytes of blocks that are gone: realloc ends none that it moves */
} site_t;

/* Called with each site, and its return addresses, innermost first. */
typedef void (*site_visitor_t)(const site_t *site, const uintptr_t *frames, void *context);

/* Maps the tables, if that was not done yet, for so many sampled blocks in use at a time, a power
 * of two. False: no memory. */
bool samples_create(size_t most_in_use);

/* What is known of a sampled block when it is handed out. */
typedef struct sampled {
    const void *block;
    size_t size;       /* that was asked for */
    size_t block_size; /* that it has, or in a site one of a few */
    uint64_t weight;   /* blocks that it stands for */
    uint64_t now_ms;
    uint16_t slots[SITE_FRAMES_MOST - 1]; /* as os_call_stack says them */
    bool is_unnamed;   /* no rule can name the call (site_rules.h) */
} sampled_t;

/* Notes a sampled block, and the call stack that has asked for it. False: no room. */
bool samples_add(const sampled_t *sampled, const uintptr_t *frames, unsigned depth);

/* The sampled block was freed. A block that is none of the sampled is allowed. */
void samples_remove(const void *block, uint64_t now_ms);

/* The block at `from`, if it is a sampled one, lies at `to` now. */
void samples_move(const void *from, const void *to);

/* Is the block a sampled one, or one that has followed it? */
bool samples_have(const void *block);

/* realloc has moved the block, if it is a sampled one. For its site it counts as freed, but not as
 * ended until the block at `to`, which must be one whose free is seen, is freed. */
void samples_follow(const void *from, const void *to, uint64_t now_ms);

/* The program has asked that the block, if it is a sampled one, be `size` bytes. The sample counts
 * as freed and allocated anew, from where it was allocated first. */
void samples_resize(const void *block, size_t size);

/* The sampled block is about to be freed by the call with these return addresses, which are
 * remembered until at most PROFILE_SITES other blocks were freed. Notes nothing before
 * samples_remember_frees. */
void samples_note_free(const void *block, const uintptr_t *frames, unsigned depth);

/* Frees are noted by samples_note_free from now on. False: no memory. */
bool samples_remember_frees(void);

/* Copies the innermost return addresses of the call that has allocated the sampled block, at most
 * `most`; of one that was freed, if that is remembered. Returns how many; 0: it is no sample. */
unsigned samples_stack(const void *block, uintptr_t *frames, unsigned most);

/* Likewise the call that has freed the block. 0: the block is in use, no sample, or forgotten. */
unsigned samples_free_stack(const void *block, uintptr_t *frames, unsigned most);

/* Is any sampled block in use? Read without the lock. */
bool samples_exist(void);

/* In the child of a fork: what there is counts for the parent alone. Blocks keep their stacks. */
void samples_leave_to_parent(void);

/* Visits the sites that have allocated, under the lock. */
void samples_visit(site_visitor_t visit, void *context);

/* Samples that found no room so far. */
uint64_t samples_left_out(void);

void samples_at_fork(fork_phase_t phase);

#endif
