/* The page map: from an address to what lies there, out of line.
 *
 * All memory that is cut into blocks comes from one window of addresses, counted in units of
 * 8 KiB. For each unit the map holds the size class of its slab, or 0 where there is
 * none; and the span it belongs to. The window is only a plan: nothing is reserved, the heap maps
 * it piece by piece from its start, and `unit_count` says how far it has come.
 *
 *   window_base                                            base + unit_count * UNIT_SIZE
 *      |  unit 0  |  unit 1  |  unit 2  |  unit 3  | ...      |        (not mapped yet) ...
 *   class   7          7          7          0                      0
 *   span   [---------- slab ----------] [ large ]
 *
 * Only spans in use have an entry in every unit; free ones have it in their first and last unit.
 *
 * Lookups lock nothing. A unit's entries are written before its first block is handed out and
 * change only when none of its blocks is in use. */
#ifndef HAKMEM_HEAP_PAGE_MAP_H
#define HAKMEM_HEAP_PAGE_MAP_H

#include "base/types.h"
#include "os/lock.h"
#include "options/tuning.h"

/* The window grows by whole huge pages, but for a last part near a limit. */
#define CHUNK_UNITS (2 * MIB >> UNIT_SHIFT)

/* Blocks begin at multiples of 16 bytes: a granule. */
#define GRANULE_SHIFT 4
#define UNIT_GRANULES (UNIT_SIZE >> GRANULE_SHIFT)
_Static_assert(BLOCK_ALIGNMENT == (size_t)1 << GRANULE_SHIFT, "a block begins on a granule");

/* Kinds of chunks, a byte each. From CHUNK_SKIPPED on the page heap has no memory there. */
#define CHUNK_PLAIN 0
#define CHUNK_DENSE 1    /* for blocks that fill memory */
#define CHUNK_SKIPPED 2  /* somebody else's mapping was in the way */
#define CHUNK_UNMAPPED 3 /* it was given back and may be mapped again */

struct span;

/* A size class as the hit path wants it: the distance of its bin among the data of a thread
 * (base/arch/thread_space.h), 8 bytes to each class. The hit path has it in a register of its own:
 * with base and index the processors we measured do not forward the last store to the next load. 0
 * is class 0, as in pages of the map that nobody has touched. */
typedef int32_t class_offset_t;
#define CLASS_OFFSET_SHIFT 3

/* What the offset of class n is counted from, n bins further back. Set once, at initialisation. */
extern HIDDEN class_offset_t class_offset_origin;

static inline class_offset_t offset_of_class(unsigned class)
{
    return class == 0 ? 0 : class_offset_origin + (class_offset_t)(class << CLASS_OFFSET_SHIFT);
}

static inline unsigned class_of_offset(class_offset_t offset)
{
    return offset == 0 ? 0 : (unsigned)(offset - class_offset_origin) >> CLASS_OFFSET_SHIFT;
}

/* Separate variables and not a structure: the hit path then addresses each of them directly. */
extern HIDDEN uintptr_t window_base; /* WINDOW_NOWHERE until the first growth */
extern HIDDEN size_t
    window_unit_count; /* units mapped so far: the only ones that may be looked up */
extern HIDDEN class_offset_t *window_class_map; /* one entry per unit */
extern HIDDEN struct span **window_spans;       /* one pointer per unit */

/* What the hit path does not need. Set at the first growth. */
typedef struct window_tables {
    size_t unit_limit; /* units that the tables have room for */
    uint64_t *dirty;   /* one bit per unit: may hold something other than zeroes */
    uint8_t *kinds;    /* one byte per chunk */
    uint8_t *sparse;   /* one byte per chunk: see sparse_chunks.c */
    uint8_t *records;  /* where frees are checked: one byte per granule (slab/block_record.h) */
} window_tables_t;

extern HIDDEN window_tables_t window_tables;

/* From here every address of a program is more units away than there can be. Zero would be the
 * place of NULL: a thread that reads the base before the first growth and the count after it would
 * find a slab there. */
#define WINDOW_NOWHERE ((uintptr_t)1 << 63)

/* Granules that the hit path of free may look up: those of all units mapped so far, or none at all
 * where every free is checked (check_frees) or watched (page_map_watch), so that each takes the
 * slow path at its first test. */
