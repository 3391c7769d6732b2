/* Slabs: create, take, give. See slab.h. */
#include "slab/slab.h"

#include <string.h>

#include "base/assert.h"
#include "base/bitmap.h"
#include "os/meta.h"
#include "os/os.h"
#include "options/tuning.h"
#include "slab/block_record.h"
#include "slab/size_class.h"
#include "heap/page_heap.h"
#include "heap/span_cache.h"
#include "heap/sparse_chunks.h"

static size_t slab_word_count(const slab_t *slab)
{
    return ((size_t)slab->block_count + 63) / 64;
}

/* What is kept in the span cache serves before fresh memory. */
static span_t *slab_take_span(unsigned class, unsigned map_class)
{
    size_t unit_count = size_classes[class].unit_count;
    size_t size = size_classes[class].size;
    size_t least_count = align_up(size, UNIT_SIZE) >> UNIT_SHIFT;
    /* A page at least, for the pages of a slab are counted from its start. */
    size_t alignment = larger_of(size % SLAB_ALIGNMENT == 0 ? SLAB_ALIGNMENT : UNIT_SIZE,
                                 os_page_size());
    span_cache_evict_for(unit_count);
    return page_heap_alloc_slab(unit_count, least_count, alignment, map_class,
                                size <= os_page_size());
}

/* Units of the slab of which each page was purged: a bit for each. */
static uint32_t slab_purged_units(const slab_t *slab)
{
    size_t page = os_page_size();
    uint32_t units = 0;
    for (size_t unit = 0; slab->purged != 0 && unit < slab->span.unit_count; unit++) {
        size_t first = unit * UNIT_SIZE / page;
        size_t end = ((unit + 1) * UNIT_SIZE + page - 1) / page;
        uint32_t pages = (uint32_t)(low_bits((unsigned)(end - first)) << first);
        if ((slab->purged & pages) == pages)
            units |= (uint32_t)1 << unit;
    }
    return units;
}

static void slab_set_leaving(slab_t *slab, uint32_t pages)
{
    /* relaxed: slab_check reads it without the lock, of a block that none of them belongs to */
    __atomic_store_n(&slab->span.leaving, pages, __ATOMIC_RELAXED);
}

static slab_t *slab_create_in(unsigned class, unsigned map_class)
{
    span_t *span = slab_take_span(class, map_class);
    if (span == NULL)
        return NULL;
    slab_t *slab = (slab_t *)span;
    slab->block_count = (uint16_t)(span_size(span) / size_classes[class].size);
    slab->free_bits = &slab->only_word;
    if (slab->block_count > 64)
        slab->free_bits = meta_alloc(slab_word_count(slab) * sizeof(uint64_t));
    if (slab->free_bits == NULL) {
        page_heap_free_slab(span, 0, os_clock_ms());
        return NULL;
    }
    slab->only_word = 0;
    bitmap_set(slab->free_bits, 0, slab->block_count);
    slab->free_count = slab->block_count;
    slab->first_word = 0;
    slab->class = (uint8_t) class;
    slab->purged = 0;
    slab_set_leaving(slab, 0);
    slab->looked_count = 0;
    list_init(&slab->node);
    return slab;
}

slab_t *slab_create(unsigned class)
{
    return slab_create_in(class, class);
}

slab_t *slab_create_hidden(unsigned class)
{
    return slab_create_in(class, 0);
}

void slab_destroy(slab_t *slab, uint64_t now_ms)
{
    MUST(slab->free_count == slab->block_count && slab_is_valid(slab));
    if (slab->block_count > 64)
        meta_free(slab->free_bits, slab_word_count(slab) * sizeof(uint64_t));
    if (frees_are_checked()) /* marks of filled blocks */
        memset(block_record(span_start(&slab->span)), 0, slab->span.unit_count * UNIT_GRANULES);
    page_heap_free_slab(&slab->span, slab_purged_units(slab), now_ms);
}

static void slab_set_word(slab_t *slab, size_t word, uint64_t bits)
{
    /* relaxed: slab_check reads a bit of its own without the lock */
    __atomic_store_n(&slab->free_bits[word], bits, __ATOMIC_RELAXED);
}

/* Writes a word of free bits back that got some more. */
static void slab_return_word(slab_t *slab, size_t word, uint64_t bits)
{
    slab_set_word(slab, word, bits);
    if (word < slab->first_word)
        slab->first_word = (uint16_t)word;
}

