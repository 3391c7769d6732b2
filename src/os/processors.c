/* Groups of processors. See processors.h. */
#include "os/processors.h"

#include "base/bits.h"
#include "base/format.h"
#include "os/os.h"
#include "options/options.h"

uint8_t processor_groups = 1;

/* Written by the first caller of processors_split, before processor_groups is more than 1. */
static struct {
    uint8_t group_of[PROCESSORS_MOST]; /* by number of the processor */
    bool has_begun;                    /* somebody has called processors_split; atomic */
} processors_state SPARSE;

#define PROCESSOR_WORDS (PROCESSORS_MOST / 64)

/* Processors with one last-level cache. */
typedef struct cache_group {
    unsigned name;  /* number of the first processor, and 1 */
    unsigned cores; /* so far */
    unsigned group; /* of the last one */
} cache_group_t;

typedef struct layout {
    cache_group_t caches[PROCESSORS_MOST / 2];
    unsigned group_count;
} layout_t;

/* The first processor in a list (such as 0-3,8) of those that share something with `processor`;
 * `otherwise`, where there is no such file, or it is not to be opened. */
static unsigned processors_first_of(unsigned processor, const char *list, unsigned otherwise)
{
    char text[32];
    unsigned number = 0;
    line_t path = {.length = 0};
    line_add(&path, "/sys/devices/system/cpu/cpu");
    line_add_number(&path, processor);
    line_add(&path, list);
    path.text[path.length] = '\0';
    if (!options.watch_limits || os_read_file(path.text, text, sizeof text) == 0)
        return otherwise;
    /* A number above all processors is as good as any other such. */
    for (const char *at = text; *at >= '0' && *at <= '9' && number < PROCESSORS_MOST; at++)
        number = number * 10 + (unsigned)(*at - '0');
    return number;
}

static bool processors_have(const uint64_t *bits, unsigned processor)
{
    return bits[processor / 64] >> processor % 64 & 1;
}

/* A process that may use so few has one group, and opens no file. */
static bool processors_are_few(const uint64_t *processors)
{
    unsigned count = 0;
    for (unsigned word = 0; word < PROCESSOR_WORDS; word++)
        count += count_bits(processors[word]);
    return count <= GROUP_CORES;
}

static cache_group_t *cache_named(layout_t *layout, unsigned name)
{
    size_t index = 0;
    while (index + 1 < sizeof layout->caches / sizeof *layout->caches &&
           layout->caches[index].name != 0 && layout->caches[index].name != name + 1)
        index++;
    layout->caches[index].name = name + 1;
    return &layout->caches[index];
}

/* The group of a core that is new. */
static unsigned processors_group_for(layout_t *layout, unsigned processor)
{
    unsigned name = processors_first_of(processor, "/cache/index3/shared_cpu_list", 0);
    cache_group_t *cache = cache_named(layout, name);
    if (cache->cores++ % GROUP_CORES == 0)
        cache->group = layout->group_count++;
    return cache->group % GROUPS_MOST;
}

static void processors_read_machine(layout_t *layout, const uint64_t *processors)
{
    for (unsigned processor = 0; processor < PROCESSORS_MOST; processor++) {
        if (!processors_have(processors, processor))
            continue;
        unsigned first =
            processors_first_of(processor, "/topology/thread_siblings_list", processor);
        bool is_known = first < processor && processors_have(processors, first);
        processors_state.group_of[processor] =
            is_known ? processors_state.group_of[first]
                     : (uint8_t)processors_group_for(layout, processor);
    }
}

static unsigned groups_of_machine(const uint64_t *processors)
{
    static layout_t layout SPARSE; /* there is one call; the stack may be a short one */
    if (processors_are_few(processors))
        return 1;
    processors_read_machine(&layout, processors);
    return (unsigned)larger_of(smaller_of(layout.group_count, GROUPS_MOST), 1);
}

static unsigned groups_in_turn(unsigned count)
{
    for (unsigned processor = 0; processor < PROCESSORS_MOST; processor++)
        processors_state.group_of[processor] = (uint8_t)(processor % count);
    return count;
}

void processors_split(unsigned groups)
{
    uint64_t processors[PROCESSOR_WORDS];
    if (__atomic_exchange_n(&processors_state.has_begun, true, __ATOMIC_RELAXED))
        return;
    os_processors(processors, PROCESSOR_WORDS);
    groups = groups == 0 ? groups_of_machine(processors)
                         : groups_in_turn((unsigned)smaller_of(groups, GROUPS_MOST));
    /* release: pairs with the acquire in processor_groups_now */
    __atomic_store_n(&processor_groups, (uint8_t)groups, __ATOMIC_RELEASE);
}

unsigned processor_group_now(void)
{
    return processors_state.group_of[os_processor() % PROCESSORS_MOST];
}
