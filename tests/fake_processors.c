/* The processors of the fake machine. See fake_os.h. */
#include "fake_os.h"

static unsigned processor_count = 2;
static unsigned current_processor;

void fake_os_set_processors(unsigned count)
{
    processor_count = count;
}

void fake_os_run_on(unsigned processor)
{
    current_processor = processor;
}

void os_processors(uint64_t *bits, size_t word_count)
{
    for (size_t word = 0; word < word_count; word++) bits[word] = 0;
    for (unsigned processor = 0; processor < processor_count; processor++)
        bits[processor / 64] |= (uint64_t)1 << processor % 64;
}

unsigned os_processor(void)
{
    return current_processor;
}