/* ---- pages ---- */

/* One bit for each page. */
_Static_assert(SLAB_LONGEST <= 32 * 4 * KIB, "slab_t.purged has a bit for each page");

/* The pages in which blocks lie, and none of them in use. */
static uint32_t slab_idle_pages(const slab_t *slab)
{
    size_t size = size_classes[slab->class].size;
    size_t page = os_page_size();
    uint32_t pages = 0;
    for (size_t index = 0; (index + 1) * page <= span_size(&slab->span); index++) {
        size_t first = index * page / size;
        size_t end = smaller_of(((index + 1) * page + size - 1) / size, slab->block_count);
        if (first < end && bitmap_find(slab->free_bits, first, end, false) == end)
            pages |= (uint32_t)1 << index;
    }
    return pages;
}

/* Without the rows of fewer than `least` bits (a power of two, 4 at most). */
static uint32_t slab_long_rows(uint32_t pages, unsigned least)
{
    uint32_t starts = pages;
    uint32_t rows;
    for (unsigned width = 1; width < least; width *= 2)
        starts &= starts >> width; /* where as many as twice the width begin */
    rows = starts;
    for (unsigned width = 1; width < least; width *= 2)
        rows |= rows << width;
    return rows;
}

/* The first bits of `pages` that stand in a row, at most `most` (> 0) of them. */
static uint32_t slab_first_run(uint32_t pages, size_t most)
{
    unsigned first = lowest_bit(pages);
    uint64_t rest = ~((uint64_t)pages >> first);
    unsigned length = (unsigned)smaller_of(lowest_bit(rest), most);
    return (uint32_t)(low_bits(length) << first);
}

/* The blocks of which a part lies in a run of pages: from *first to the one before *end. */
static void slab_blocks_in(const slab_t *slab, uint32_t run, size_t *first, size_t *end)
{
    size_t size = size_classes[slab->class].size;
    size_t start = lowest_bit(run) * os_page_size();
    *first = start / size;
    *end = (start + count_bits(run) * os_page_size() + size - 1) / size;
    *end = smaller_of(*end, slab->block_count);
}

bool slab_leaves(const slab_t *slab, size_t block)
{
    size_t size = size_classes[slab->class].size;
    size_t first = block * size / os_page_size();
    size_t last = ((block + 1) * size - 1) / os_page_size();
    uint64_t pages = low_bits((unsigned)(last - first) + 1) << first;
    return (__atomic_load_n(&slab->span.leaving, __ATOMIC_RELAXED) & pages) != 0;
}

uint32_t slab_take_pages(slab_t *slab, size_t most_bytes, unsigned least)
{
    size_t page = os_page_size();
    size_t first;
    size_t end;
    if (slab->looked_count == slab->free_count) /* nearly always nothing has changed, then */
        return 0;
    uint32_t left = slab_long_rows(slab_idle_pages(slab) & ~slab->purged, least);
    if (left == 0) {
        if (least == 1)
            slab->looked_count = slab->free_count;
        return 0;
    }
    uint32_t run = slab_first_run(left, most_bytes / page + (most_bytes % page != 0));
    slab_blocks_in(slab, run, &first, &end);
    for (size_t word = first / 64; word * 64 < end; word++)
        slab_set_word(slab, word, slab->free_bits[word] & ~bitmap_mask(word, first, end));
    slab->free_count = (uint16_t)(slab->free_count - (end - first));
    slab_set_leaving(slab, slab->span.leaving | run);
    return run;
}

bool slab_purge_pages(const slab_t *slab, uint32_t run)
{
    size_t page = os_page_size();
    char *start = span_start(&slab->span) + lowest_bit(run) * page;
    size_t size = count_bits(run) * page;
    if (__atomic_load_n(&page_heap.is_advised, __ATOMIC_RELAXED)) {
        size_t unit = unit_of(start);
        sparse_chunks_note(unit, unit_of(start + size - 1) - unit + 1);
    }
    return os_purge(start, size);
}

