/* Pressure. See pressure.h. */
#include "keep/pressure.h"

#include "keep/control_group.h"
#include "os/background.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"

size_t pressure_kept_units = SIZE_MAX >> UNIT_SHIFT;
uint64_t pressure_look_at = LIMITS_LEAST_MAPPED >> UNIT_SHIFT;
uint64_t pressure_fresh_units;

static pressure_t pressure; /* written here, read by any */
static size_t missing_addresses;

static headroom_t by_files = {PRESSURE_NONE, LIMIT_NONE, LIMIT_NONE};
static size_t address_limit = SIZE_MAX;
static bool counts_addresses; /* there is one of these limits; read without the lock of upkeep */
static size_t data_limit = SIZE_MAX;
static unsigned stall;
static uint64_t scan_ms; /* when each is due; 0: at once */
static uint64_t use_ms;
static uint64_t stall_ms;
static uint64_t fresh_seen;   /* units, by the last look */
static uint64_t files_due_at; /* of fresh units: then files are read, whatever the time */

static pressure_t level(void)
{
    return __atomic_load_n(&pressure, __ATOMIC_RELAXED);
}

uint64_t pressure_wait_ms(uint64_t delay_ms)
{
    return pressure_delay_ms(level(), delay_ms);
}

bool pressure_is_near(void)
{
    return level() != PRESSURE_NONE;
}

bool pressure_is_full(void)
{
    return level() == PRESSURE_FULL;
}

bool pressure_counts_addresses(void)
{
    return __atomic_load_n(&counts_addresses, __ATOMIC_RELAXED);
}

size_t pressure_missing_addresses(void)
{
    return missing_addresses;
}

/* ---- what the kernel says ---- */

static void scan(void)
{
    control_group_scan();
    address_limit = os_address_space_limit();
    data_limit = os_data_limit();
    __atomic_store_n(&counts_addresses, address_limit != SIZE_MAX || data_limit != SIZE_MAX,
                     __ATOMIC_RELAXED); /* nothing else is read by it */
}

static uint64_t as_limit(size_t size)
{
    return size == SIZE_MAX ? LIMIT_NONE : size;
}

/* Memory that goes back keeps its addresses, so such a limit is no reason for it to go earlier. */
static void look_at_addresses(void)
{
    char text[128];
    uint64_t total;
    uint64_t data;
    if ((address_limit == SIZE_MAX && data_limit == SIZE_MAX) ||
        os_read_file("/proc/self/statm", text, sizeof text) == 0 ||
        !limits_parse_statm(text, &total, &data))
        return;
    headroom_t headroom = headroom_unlimited();
    headroom_add(&headroom, as_limit(address_limit), total * os_page_size());
    headroom_add(&headroom, as_limit(data_limit), data * os_page_size());
    missing_addresses = headroom_missing(&headroom);
    headroom.pressure = PRESSURE_NONE;
    headroom_join(&by_files, &headroom);
}

/* The fresh units at which a look is due, if so many have been handed out by now: when half of what
 * is left has gone. */
static uint64_t due_at(const headroom_t *headroom, uint64_t fresh)
{
    if (headroom->limit == LIMIT_NONE)
        return UINT64_MAX;
    return fresh + (larger_of(headroom->room / 2, LIMITS_LEAST_GROWTH) >> UNIT_SHIFT);
}

/* `promised`: bytes handed out since the last look. They may have been touched already, and count
 * twice then: too much goes back rather than too little. */
static void read_use(uint64_t fresh, uint64_t promised)
{
    by_files = control_group_headroom(promised);
    look_at_addresses();
    headroom_add_stall(&by_files, stall);
    files_due_at = due_at(&by_files, fresh);
}

static void look_at_files(uint64_t now_ms, uint64_t fresh)
{
    if (now_ms >= scan_ms) {
        scan();
        scan_ms = now_ms + SELDOM_PERIOD_MS;
        use_ms = now_ms;
    }
    if (now_ms >= stall_ms) {
        stall = control_group_stall();
        stall_ms = now_ms + LIMITS_STALL_PERIOD_MS;
    }
    if (now_ms >= use_ms || fresh >= files_due_at || by_files.pressure != PRESSURE_NONE) {
        read_use(fresh, (fresh - fresh_seen) << UNIT_SHIFT);
        use_ms = now_ms + LIMITS_USE_PERIOD_MS;
    }
}

void pressure_look(size_t mapped_bytes, size_t held_bytes, uint64_t now_ms)
{
    uint64_t fresh = counter_read(&pressure_fresh_units);
    uint64_t look_at = UINT64_MAX;
    /* What was read last counts until it is read again, but for addresses: what is unmapped may not
     * be had again. */
    missing_addresses = 0;
    if (options.watch_limits && mapped_bytes < LIMITS_LEAST_MAPPED) {
        by_files = headroom_unlimited();
        size_t missing = larger_of(LIMITS_LEAST_MAPPED - mapped_bytes, LIMITS_LEAST_GROWTH);
        look_at = fresh + (missing >> UNIT_SHIFT);
    } else if (options.watch_limits) {
        if (!os_is_background())
            look_at_files(now_ms, fresh);
        look_at = files_due_at;
    }
    headroom_t headroom = by_files;
    if (options.limit_mb != 0) {
        headroom_t soft = headroom_unlimited();
        headroom_add(&soft, (uint64_t)options.limit_mb * MIB, held_bytes);
        headroom_join(&headroom, &soft);
        look_at = smaller_of(look_at, due_at(&soft, fresh));
    }
    fresh_seen = fresh;
    /* relaxed: guesses, of which each is good alone */
    __atomic_store_n(&pressure, headroom.pressure, __ATOMIC_RELAXED);
    __atomic_store_n(&pressure_kept_units, headroom_kept_bytes(&headroom) >> UNIT_SHIFT,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&pressure_look_at, look_at, __ATOMIC_RELAXED);
}
