/* The page map: where the window lies, and how it grows. See page_map.h. */
#include "heap/page_map.h"

#include "base/assert.h"
#include "base/bits.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"

uintptr_t window_base = WINDOW_NOWHERE;
size_t window_unit_count;
class_offset_t class_offset_origin;
class_offset_t *window_class_map;
struct span **window_spans;
window_tables_t window_tables;
size_t window_open_granules;
size_t window_derived_granules;
size_t window_watched_granules;
bool operators_are_replaced;

static struct {
    lock_t lock;
    size_t committed_units; /* units for which the tables are backed by memory */
    size_t unmapped_chunks; /* of the chunks counted, those that page_map_map_again may map */
    bool is_watched;        /* the hit path of free is closed for upkeep */
    void *trial_page;       /* a page that is never touched, for page_map_is_refused */
    /* Addresses for the tables of as many units. Where the kernel refuses to back the first of
     * them, and to take the addresses back, they wait here for the next attempt. */
    char *reservation;
    size_t reserved_units;
} page_map_state = {.lock = LOCK_INITIAL(LOCK_WINDOW)};

/* Where windows begin, in the order of trying: 16 to 80 TiB in the usual 47-bit address space, far
 * from programs, stacks and libraries at its ends; 64 to 128 GiB where there are 39 bits or so. */
static const struct {
    uintptr_t base;
    uintptr_t spread;
} places[] = {
    {(uintptr_t)1 << 44, (uintptr_t)1 << 46},
    {(uintptr_t)1 << 36, (uintptr_t)1 << 36},
    {(uintptr_t)1 << 31, (uintptr_t)1 << 30},
};

/* Windows begin on a multiple of a huge page, so that their chunks can be huge. */
#define WINDOW_ALIGNMENT (CHUNK_UNITS << UNIT_SHIFT)

/* Twice the machine's memory, so that neither slabs nor large blocks, which may have half of it,
 * run out of addresses before memory does. No more than a multiple of what the process is allowed
 * now, for the tables count against that: they take a twentieth of a limit that it may raise, and
 * little more than a hundredth of one that it may not. */
static size_t page_map_window_size(void)
{
    size_t memory = os_physical_memory();
    size_t size = memory == 0 ? UNKNOWN_WINDOW_GIB * GIB : power_of_two_at_least(2 * memory);
    size = smaller_of(larger_of(size, SMALLEST_WINDOW_GIB * GIB), LARGEST_WINDOW_GIB * GIB);
    size_t limit = os_address_space_limit();
    if (limit == SIZE_MAX)
        return size;
    size_t times = os_address_space_may_grow() ? WINDOW_TIMES_SOFT_LIMIT : WINDOW_TIMES_HARD_LIMIT;
    if (limit < size / times)
        size = align_up(larger_of(times * limit, WINDOW_ALIGNMENT), WINDOW_ALIGNMENT);
    return size;
}

static size_t page_map_table_size(size_t entries_size)
{
    return align_up(entries_size, os_page_size());
}

/* Bytes of each table, whole pages, in the order in which they lie. */
typedef struct layout {
    size_t kinds; /* and the marks of sparse chunks, and the page for trials */
    size_t classes;
    size_t spans;
    size_t dirty;
} layout_t;

static layout_t page_map_layout_for(size_t units)
{
    return (layout_t){
        .kinds = 2 * page_map_table_size(units / CHUNK_UNITS) + os_page_size(),
        .classes = page_map_table_size(units * sizeof(class_offset_t)),
        .spans = page_map_table_size(units * sizeof(struct span *)),
        .dirty = page_map_table_size(units / 8 + sizeof(uint64_t)),
    };
}

static size_t page_map_layout_size(const layout_t *layout)
{
    return layout->kinds + layout->classes + layout->spans + layout->dirty;
}

/* The addresses for one size of window, with the first table backed by memory. */
static bool page_map_reserve_for(size_t units)
{
    layout_t layout = page_map_layout_for(units);
    if (page_map_state.reservation == NULL) {
        page_map_state.reserved_units = units;
        page_map_state.reservation = os_reserve(page_map_layout_size(&layout));
    }
    layout = page_map_layout_for(page_map_state.reserved_units);
    if (page_map_state.reservation == NULL || os_commit(page_map_state.reservation, layout.kinds))
        return page_map_state.reservation != NULL;
    if (os_release(page_map_state.reservation, page_map_layout_size(&layout)))
        page_map_state.reservation = NULL;
    return false;
}