unsigned slab_return_pages(slab_t *slab, uint32_t run, bool is_purged)
{
    size_t first;
    size_t end;
    unsigned count = 0;
    slab_blocks_in(slab, run, &first, &end);
    for (size_t word = first / 64; word * 64 < end; word++) {
        uint64_t missing = bitmap_mask(word, first, end) & ~slab->free_bits[word];
        count += count_bits(missing);
        slab_return_word(slab, word, slab->free_bits[word] | missing);
    }
    slab->free_count = (uint16_t)(slab->free_count + count);
    slab_set_leaving(slab, slab->span.leaving & ~run);
    slab->looked_count = 0;
    if (is_purged)
        slab->purged |= run;
    return count;
}

size_t slab_purged_bytes(const slab_t *slab)
{
    return count_bits(slab->purged) * os_page_size();
}

/* ---- taking and giving ---- */

/* Hands out blocks of a word of free bits until `end`; free blocks mostly lie in rows. Returns how
 * far it came, and in *bits what is left. */
static void **slab_hand_out(const slab_t *slab, size_t word, uint64_t *bits, void **top, void **end)
{
    size_t size = size_classes[slab->class].size;
    char *first = span_start(&slab->span) + word * 64 * size;
    while (*bits != 0 && top != end) {
        unsigned index = lowest_bit(*bits);
        unsigned row = count_low_bits(*bits >> index);
        row = (unsigned)smaller_of(row, (size_t)(top - end));
        *bits &= ~(low_bits(row) << index);
        char *block = first + index * size;
        for (void **row_end = top - row; top != row_end; block += size)
            *--top = block;
    }
    return top;
}

/* Blocks, whether free or not, of which a part lies in a page that was given back: rows of them, in
 * order, each from `first` to the one before `end`. */
typedef struct purged_rows {
    unsigned count;
    unsigned next; /* no row before this one reaches the word that is looked at, or a later one */
    uint16_t first[16];
    uint16_t end[16];
} purged_rows_t;

static void slab_find_purged_rows(const slab_t *slab, purged_rows_t *rows)
{
    uint32_t size = size_classes[slab->class].size;
    uint32_t page = (uint32_t)os_page_size();
    uint32_t left = slab->purged;
    rows->count = rows->next = 0;
    while (left != 0) {
        uint32_t run = slab_first_run(left, 32);
        uint32_t start = lowest_bit(run) * page;
        uint32_t end = start + count_bits(run) * page;
        rows->first[rows->count] = (uint16_t)(start / size);
        rows->end[rows->count++] = (uint16_t)((end + size - 1) / size);
        left &= ~run;
    }
}

/* The purged blocks among those of a word. The caller asks for one word after another. */
static uint64_t slab_purged_blocks(purged_rows_t *rows, size_t word)
{
    uint64_t blocks = 0;
    while (rows->next < rows->count && rows->end[rows->next] <= word * 64)
        rows->next++;
    for (unsigned row = rows->next; row < rows->count && rows->first[row] < (word + 1) * 64; row++)
        blocks |= bitmap_mask(word, rows->first[row], rows->end[row]);
    return blocks;
}

bool slab_has_resident(const slab_t *slab)
{
    purged_rows_t rows;
    if (slab->purged == 0)
        return slab->free_count != 0;
    slab_find_purged_rows(slab, &rows);
    for (size_t word = slab->first_word; word < slab_word_count(slab); word++)
        if ((slab->free_bits[word] & ~slab_purged_blocks(&rows, word)) != 0)
            return true;
    return false;
}

/* Takes free blocks word by word, none of the `rows`. */
static void **slab_take_beside(slab_t *slab, purged_rows_t *rows, void **top, void **end)
{
    bool is_used_up = true; /* no word so far has a free block */
    for (size_t word = slab->first_word; word < slab_word_count(slab) && top != end; word++) {
        uint64_t bits = slab->free_bits[word];
        uint64_t kept = bits & slab_purged_blocks(rows, word);
        bits &= ~kept;
        if (bits != 0) {
            top = slab_hand_out(slab, word, &bits, top, end);
            slab_set_word(slab, word, bits | kept);
        }
        if (is_used_up)
            slab->first_word = (uint16_t)word;
        is_used_up &= (bits | kept) == 0;
    }
    return top;
}

/* Pages of the slab were given back: takes what causes no page fault, or else the rest. */
static NOINLINE void **slab_take_with_purged(slab_t *slab, void **top, void **end)
{
    void **start = top;
    purged_rows_t rows;
    slab_find_purged_rows(slab, &rows);
    top = slab_take_beside(slab, &rows, top, end);
    if (top != start)
        return top;
    rows.count = rows.next = 0;
    top = slab_take_beside(slab, &rows, top, end);
    slab->purged &= slab_idle_pages(slab);
    return top;
}

