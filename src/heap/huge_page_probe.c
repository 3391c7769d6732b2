/* The record of what first touches cost. See huge_page_probe.h. */
#include "heap/huge_page_probe.h"

#include "base/bits.h"
#include "os/os.h"
#include "options/options.h"
#include "heap/huge_page_cost.h"
#include "heap/page_map.h"

static struct {
    lock_t lock;
    huge_page_cost_t cost;
    bool has_asked; /* the kernel, whether there is reason to doubt */
    bool is_dear;   /* what the record says; read without the lock */
} huge_page_probe_state = {.lock = LOCK_INITIAL(LOCK_TOUCH)};

static bool huge_page_trial_settle(void)
{
    bool pays = huge_pages_pay(&huge_page_probe_state.cost);
    /* relaxed: nothing else is read by it */
    __atomic_store_n(&huge_page_probe_state.is_dear, !pays, __ATOMIC_RELAXED);
    return pays;
}

/* The caller holds the lock. */
static void huge_page_trial_ask_host(void)
{
    if (huge_page_probe_state.has_asked)
        return;
    if (options.watch_limits && os_host_takes_free_memory())
        huge_page_cost_doubt(&huge_page_probe_state.cost);
    (void)huge_page_trial_settle();
    /* release: pairs with the acquire in huge_page_trial_pays */
    __atomic_store_n(&huge_page_probe_state.has_asked, true, __ATOMIC_RELEASE);
}

bool huge_page_trial_pays(void)
{
    if (!options.thp_adaptive)
        return true;
    /* acquire: pairs with the release in huge_page_trial_ask_host */
    if (UNLIKELY(!__atomic_load_n(&huge_page_probe_state.has_asked, __ATOMIC_ACQUIRE))) {
        lock_acquire(&huge_page_probe_state.lock);
        huge_page_trial_ask_host();
        lock_release(&huge_page_probe_state.lock);
    }
    return !__atomic_load_n(&huge_page_probe_state.is_dear, __ATOMIC_RELAXED);
}

size_t huge_page_trial_chunks(size_t chunk_count)
{
    if (!options.thp_adaptive)
        return chunk_count;
    lock_acquire(&huge_page_probe_state.lock);
    huge_page_trial_ask_host();
    size_t chunks = huge_page_cost_chunks(&huge_page_probe_state.cost, chunk_count);
    lock_release(&huge_page_probe_state.lock);
    return chunks;
}

/* Processor time of the touch; of small pages, of as many as a huge one holds. */
static uint64_t first_touch_time(first_touch_t touch)
{
    size_t page = os_page_size();
    size_t count = touch.is_huge ? 1 : larger_of(UNIT_SIZE / page, 1);
    uint64_t before = os_processor_ns();
    for (size_t index = 0; index < count; index++)
        ((volatile char *)touch.start)[index * page] = 0;
    uint64_t spent = os_processor_ns() - before;
    return touch.is_huge ? spent : spent / count * (CHUNK_UNITS * UNIT_SIZE / page);
}

bool huge_page_trial_touch(first_touch_t touch)
{
    uint64_t ns = first_touch_time(touch);
    lock_acquire(&huge_page_probe_state.lock);
    if (touch.is_huge)
        huge_page_cost_note_huge(&huge_page_probe_state.cost, ns);
    else
        huge_page_cost_note_small(&huge_page_probe_state.cost, ns);
    bool pays = huge_page_trial_settle();
    lock_release(&huge_page_probe_state.lock);
    return pays;
}

first_touch_t huge_page_trial_grown(char *start, size_t old_size, size_t size)
{
    const size_t chunk = CHUNK_UNITS * UNIT_SIZE;
    first_touch_t touch = {.start = NULL};
    if (size < old_size || size < (size_t)options.thp_min_heap_mb * MIB)
        return touch;
    size_t grown = align_up((uintptr_t)start + old_size, chunk) - (uintptr_t)start;
    size_t chunk_count = grown < size ? (size - grown) / chunk : 0;
    touch.is_huge = huge_page_trial_chunks(chunk_count) != 0 || huge_page_trial_pays();
    if (chunk_count != 0 && options.thp_adaptive)
        touch.start = start + grown;
    return touch;
}

void huge_page_trial_at_fork(fork_phase_t phase)
{
    lock_at_fork(&huge_page_probe_state.lock, phase);
}