bool page_map_create(void)
{
    size_t size = page_map_window_size();
    while (size >= WINDOW_ALIGNMENT && !page_map_reserve_for(size >> UNIT_SHIFT))
        size /= 2;
    if (size < WINDOW_ALIGNMENT)
        return false;
    layout_t layout = page_map_layout_for(page_map_state.reserved_units);
    char *tables = page_map_state.reservation;
    window_tables.kinds = (uint8_t *)tables;
    window_tables.sparse =
        window_tables.kinds + page_map_table_size(page_map_state.reserved_units / CHUNK_UNITS);
    tables += layout.kinds;
    page_map_state.trial_page = tables - os_page_size();
    window_class_map = (class_offset_t *)(void *)tables;
    tables += layout.classes;
    window_spans = (struct span **)(void *)tables;
    tables += layout.spans;
    window_tables.dirty = (uint64_t *)(void *)tables;
    window_tables.unit_limit = page_map_state.reserved_units;
    page_map_state.reservation = NULL;
    return true;
}

/* Backs the part of a table that entries [from, to) of `bits` bits need. */
static bool page_map_commit_table(void *table, size_t bits, size_t from, size_t to)
{
    size_t page = os_page_size();
    size_t start = align_up((from * bits + 7) / 8, page);
    size_t end = align_up((to * bits + 7) / 8, page);
    return start >= end || os_commit((char *)table + start, end - start);
}

/* Maps the records of units [from, to). Like the window they are only planned, behind its end: a
 * sixteenth of the window reserved would count against the limits of the process. */
static bool page_map_map_records(size_t from, size_t to)
{
    uint8_t *start = window_tables.records + from * UNIT_GRANULES;
    return from >= to || os_map_at(start, (to - from) * UNIT_GRANULES) == OS_DONE;
}

static bool page_map_commit_to(size_t goal)
{
    if (!page_map_commit_table(window_class_map, 32, page_map_state.committed_units, goal) ||
        !page_map_commit_table(window_spans, 64, page_map_state.committed_units, goal) ||
        !page_map_commit_table(window_tables.dirty, 1, page_map_state.committed_units, goal) ||
        (window_tables.records != NULL &&
         !page_map_map_records(page_map_state.committed_units, goal)))
        return false;
    page_map_state.committed_units = goal;
    return true;
}

/* In steps of 4096 units, 32 MiB: four pages of classes, eight of spans. Near a limit as needed. */
static bool page_map_commit_tables(size_t unit_count)
{
    size_t goal = smaller_of(align_up(unit_count, 4096), window_tables.unit_limit);
    return unit_count <= page_map_state.committed_units || page_map_commit_to(goal) ||
           (unit_count < goal && page_map_commit_to(unit_count));
}

/* The first records, where frees are checked, of a window that begins at `base`. */
static bool page_map_map_first_records(uintptr_t base)
{
    if (!options.check_frees)
        return true;
    window_tables.records = (uint8_t *)base + (window_tables.unit_limit << UNIT_SHIFT);
    if (page_map_map_records(0, page_map_state.committed_units))
        return true;
    if (page_map_map_records(0, CHUNK_UNITS)) {
        page_map_state.committed_units = CHUNK_UNITS;
        return true;
    }
    window_tables.records = NULL;
    return false;
}

/* Maps the first units of the window, wherever the kernel lets us begin. */
static bool page_map_map_first(size_t unit_count)
{
    uint64_t random = os_random();
    for (unsigned place = 0; place < sizeof places / sizeof places[0]; place++)
        for (unsigned attempt = 0; attempt < 4; attempt++) {
            uintptr_t offset = (uintptr_t)(random >> (8 * attempt)) * WINDOW_ALIGNMENT;
            uintptr_t base = places[place].base + offset % places[place].spread;
            if (os_map_at((void *)base, unit_count << UNIT_SHIFT) != OS_DONE)
                continue;
            if (page_map_map_first_records(base)) {
                window_base = base;
                return true;
            }
            os_release((void *)base, unit_count << UNIT_SHIFT);
        }
    return false;
}

