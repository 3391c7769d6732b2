/* Memory for our own structures. See meta.h.
 *
 * Memory is mapped in chunks, each at a multiple of META_CHUNK. A page of a chunk is cut into
 * objects of one length, for ever. The first page begins with the structure of the chunk, which has
 * a bit for each free object. A page without an object in use is idle: its memory can go back to
 * the kernel. */
#include "os/meta.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "os/lock.h"
#include "os/os.h"
#include "options/tuning.h"

#define SMALLEST_OBJECT ((size_t)128)
#define FIRST_PAGE_OBJECT ((size_t)512) /* in the first page of a chunk */
#define PAGE META_MOST
#define CHUNK_PAGES (META_CHUNK / PAGE)

typedef struct page {
    struct page *next; /* among those of the length with free objects */
    uint32_t free;     /* a bit for each object */
} page_t;

typedef struct chunk {
    struct chunk *next;       /* in a ring of all */
    struct chunk *next_fresh; /* among those with fresh pages */
    uint64_t idle;            /* a bit for each idle page that holds memory */
    size_t page_count;
    size_t begun_count; /* pages from here on are fresh */
    page_t pages[CHUNK_PAGES];
} chunk_t;

_Static_assert(CHUNK_PAGES <= 64, "chunk_t.idle has a bit for each page");
_Static_assert(PAGE / SMALLEST_OBJECT <= 32, "page_t.free has a bit for each object");
_Static_assert(sizeof(chunk_t) < PAGE, "the structure of a chunk fits into its first page");

/* The lock protects all of it. */
static struct {
    lock_t lock;
    page_t *open_pages[13]; /* with free blocks, by log2 of their length */
    chunk_t *fresh;         /* the first of the chunks with fresh pages */
    chunk_t *ring;          /* the chunk that was made, or lost idle pages, last */
    uintptr_t added_start;  /* between these two lies what meta_add has added, in chunks of */
    uintptr_t added_end;    /* ADDED_CHUNK bytes, and nothing that was mapped */
    uintptr_t mapped_start; /* between these two lies what was mapped */
    uintptr_t mapped_end;
    size_t mapped_size;   /* bytes mapped or added so far */
    size_t touched_pages; /* pages that hold memory */
    size_t used_pages;    /* pages that are not idle, but for the first of each chunk */
    size_t idle_pages;    /* pages that are idle, hold memory and can lose it */
    bool is_short;        /* the kernel has refused the last chunk */
} meta_state = {.lock = LOCK_INITIAL(LOCK_META), .mapped_start = UINTPTR_MAX};

#define ADDED_CHUNK UNIT_SIZE
_Static_assert(ADDED_CHUNK > PAGE, "a page describes the others");

/* Pieces of 256 bytes are few: a small process is spared a page for them. */
static size_t object_size(size_t size)
{
    size = power_of_two_at_least(larger_of(size, SMALLEST_OBJECT));
    return size == FIRST_PAGE_OBJECT / 2 ? FIRST_PAGE_OBJECT : size;
}

static uint32_t all_objects(size_t size)
{
    return (uint32_t)low_bits((unsigned)(PAGE / size));
}

static bool meta_is_added(const void *ptr)
{
    return (uintptr_t)ptr - meta_state.added_start < meta_state.added_end - meta_state.added_start;
}

static chunk_t *meta_chunk_of(const void *ptr)
{
    return (chunk_t *)align_down((uintptr_t)ptr, meta_is_added(ptr) ? ADDED_CHUNK : META_CHUNK);
}

static void meta_begin_chunk(chunk_t *chunk, size_t size)
{
    unsigned own = (unsigned)(align_up(sizeof *chunk, FIRST_PAGE_OBJECT) / FIRST_PAGE_OBJECT);
    page_t **list = &meta_state.open_pages[highest_bit(FIRST_PAGE_OBJECT)];
    chunk->idle = 0;
    chunk->page_count = size / PAGE;
    chunk->begun_count = 1;
    chunk->next_fresh = meta_state.fresh;
    meta_state.fresh = chunk;
    chunk->next = meta_state.ring == NULL ? chunk : meta_state.ring->next;
    if (meta_state.ring != NULL)
        meta_state.ring->next = chunk;
    meta_state.ring = chunk;
    chunk->pages[0] = (page_t){*list, all_objects(FIRST_PAGE_OBJECT) & (uint32_t)~low_bits(own)};
    *list = &chunk->pages[0];
    meta_state.mapped_size += size;
    meta_state.touched_pages++;
}