extern HIDDEN size_t window_open_granules;

/* The same for the forms of operator delete that derive from others; none where operators are
 * replaced. */
extern HIDDEN size_t window_derived_granules;

/* The granules that free_slow may look up while the hit path of free is closed, so that upkeep sees
 * calls that would hit; otherwise 0. */
extern HIDDEN size_t window_watched_granules;

/* Somebody else's base form of operator new or delete is bound (entry/operators.h). Set once,
 * before the tables are made. */
extern HIDDEN bool operators_are_replaced;

/* Number of the unit that holds the address; at least window_unit_count when it is not ours. */
static inline size_t unit_of(const void *ptr)
{
    return ((uintptr_t)ptr - window_base) >> UNIT_SHIFT;
}

/* Number of the granule that begins at the address. The rotation brings the low bits to the top: a
 * misaligned address gets a number that no granule has, like one outside the window. */
static inline size_t granule_at(const void *ptr)
{
    uintptr_t offset = (uintptr_t)ptr - window_base;
    return offset >> GRANULE_SHIFT | offset << (64 - GRANULE_SHIFT);
}

static inline void *unit_address(size_t unit)
{
    return (void *)(window_base + (unit << UNIT_SHIFT));
}

/* Class of the slab that the unit belongs to; 0: none. */
static inline unsigned class_of_unit(size_t unit)
{
    return class_of_offset(window_class_map[unit]);
}

/* The kind of the chunk that a counted unit lies in. Relaxed: the kind stays as it is for who has a
 * block in the chunk, or holds the lock of the page heap. For others it is only a look. */
static inline uint8_t kind_of_unit(size_t unit)
{
    return __atomic_load_n(&window_tables.kinds[unit / CHUNK_UNITS], __ATOMIC_RELAXED);
}

/* Was it mapped for blocks that fill memory? */
static inline bool unit_is_dense(size_t unit)
{
    return kind_of_unit(unit) == CHUNK_DENSE;
}

/* Does the page heap have the chunk that `ptr` lies in? For any value whatever. The hit paths only
 * compare with the count: units of other chunks have class 0 there, and no span. */
static inline bool window_has(const void *ptr)
{
    size_t unit = unit_of(ptr);
    /* acquire: pairs with the release in page_map_grow; the kind of a counted chunk is known */
    if (UNLIKELY(unit >= __atomic_load_n(&window_unit_count, __ATOMIC_ACQUIRE)))
        return false;
    return kind_of_unit(unit) < CHUNK_SKIPPED;
}

/* Chooses where the window lies and how large it may become. Called once. False: no memory. */
bool page_map_create(void);

/* Maps `unit_count` more units, whole chunks or the first of one, at the end of the window. Skips
 * addresses that are taken. `is_dense`: the chunks are for blocks that fill memory. Returns the
 * number of the first unit, or SIZE_MAX. Any thread. */
size_t page_map_grow(size_t unit_count, bool is_dense);

/* page_map_grow has just failed: is a call for so few units worth a try? Yes, where the tables hold
 * them already. No, where the kernel may have refused memory for the tables: few units need it as
 * well as many. Any thread. */
bool page_map_could_do_with(size_t unit_count);

/* Closes the hit path of free, or opens it again: closed, each free is a call of free_slow. Other
 * threads see it soon. Any thread. */
void page_map_watch(bool is_watched);

/* Gives the mapping of whole chunks back; page_map_grow uses them again. The caller owns them, has
 * taken them out of the map, and has purged what blocks lay in (os_purge announces that to the
 * program's hooks; what is done here they do not see). False: the kernel refused, nothing has
 * changed. */
bool page_map_unmap(size_t first, size_t unit_count);

/* Does the kernel refuse any mapping now, whatever its length and whatever is given back first? */
bool page_map_is_refused(void);

/* Says what lies in the units from `first` on; SPAN may be NULL. The caller owns the units. */
void page_map_set(size_t first, size_t unit_count, struct span *span, unsigned class);

/* What the tables and records take, in bytes; the kernel is asked for the second. */
typedef struct page_map_size {
    size_t mapped;   /* address space, most of it only reserved */
    size_t resident; /* memory */
} page_map_size_t;

page_map_size_t page_map_size(void);

void page_map_at_fork(fork_phase_t phase);

#endif