/* The caller holds the lock. */
static void page_map_set_kind(size_t first, size_t unit_count, uint8_t kind)
{
    /* relaxed: a reader without the lock has a block there, or asks about another's memory */
    for (size_t chunk = first / CHUNK_UNITS; chunk * CHUNK_UNITS < first + unit_count; chunk++)
        __atomic_store_n(&window_tables.kinds[chunk], kind, __ATOMIC_RELAXED);
}

/* The caller holds the lock. */
static void page_map_open_granules(void)
{
    size_t count = options.check_frees ? 0 : window_unit_count * UNIT_GRANULES;
    size_t open = page_map_state.is_watched ? 0 : count;
    __atomic_store_n(&window_watched_granules, count - open, __ATOMIC_RELEASE);
    __atomic_store_n(&window_open_granules, open, __ATOMIC_RELEASE);
    __atomic_store_n(&window_derived_granules, operators_are_replaced ? 0 : open,
                     __ATOMIC_RELEASE);
}

void page_map_watch(bool is_watched)
{
    lock_acquire(&page_map_state.lock);
    page_map_state.is_watched = is_watched;
    page_map_open_granules();
    lock_release(&page_map_state.lock);
}

/* Maps units at the end of the window. What a part of a chunk leaves of it is never mapped. The
 * caller holds the lock. */
static size_t page_map_map_at_end(size_t unit_count, uint8_t kind)
{
    size_t first = window_unit_count;
    size_t room = align_up(unit_count, CHUNK_UNITS);
    size_t skip = 1;
    while (room <= window_tables.unit_limit && first <= window_tables.unit_limit - room) {
        if (!page_map_commit_tables(first + room))
            return SIZE_MAX;
        os_result_t result = OS_DONE;
        if (window_base == WINDOW_NOWHERE)
            result = page_map_map_first(unit_count) ? OS_DONE : OS_NO_MEMORY;
        else
            result = os_map_at(unit_address(first), unit_count << UNIT_SHIFT);
        if (result == OS_NO_MEMORY)
            return SIZE_MAX;
        if (result == OS_DONE) {
            page_map_set_kind(window_unit_count, first - window_unit_count, CHUNK_SKIPPED);
            page_map_set_kind(first, unit_count, kind);
            /* release: the tables are readable before anybody looks the units up (span_at), and the
             * kinds are known (window_has) */
            __atomic_store_n(&window_unit_count, first + room, __ATOMIC_RELEASE);
            page_map_open_granules();
            return first;
        }
        /* Somebody else's mapping lies in our way: step over it, in ever larger steps. */
        first += skip * CHUNK_UNITS;
        skip *= 2;
    }
    return SIZE_MAX;
}

/* Maps chunks again that page_map_unmap gave back. The caller holds the lock. */
static size_t page_map_map_again(size_t unit_count, uint8_t kind)
{
    size_t wanted = unit_count / CHUNK_UNITS;
    size_t run = 0;
    for (size_t chunk = 0; chunk < window_unit_count / CHUNK_UNITS; chunk++) {
        run = window_tables.kinds[chunk] == CHUNK_UNMAPPED ? run + 1 : 0;
        if (run != wanted)
            continue;
        size_t first_chunk = chunk + 1 - wanted;
        size_t first = first_chunk * CHUNK_UNITS;
        if (os_map_at(unit_address(first), unit_count << UNIT_SHIFT) != OS_DONE)
            return SIZE_MAX; /* at the end, then */
        page_map_set_kind(first, unit_count, kind);
        page_map_state.unmapped_chunks -= wanted;
        return first;
    }
    return SIZE_MAX;
}

static void page_map_cut_table(void *table, size_t entry_size, size_t units)
{
    size_t kept = page_map_table_size(units * entry_size);
    size_t size = page_map_table_size(window_tables.unit_limit * entry_size);
    (void)os_release((char *)table + kept, size - kept);
}

/* A limit of addresses that the process has set itself since the start bounds what is left of the
 * window as one from before the start would bound all of it. False: the tables are no longer. The
 * caller holds the lock. */
static bool page_map_shrink(void)
{
    size_t units = page_map_state.committed_units + (page_map_window_size() >> UNIT_SHIFT);
    if (units >= window_tables.unit_limit)
        return false;
    page_map_cut_table(window_class_map, sizeof *window_class_map, units);
    page_map_cut_table(window_spans, sizeof *window_spans, units);
    window_tables.unit_limit = units;
    return true;
}