unsigned slab_take(slab_t *slab, void **top, unsigned count)
{
    void **end = top - smaller_of(count, slab->free_count);
    void **start = top;
    if (UNLIKELY(slab->purged != 0)) {
        top = slab_take_with_purged(slab, top, end);
    } else {
        for (size_t word = slab->first_word; top != end; word++) {
            uint64_t bits = slab->free_bits[word];
            top = slab_hand_out(slab, word, &bits, top, end);
            slab_set_word(slab, word, bits);
            slab->first_word = (uint16_t)word;
        }
    }
    unsigned taken = (unsigned)(start - top);
    slab->free_count = (uint16_t)(slab->free_count - taken);
    slab->looked_count = 0;
    return taken;
}

/* Freed in no order, each block lies in another slab than the one before. */
static unsigned slab_give_one(slab_t *slab, const void *ptr, slab_verdict_t *result)
{
    size_t block = slab_block_at(slab, ptr);
    *result = NOT_A_BLOCK;
    if (UNLIKELY(block >= slab->block_count))
        return 0;
    uint64_t bits = slab->free_bits[block / 64];
    uint64_t bit = (uint64_t)1 << block % 64;
    *result = ALREADY_FREE;
    if (UNLIKELY((bits & bit) != 0) || UNLIKELY(slab_is_leaving(slab, block)))
        return 0;
    *result = IN_USE;
    slab_return_word(slab, block / 64, bits | bit);
    slab->free_count++;
    return 1;
}

/* Blocks freed together often share a word of bits: it stays in a register until another is due,
 * for a store that the next load waits for costs more than the rest of the loop. */
static unsigned slab_give_many(slab_t *slab, void *const *blocks, unsigned count,
                               slab_verdict_t *result)
{
    uint64_t reciprocal = size_classes[slab->class].reciprocal;
    uint64_t size = size_classes[slab->class].size;
    uint64_t extent = slab->block_count * size;
    uintptr_t start = (uintptr_t)span_start(&slab->span);
    size_t word = slab->first_word;
    uint64_t bits = slab->free_bits[word];
    unsigned given = 0;
    *result = IN_USE;
    for (; given < count; given++) {
        uint64_t offset = (uintptr_t)blocks[given] - start;
        uint64_t block = offset * reciprocal >> 40;
        if (offset >= extent || UNLIKELY(block * size != offset)) {
            /* Of another slab, which is not looked at, or no block. */
            *result = offset < extent || given == 0 ? NOT_A_BLOCK : IN_USE;
            break;
        }
        if (block / 64 != word) {
            slab_return_word(slab, word, bits);
            word = block / 64;
            bits = slab->free_bits[word];
        }
        uint64_t bit = (uint64_t)1 << (block % 64);
        if (UNLIKELY((bits & bit) != 0)) {
            *result = ALREADY_FREE;
            break;
        }
        bits |= bit;
    }
    slab_return_word(slab, word, bits);
    slab->free_count = (uint16_t)(slab->free_count + given);
    return given;
}

unsigned slab_give(slab_t *slab, void *const *blocks, unsigned count, slab_verdict_t *result)
{
    uintptr_t start = (uintptr_t)span_start(&slab->span);
    bool is_row = count > 1 && (uintptr_t)blocks[1] - start < span_size(&slab->span);
    if (is_row && LIKELY(slab->span.leaving == 0))
        return slab_give_many(slab, blocks, count, result);
    return slab_give_one(slab, blocks[0], result);
}

bool slab_is_valid(const slab_t *slab)
{
    size_t room = slab_word_count(slab) * 64;
    size_t beyond = 0;
    if (room > slab->block_count)
        beyond = bitmap_count(slab->free_bits, slab->block_count, room - slab->block_count);
    /* A block may lie in a page that was given back and in one that is on its way. */
    bool are_idle = slab->span.leaving != 0 || (slab->purged & ~slab_idle_pages(slab)) == 0;
    if (beyond != 0 || !are_idle)
        return false;
    return bitmap_count(slab->free_bits, 0, slab->block_count) == slab->free_count &&
           bitmap_find(slab->free_bits, 0, slab->block_count, true) / 64 >=
               (slab->free_count == 0 ? 0 : slab->first_word);
}
