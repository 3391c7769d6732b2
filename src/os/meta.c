/* Memory for our own structures: a bump pointer, and a list of returned pieces for each power of
 * two. See meta.h. */
#include "os/meta.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "os/lock.h"
#include "os/os.h"
#include "policy/tuning.h"

#define SMALLEST_PIECE CACHE_LINE
#define LARGEST_PIECE (4 * KIB)

typedef struct piece {
    struct piece *next;
} piece_t;

static lock_t meta_lock = LOCK_INITIAL(LOCK_META);
static piece_t *returned[32]; /* by log2 of the size */
static char *bump;
static char *bump_end;
static bool is_short; /* the kernel has refused the last chunk */
static size_t mapped_size;

static size_t piece_size(size_t size)
{
    return power_of_two_at_least(larger_of(size, SMALLEST_PIECE));
}

/* The tail of a chunk that is too small for the request goes to the lists, not to waste. */
static void return_tail(void)
{
    while ((size_t)(bump_end - bump) >= SMALLEST_PIECE) {
        unsigned power = lowest_bit((uintptr_t)bump);
        while (((size_t)1 << power) > (size_t)(bump_end - bump) || power > 12)
            power--;
        piece_t *piece = (piece_t *)(void *)bump;
        piece->next = returned[power];
        returned[power] = piece;
        bump += (size_t)1 << power;
    }
}

static void begin_chunk(char *start, size_t size)
{
    if (bump != NULL)
        return_tail();
    bump = start;
    bump_end = start + size;
    mapped_size += size;
}

static void *bump_alloc(size_t size)
{
    char *start = (char *)align_up((uintptr_t)bump, size);
    if (bump == NULL || start + size > bump_end) {
        start = os_map(META_CHUNK); /* a page is no less than the largest piece */
        is_short = start == NULL;
        if (is_short)
            return NULL;
        begin_chunk(start, META_CHUNK);
    }
    /* What alignment skips is kept for smaller pieces. */
    char *end = bump_end;
    bump_end = start;
    return_tail();
    bump_end = end;
    bump = start + size;
    return start;
}

void *meta_alloc(size_t size)
{
    MUST(size > 0 && size <= LARGEST_PIECE);
    size = piece_size(size);
    lock_acquire(&meta_lock);
    piece_t **list = &returned[highest_bit(size)];
    void *memory = *list;
    if (memory != NULL)
        *list = (*list)->next;
    else
        memory = bump_alloc(size);
    lock_release(&meta_lock);
    /* Fresh chunks are zero already, but a first touch of one line costs what a test would. */
    return memory == NULL ? NULL : memset(memory, 0, size);
}

void meta_free(void *ptr, size_t size)
{
    piece_t *piece = ptr;
    size = piece_size(size);
    lock_acquire(&meta_lock);
    piece_t **list = &returned[highest_bit(size)];
    piece->next = *list;
    *list = piece;
    lock_release(&meta_lock);
}

bool meta_is_short(void)
{
    lock_acquire(&meta_lock);
    bool answer = is_short;
    lock_release(&meta_lock);
    return answer;
}

void meta_add(void *start, size_t size)
{
    lock_acquire(&meta_lock);
    begin_chunk(start, size);
    is_short = false;
    lock_release(&meta_lock);
}

size_t meta_size(void)
{
    lock_acquire(&meta_lock);
    size_t size = mapped_size;
    lock_release(&meta_lock);
    return size;
}

size_t meta_touched_size(void)
{
    lock_acquire(&meta_lock);
    size_t untouched = align_down((size_t)(bump_end - bump), os_page_size());
    size_t size = mapped_size - untouched;
    lock_release(&meta_lock);
    return size;
}

void meta_at_fork(fork_phase_t phase)
{
    lock_at_fork(&meta_lock, phase);
}
