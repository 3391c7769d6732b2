/* Groups of processors. See processors.h. */
#include "os/processors.h"

#include "base/bits.h"
#include "base/format.h"
#include "os/os.h"
#include "policy/options.h"

uint8_t processor_groups = 1;
static uint8_t group_of[PROCESSORS_MOST];
static uint8_t node_of[PROCESSORS_MOST];

#define PROCESSOR_WORDS (PROCESSORS_MOST / 64)

/* Bytes of the longest list of processors that is read: 256 numbers, if no two follow each other.
 */
#define LIST_TEXT 1024

/* Processors with one last-level cache, in one node: some processors show one cache for two. */
typedef struct cache_group {
    uint64_t name;  /* number of the first processor, and 1; above it the node */
    unsigned cores; /* so far */
    unsigned group; /* of the last one */
} cache_group_t;

typedef struct layout {
    cache_group_t caches[PROCESSORS_MOST / 2];
    unsigned group_count;
} layout_t;

/* ---- lists as the kernel writes them: 0-3,8,10-11 ---- */

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

/* Numbers above MAX_NUMBER are as good as that. */
#define MAX_NUMBER 1000000

static unsigned number_at(const char **at)
{
    unsigned number = 0;
    for (; is_digit(**at); ++*at)
        number = number > MAX_NUMBER ? number : number * 10 + (unsigned)(**at - '0');
    return number;
}

/* Reads a number or a range, and the comma behind it. False: there is none. */
static bool next_range(const char **at, unsigned *first, unsigned *last)
{
    if (!is_digit(**at))
        return false;
    *first = *last = number_at(at);
    if (**at == '-') {
        ++*at;
        *last = number_at(at);
    }
    if (**at == ',')
        ++*at;
    return true;
}

/* Reads the file of which the path is `folder`, `number` and `name` together. False: there is none,
 * or it is not to be opened. */
static bool read_list(const char *folder, unsigned number, const char *name, char *text,
                      size_t room)
{
    line_t path = {.length = 0};
    if (!options.watch_limits)
        return false;
    line_add(&path, folder);
    line_add_number(&path, number);
    line_add(&path, name);
    path.text[path.length] = '\0';
    return os_read_file(path.text, text, room) != 0;
}

/* The first processor in a list of those that share something with `processor`; `otherwise`, where
 * nobody says so. */
static unsigned first_of(unsigned processor, const char *list, unsigned otherwise)
{
    char text[32];
    const char *at = text;
    if (!read_list("/sys/devices/system/cpu/cpu", processor, list, text, sizeof text))
        return otherwise;
    return number_at(&at);
}

static bool is_one_of(const uint64_t *bits, unsigned processor)
{
    return bits[processor / 64] >> processor % 64 & 1;
}

/* A process that may use so few has one group, on one node, and opens no file. */
static bool are_few(const uint64_t *processors)
{
    unsigned count = 0;
    for (unsigned word = 0; word < PROCESSOR_WORDS; word++)
        count += count_bits(processors[word]);
    return count <= GROUP_CORES;
}

/* ---- nodes ---- */

/* The processors in the list are in the node that is `number` here. Is one of them ours? */
static bool note_processors(const char *list, unsigned number, const uint64_t *processors)
{
    bool is_ours = false;
    unsigned first;
    unsigned last;
    while (next_range(&list, &first, &last))
        for (; first <= last && first < PROCESSORS_MOST; first++) {
            node_of[first] = (uint8_t)number;
            is_ours |= is_one_of(processors, first);
        }
    return is_ours;
}

/* Nodes without a processor of ours are left out. */
static unsigned nodes_of_machine(const uint64_t *processors)
{
    char nodes[64];
    char text[LIST_TEXT];
    const char *at = nodes;
    unsigned count = 0;
    unsigned first;
    unsigned last;
    if (!options.watch_limits || are_few(processors) ||
        os_read_file("/sys/devices/system/node/has_cpu", nodes, sizeof nodes) == 0)
        return 1;
    while (next_range(&at, &first, &last))
        for (; first <= last && first < PROCESSORS_MOST; first++)
            if (read_list("/sys/devices/system/node/node", first, "/cpulist", text, sizeof text) &&
                note_processors(text, count % NODES_MOST, processors))
                count++;
    return (unsigned)smaller_of(larger_of(count, 1), NODES_MOST);
}

static unsigned nodes_in_turn(unsigned count)
{
    for (unsigned processor = 0; processor < PROCESSORS_MOST; processor++)
        node_of[processor] = (uint8_t)(processor % count);
    return count;
}

/* The node of the calling thread becomes number 0. */
static void begin_with_own(unsigned count)
{
    unsigned own = node_of[os_processor() % PROCESSORS_MOST];
    for (unsigned processor = 0; processor < PROCESSORS_MOST; processor++)
        node_of[processor] = (uint8_t)((node_of[processor] + count - own) % count);
}

static unsigned make_nodes(unsigned wanted, const uint64_t *processors)
{
    unsigned count = wanted == 0 ? nodes_of_machine(processors)
                                 : nodes_in_turn((unsigned)smaller_of(wanted, NODES_MOST));
    begin_with_own(count);
    return count;
}

/* ---- groups ---- */

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
    name |= (uint64_t)node_of[processor] << 32;
    cache_group_t *cache = cache_named(layout, name);
    if (cache->cores++ % GROUP_CORES == 0)
        cache->group = layout->group_count++;
    return cache->group % GROUPS_MOST;
}

static void look_at_machine(layout_t *layout, const uint64_t *processors)
{
    for (unsigned processor = 0; processor < PROCESSORS_MOST; processor++) {
        if (!is_one_of(processors, processor))
            continue;
        unsigned first = first_of(processor, "/topology/thread_siblings_list", processor);
        bool is_known = first < processor && is_one_of(processors, first);
        group_of[processor] =
            is_known ? group_of[first] : (uint8_t)group_for(layout, processor);
    }
}

static unsigned groups_of_machine(const uint64_t *processors, unsigned nodes)
{
    layout_t layout = {.group_count = 0};
    if (are_few(processors) && nodes == 1)
        return 1;
    look_at_machine(&layout, processors);
    return (unsigned)larger_of(smaller_of(layout.group_count, GROUPS_MOST), 1);
}

static unsigned groups_in_turn(unsigned count)
{
    for (unsigned processor = 0; processor < PROCESSORS_MOST; processor++)
        group_of[processor] = (uint8_t)(processor % count);
    return count;
}

unsigned processors_split(unsigned groups, unsigned nodes)
{
    static bool has_begun;
    uint64_t processors[PROCESSOR_WORDS];
    if (__atomic_exchange_n(&has_begun, true, __ATOMIC_RELAXED))
        return 0;
    os_processors(processors, PROCESSOR_WORDS);
    nodes = make_nodes(nodes, processors);
    groups = groups == 0 ? groups_of_machine(processors, nodes)
                         : groups_in_turn((unsigned)smaller_of(groups, GROUPS_MOST));
    /* release: pairs with the acquire in processor_groups_now */
    __atomic_store_n(&processor_groups, (uint8_t)groups, __ATOMIC_RELEASE);
    return nodes;
}

unsigned processor_group_now(void)
{
    return group_of[os_processor() % PROCESSORS_MOST];
}

unsigned processor_node_now(void)
{
    return node_of[os_processor() % PROCESSORS_MOST];
}