size_t page_map_grow(size_t unit_count, bool is_dense)
{
    uint8_t kind = is_dense ? CHUNK_DENSE : CHUNK_PLAIN;
    MUST(unit_count % CHUNK_UNITS == 0 || unit_count < CHUNK_UNITS);
    lock_acquire(&page_map_state.lock);
    size_t first = SIZE_MAX;
    if (page_map_state.unmapped_chunks != 0 && unit_count >= CHUNK_UNITS)
        first = page_map_map_again(unit_count, kind);
    if (first == SIZE_MAX)
        first = page_map_map_at_end(unit_count, kind);
    if (first == SIZE_MAX && page_map_shrink())
        first = page_map_map_at_end(unit_count, kind);
    lock_release(&page_map_state.lock);
    return first;
}

bool page_map_could_do_with(size_t unit_count)
{
    lock_acquire(&page_map_state.lock);
    bool could = page_map_state.unmapped_chunks * CHUNK_UNITS >= unit_count ||
                 window_unit_count + unit_count <= page_map_state.committed_units;
    lock_release(&page_map_state.lock);
    return could;
}

bool page_map_unmap(size_t first, size_t unit_count)
{
    MUST(first % CHUNK_UNITS == 0 && unit_count % CHUNK_UNITS == 0);
    lock_acquire(&page_map_state.lock);
    uint8_t kind = window_tables.kinds[first / CHUNK_UNITS];
    /* First: another thread may have a mapping there the moment that ours is gone. */
    page_map_set_kind(first, unit_count, CHUNK_UNMAPPED);
    bool unmapped = os_release(unit_address(first), unit_count << UNIT_SHIFT);
    if (unmapped)
        page_map_state.unmapped_chunks += unit_count / CHUNK_UNITS;
    else
        page_map_set_kind(first, unit_count, kind);
    lock_release(&page_map_state.lock);
    return unmapped;
}

bool page_map_is_refused(void)
{
    lock_acquire(&page_map_state.lock);
    bool is_refused = page_map_state.trial_page != NULL &&
                      !os_map_over(page_map_state.trial_page, os_page_size());
    /* Older kernels may unmap first and refuse then: the place is no longer ours. */
    if (is_refused && !os_is_readable(page_map_state.trial_page))
        page_map_state.trial_page = NULL;
    lock_release(&page_map_state.lock);
    return is_refused;
}

void page_map_set(size_t first, size_t unit_count, struct span *span, unsigned class)
{
    class_offset_t offset = offset_of_class(class);
    for (size_t unit = first; unit < first + unit_count; unit++) {
        window_class_map[unit] = offset;
        window_spans[unit] = span;
    }
}

static size_t page_map_resident_in(const void *start, size_t size)
{
    size_t resident = 0;
    size = align_up(size, os_page_size());
    for (size_t at = 0; at < size; at += OS_RESIDENT_MOST)
        resident +=
            os_resident_size((const char *)start + at, smaller_of(size - at, OS_RESIDENT_MOST));
    return resident;
}

page_map_size_t page_map_size(void)
{
    lock_acquire(&page_map_state.lock);
    size_t unit_count = window_unit_count; /* entries behind these were never touched */
    size_t record_units = window_tables.records != NULL ? page_map_state.committed_units : 0;
    lock_release(&page_map_state.lock);
    layout_t all = page_map_layout_for(page_map_state.reserved_units);
    layout_t cut = page_map_layout_for(window_tables.unit_limit);
    layout_t counted = page_map_layout_for(unit_count);
    size_t resident = page_map_resident_in(window_tables.kinds, all.kinds - os_page_size()) +
                      page_map_resident_in(window_class_map, counted.classes) +
                      page_map_resident_in(window_spans, counted.spans) +
                      page_map_resident_in(window_tables.dirty, counted.dirty);
    if (record_units != 0)
        resident += page_map_resident_in(window_tables.records, unit_count * UNIT_GRANULES);
    all.classes = cut.classes;
    all.spans = cut.spans;
    return (page_map_size_t){.mapped = page_map_layout_size(&all) + record_units * UNIT_GRANULES,
                             .resident = resident};
}

void page_map_at_fork(fork_phase_t phase)
{
    lock_at_fork(&page_map_state.lock, phase);
}