/* Where the table of mappings is full the addresses stay mapped, and nobody uses them. */
static void meta_unmap_rest(void *start, size_t size)
{
    if (size != 0 && !os_release(start, size))
        meta_state.mapped_size += size;
}

/* Maps memory at a multiple of META_CHUNK: where the kernel puts it or near there, or else cut out
 * of a mapping of twice META_CHUNK. */
static void *meta_map_aligned(size_t size)
{
    char *start = os_map(size);
    char *aligned = (char *)align_down((uintptr_t)start, META_CHUNK);
    if (start == aligned)
        return start;
    if (start != NULL)
        meta_unmap_rest(start, size);
    if (os_map_at(aligned, size) == OS_DONE)
        return aligned;
    if (start != NULL && os_map_at(aligned + META_CHUNK, size) == OS_DONE)
        return aligned + META_CHUNK;
    start = os_map(2 * META_CHUNK);
    if (start == NULL)
        return NULL;
    char *end = start + 2 * META_CHUNK;
    aligned = (char *)align_up((uintptr_t)start, META_CHUNK);
    meta_unmap_rest(start, (size_t)(aligned - start));
    meta_unmap_rest(aligned + size, (size_t)(end - aligned) - size);
    return aligned;
}

/* Maps a chunk, near a limit a shorter one. False: the kernel refuses. */
static bool meta_map_chunk(void)
{
    size_t size = META_CHUNK;
    chunk_t *chunk = meta_map_aligned(size);
    while (chunk == NULL && size / 4 >= larger_of(ADDED_CHUNK, os_page_size()))
        chunk = meta_map_aligned(size /= 4);
    uintptr_t start = (uintptr_t)chunk;
    if (chunk != NULL && start < meta_state.added_end &&
        start + META_CHUNK > meta_state.added_start) {
        meta_unmap_rest(chunk, size); /* meta_chunk_of would be wrong */
        chunk = NULL;
    }
    meta_state.is_short = chunk == NULL;
    if (meta_state.is_short)
        return false;
    meta_state.mapped_start = smaller_of(meta_state.mapped_start, start);
    meta_state.mapped_end = larger_of(meta_state.mapped_end, start + META_CHUNK);
    meta_begin_chunk(chunk, size);
    return true;
}

/* A fresh page, all of its objects free. */
static page_t *meta_begin_page(size_t size)
{
    chunk_t *chunk = meta_state.fresh;
    page_t *page = &chunk->pages[chunk->begun_count++];
    *page = (page_t){NULL, all_objects(size)};
    if (chunk->begun_count == chunk->page_count)
        meta_state.fresh = chunk->next_fresh;
    return page;
}

static void *take_object(page_t *page, size_t size)
{
    chunk_t *chunk = meta_chunk_of(page);
    size_t number = (size_t)(page - chunk->pages);
    uint64_t bit = (uint64_t)1 << number;
    if (page->free == all_objects(size)) {
        meta_state.used_pages++;
        meta_state.idle_pages -= chunk->idle & bit ? 1 : 0;
        meta_state.touched_pages += chunk->idle & bit ? 0 : 1;
        chunk->idle &= ~bit;
    }
    size_t object = lowest_bit(page->free);
    page->free &= page->free - 1;
    return (char *)chunk + number * PAGE + object * size;
}

