/* Pressure. See pressure.h. */
#include "keep/pressure.h"

#include "keep/control_group.h"
#include "os/background.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"

pressure_figures_t pressure_figures = {.kept_units = SIZE_MAX >> UNIT_SHIFT,
                                       .look_at = LIMITS_LEAST_MAPPED >> UNIT_SHIFT};

/* Written by pressure_look, whose callers come one at a time. */
static struct {
    pressure_t pressure;      /* read by any thread */
    bool counts_addresses;    /* address_limit or data_limit is one; read by any thread */
    size_t missing_addresses; /* bytes to be unmapped, by the last look */
    headroom_t by_files;      /* what the files said when they were read last */
    size_t address_limit;     /* bytes; SIZE_MAX: none */
    size_t data_limit;        /* likewise */
    unsigned stall;           /* hundredths of a percent, as control_group_stall */
    uint64_t scan_ms;         /* when the next search for limits is due; 0: at once */
    uint64_t use_ms;          /* when the next reading of what is in use is due, likewise */
    uint64_t stall_ms;        /* when the next reading of `stall` is due, likewise */
    uint64_t fresh_seen;      /* fresh units, by the last look */
    uint64_t files_due_at;    /* fresh units from which on files are read, whatever the time */
} pressure_state = {.by_files = {PRESSURE_NONE, LIMIT_NONE, LIMIT_NONE},
                    .address_limit = SIZE_MAX,
                    .data_limit = SIZE_MAX};

static pressure_t pressure_level(void)
{
    return __atomic_load_n(&pressure_state.pressure, __ATOMIC_RELAXED);
}

uint64_t pressure_wait_ms(uint64_t delay_ms)
{
    return pressure_delay_ms(pressure_level(), delay_ms);
}

bool pressure_is_near(void)
{
    return pressure_level() != PRESSURE_NONE;
}

bool pressure_is_full(void)
{
    return pressure_level() == PRESSURE_FULL;
}

bool pressure_counts_addresses(void)
{
    return __atomic_load_n(&pressure_state.counts_addresses, __ATOMIC_RELAXED);
}

size_t pressure_missing_addresses(void)
{
    return pressure_state.missing_addresses;
}

/* ---- what the kernel says ---- */

static void pressure_scan(void)
{
    control_group_scan();
    pressure_state.address_limit = os_address_space_limit();
    pressure_state.data_limit = os_data_limit();
    __atomic_store_n(&pressure_state.counts_addresses,
                     pressure_state.address_limit != SIZE_MAX ||
                         pressure_state.data_limit != SIZE_MAX,
                     __ATOMIC_RELAXED); /* nothing else is read by it */
}

static uint64_t as_limit(size_t size)
{
    return size == SIZE_MAX ? LIMIT_NONE : size;
}

/* Takes in the limits of addresses. Memory that goes back keeps its addresses, so that such a limit
 * is no reason to give memory back earlier. */
static void pressure_read_addresses(void)
{
    char text[128];
    uint64_t total;
    uint64_t data;
    if ((pressure_state.address_limit == SIZE_MAX && pressure_state.data_limit == SIZE_MAX) ||
        os_read_file("/proc/self/statm", text, sizeof text) == 0 ||
        !limits_parse_statm(text, &total, &data))
        return;
    headroom_t headroom = headroom_unlimited();
    headroom_add(&headroom, as_limit(pressure_state.address_limit), total * os_page_size());
    headroom_add(&headroom, as_limit(pressure_state.data_limit), data * os_page_size());
    pressure_state.missing_addresses = headroom_missing(&headroom);
    headroom.pressure = PRESSURE_NONE;
    headroom_join(&pressure_state.by_files, &headroom);
}

/* The count of fresh units at which the next look is due, where `fresh` is the count now: half of
 * the room left may be handed out before. */
static uint64_t pressure_due_at(const headroom_t *headroom, uint64_t fresh)
{
    if (headroom->limit == LIMIT_NONE)
        return UINT64_MAX;
    return fresh + (larger_of(headroom->room / 2, LIMITS_LEAST_GROWTH) >> UNIT_SHIFT);
}

/* `promised`: bytes handed out since the last look. Bytes that have been touched already count
 * twice: too much goes back rather than too little. */
static void pressure_read_use(uint64_t fresh, uint64_t promised)
{
    pressure_state.by_files = control_group_headroom(promised);
    pressure_read_addresses();
    headroom_add_stall(&pressure_state.by_files, pressure_state.stall);
    pressure_state.files_due_at = pressure_due_at(&pressure_state.by_files, fresh);
}

static void pressure_read_files(uint64_t now_ms, uint64_t fresh)
{
    if (now_ms >= pressure_state.scan_ms) {
        pressure_scan();
        pressure_state.scan_ms = now_ms + SELDOM_PERIOD_MS;
        pressure_state.use_ms = now_ms;
    }
    if (now_ms >= pressure_state.stall_ms) {
        pressure_state.stall = control_group_stall();
        pressure_state.stall_ms = now_ms + LIMITS_PERIOD_MS;
    }
    if (now_ms >= pressure_state.use_ms || fresh >= pressure_state.files_due_at ||
        pressure_state.by_files.pressure != PRESSURE_NONE) {
        pressure_read_use(fresh, (fresh - pressure_state.fresh_seen) << UNIT_SHIFT);
        pressure_state.use_ms = now_ms + LIMITS_PERIOD_MS;
    }
}

void pressure_look(size_t mapped_bytes, size_t held_bytes, uint64_t now_ms)
{
    uint64_t fresh = counter_read(&pressure_figures.fresh_units);
    uint64_t look_at = UINT64_MAX;
    /* Files that were read last count until they are read again. Missing addresses do not: memory
     * that was unmapped for an old reading would be lost without need. */
    pressure_state.missing_addresses = 0;
    if (options.watch_limits && mapped_bytes < LIMITS_LEAST_MAPPED) {
        pressure_state.by_files = headroom_unlimited();
        size_t missing = larger_of(LIMITS_LEAST_MAPPED - mapped_bytes, LIMITS_LEAST_GROWTH);
        look_at = fresh + (missing >> UNIT_SHIFT);
    } else if (options.watch_limits) {
        if (!os_is_background())
            pressure_read_files(now_ms, fresh);
        look_at = pressure_state.files_due_at;
    }
    headroom_t headroom = pressure_state.by_files;
    if (options.limit_mb != 0) {
        headroom_t soft = headroom_unlimited();
        headroom_add(&soft, (uint64_t)options.limit_mb * MIB, held_bytes);
        headroom_join(&headroom, &soft);
        look_at = smaller_of(look_at, pressure_due_at(&soft, fresh));
    }
    pressure_state.fresh_seen = fresh;
    /* relaxed: guesses, of which each is good alone */
    __atomic_store_n(&pressure_state.pressure, headroom.pressure, __ATOMIC_RELAXED);
    __atomic_store_n(&pressure_figures.kept_units, headroom_kept_bytes(&headroom) >> UNIT_SHIFT,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&pressure_figures.look_at, look_at, __ATOMIC_RELAXED);
}
