/* Groups of processors. See processors.h. */
#include "os/processors.h"

#include "base/bits.h"
#include "base/format.h"
#include "os/os.h"
#include "policy/options.h"

uint8_t processor_groups = 1;
static uint8_t group_of[PROCESSORS_MOST];

/* Processors with one last-level cache. */
typedef struct cache_group {
    uint64_t name;  /* number of the first processor, and 1 */
    unsigned cores; /* so far */
    unsigned group; /* of the last one */
} cache_group_t;

typedef struct layout {
    cache_group_t caches[PROCESSORS_MOST / 2];
    unsigned group_count;
} layout_t;

/* The first processor in a list of those that share something with `processor`; `otherwise`, where
 * nobody says so. */
static uint64_t first_of(unsigned processor, const char *list, uint64_t otherwise)
{
    char text[32];
    uint64_t first = 0;
    line_t path = {.length = 0};
    if (!options.watch_limits)
        return otherwise;
    line_add(&path, "/sys/devices/system/cpu/cpu");
    line_add_number(&path, processor);
    line_add(&path, list);
    path.text[path.length] = '\0';
    if (os_read_file(path.text, text, sizeof text) == 0)
        return otherwise;
    for (const char *at = text; *at >= '0' && *at <= '9'; at++)
        first = first * 10 + (uint64_t)(*at - '0');
    return first;
}

static cache_group_t *cache_named(layout_t *layout, uint64_t name)
{
    size_t index = 0;
    while (index + 1 < sizeof layout->caches / sizeof *layout->caches &&
           layout->caches[index].name != 0 && layout->caches[index].name != name + 1)
        index++;
    layout->caches[index].name = name + 1;
    return &layout->caches[index];
}

/* The group of a core that is new. */
static unsigned group_for(layout_t *layout, unsigned processor)
{
    uint64_t name = first_of(processor, "/cache/index3/shared_cpu_list", 0);
    cache_group_t *cache = cache_named(layout, name);
    if (cache->cores++ % GROUP_CORES == 0)
        cache->group = layout->group_count++;
    return cache->group % GROUPS_MOST;
}

static bool is_one_of(const uint64_t *bits, uint64_t processor)
{
    return bits[processor / 64] >> processor % 64 & 1;
}

static void look_at_machine(layout_t *layout, const uint64_t *processors)
{
    for (unsigned processor = 0; processor < PROCESSORS_MOST; processor++) {
        if (!is_one_of(processors, processor))
            continue;
        uint64_t first = first_of(processor, "/topology/thread_siblings_list", processor);
        bool is_known = first < processor && is_one_of(processors, first);
        group_of[processor] =
            is_known ? group_of[first] : (uint8_t)group_for(layout, processor);
    }
}

static unsigned groups_of_machine(void)
{
    uint64_t processors[PROCESSORS_MOST / 64];
    layout_t layout = {.group_count = 0};
    unsigned count = 0;
    os_processors(processors, PROCESSORS_MOST / 64);
    for (unsigned word = 0; word < PROCESSORS_MOST / 64; word++)
        count += count_bits(processors[word]);
    if (count <= GROUP_CORES)
        return 1;
    look_at_machine(&layout, processors);
    return (unsigned)smaller_of(layout.group_count, GROUPS_MOST);
}

static unsigned groups_in_turn(unsigned count)
{
    for (unsigned processor = 0; processor < PROCESSORS_MOST; processor++)
        group_of[processor] = (uint8_t)(processor % count);
    return count;
}

void processors_split(unsigned wanted)
{
    static bool has_begun;
    if (__atomic_exchange_n(&has_begun, true, __ATOMIC_RELAXED))
        return;
    unsigned groups = wanted == 0 ? groups_of_machine()
                                  : groups_in_turn((unsigned)smaller_of(wanted, GROUPS_MOST));
    /* release: pairs with the acquire in processor_groups_now */
    __atomic_store_n(&processor_groups, (uint8_t)groups, __ATOMIC_RELEASE);
}

unsigned processor_group_now(void)
{
    return group_of[os_processor() % PROCESSORS_MOST];
}