void *meta_alloc(size_t size)
{
    MUST(size > 0 && size <= META_MOST);
    size = object_size(size);
    void *memory = NULL;
    lock_acquire(&meta_state.lock);
    page_t **list = &meta_state.open_pages[highest_bit(size)];
    if (*list == NULL && (meta_state.fresh != NULL || meta_map_chunk()) && *list == NULL)
        *list = meta_begin_page(size);
    page_t *page = *list;
    if (page != NULL) {
        memory = take_object(page, size);
        if (page->free == 0)
            *list = page->next;
    }
    lock_release(&meta_state.lock);
    /* Fresh pages are zero already, but a first touch of one line costs what a test would. */
    return memory == NULL ? NULL : memset(memory, 0, size);
}

/* Gives the idle pages of one chunk back, the next that has some. Where the kernel refuses they
 * are not tried again before they were in use. Pages of memory that was added stay: blocks of the
 * program lay there, and its hooks would not learn of it. */
static void meta_purge_next(void)
{
    chunk_t *chunk = meta_state.ring->next;
    while (chunk->idle == 0 && chunk != meta_state.ring)
        chunk = chunk->next;
    meta_state.ring = chunk;
    meta_state.idle_pages -= count_bits(chunk->idle);
    meta_state.touched_pages -= count_bits(chunk->idle);
    while (chunk->idle != 0) {
        unsigned first = lowest_bit(chunk->idle);
        unsigned count = count_low_bits(chunk->idle >> first);
        char *start = (char *)align_up((uintptr_t)chunk + first * PAGE, os_page_size());
        char *end = (char *)align_down((uintptr_t)chunk + (first + count) * PAGE, os_page_size());
        if (start < end && !meta_is_added(start))
            (void)os_purge_own(start, (size_t)(end - start));
        chunk->idle &= ~(low_bits(count) << first);
    }
}

void meta_free(void *ptr, size_t size)
{
    size = object_size(size);
    lock_acquire(&meta_state.lock);
    chunk_t *chunk = meta_chunk_of(ptr);
    size_t offset = (size_t)((char *)ptr - (char *)chunk);
    page_t *page = &chunk->pages[offset / PAGE];
    page_t **list = &meta_state.open_pages[highest_bit(size)];
    uint32_t bit = (uint32_t)1 << offset % PAGE / size;
    MUST((page->free & bit) == 0);
    if (page->free == 0) {
        page->next = *list;
        *list = page;
    }
    page->free |= bit;
    if (page->free == all_objects(size)) {
        meta_state.used_pages--;
        chunk->idle |= (uint64_t)1 << offset / PAGE;
        meta_state.idle_pages++;
        if (meta_state.idle_pages > meta_state.used_pages + META_IDLE / PAGE)
            meta_purge_next();
    }
    lock_release(&meta_state.lock);
}

bool meta_is_short(void)
{
    lock_acquire(&meta_state.lock);
    bool answer = meta_state.is_short;
    lock_release(&meta_state.lock);
    return answer;
}

void meta_add(void *start, size_t size)
{
    uintptr_t from = (uintptr_t)start;
    lock_acquire(&meta_state.lock);
    uintptr_t first = meta_state.added_end == 0 ? from : smaller_of(meta_state.added_start, from);
    uintptr_t end = larger_of(meta_state.added_end, from + size);
    if (end <= meta_state.mapped_start ||
        first >= meta_state.mapped_end) { /* else meta_chunk_of would be wrong */
        meta_state.added_start = first;
        meta_state.added_end = end;
        for (; size != 0; size -= ADDED_CHUNK, from += ADDED_CHUNK)
            meta_begin_chunk((chunk_t *)from, ADDED_CHUNK);
        meta_state.is_short = false;
    }
    lock_release(&meta_state.lock);
}

size_t meta_size(void)
{
    lock_acquire(&meta_state.lock);
    size_t size = meta_state.mapped_size;
    lock_release(&meta_state.lock);
    return size;
}

size_t meta_touched_size(void)
{
    lock_acquire(&meta_state.lock);
    size_t size = meta_state.touched_pages * PAGE;
    lock_release(&meta_state.lock);
    return size;
}

void meta_at_fork(fork_phase_t phase)
{
    lock_at_fork(&meta_state.lock, phase);
}
