/* Groups of processors. See processors.h. */
#include "os/processors.h"

#include "base/bits.h"
#include "os/os.h"

uint8_t processor_groups = 1;

/* Written by the first caller of processors_split, before processor_groups is more than 1. */
static struct {
    unsigned width; /* processors with neighbouring numbers that are in one group */
    bool has_begun; /* somebody has called processors_split; atomic */
} processors_state;

#define PROCESSOR_WORDS (PROCESSORS_MOST / 64)

/* A group for each GROUP_CORES numbers; one, where the process may use so few processors. */
static unsigned groups_of_machine(void)
{
    uint64_t processors[PROCESSOR_WORDS];
    unsigned count = 0;
    unsigned end = 0;
    os_processors(processors, PROCESSOR_WORDS);
    for (unsigned word = 0; word < PROCESSOR_WORDS; word++)
        if (processors[word] != 0) {
            count += count_bits(processors[word]);
            end = word * 64 + highest_bit(processors[word]) + 1;
        }
    return count <= GROUP_CORES ? 1 : (end + GROUP_CORES - 1) / GROUP_CORES;
}

void processors_split(unsigned groups)
{
    if (__atomic_exchange_n(&processors_state.has_begun, true, __ATOMIC_RELAXED))
        return;
    processors_state.width = groups == 0 ? GROUP_CORES : 1;
    if (groups == 0)
        groups = groups_of_machine();
    /* release: pairs with the acquire in processor_groups_now */
    __atomic_store_n(&processor_groups, (uint8_t)smaller_of(groups, GROUPS_MOST),
                     __ATOMIC_RELEASE);
}

unsigned processor_group_now(void)
{
    return os_processor() / processors_state.width % processor_groups_now();
}
