/* Long blocks that were freed lately. See huge_history.h. */
#include "large/huge_history.h"

#include "os/threads.h"
#include "options/tuning.h"

static struct {
    uint64_t note_count; /* a counter; the next note goes to this place, modulo HUGE_NOTES */
    struct {
        const void *start;
        size_t size;
    } notes[HUGE_NOTES];
} huge_history_state SPARSE;

void huge_history_note(const void *start, size_t size)
{
    size_t index = counter_read(&huge_history_state.note_count) % HUGE_NOTES;
    counter_add(&huge_history_state.note_count, 1);
    /* relaxed: a note that is read half written names a wrong length at worst */
    __atomic_store_n(&huge_history_state.notes[index].size, size, __ATOMIC_RELAXED);
    __atomic_store_n(&huge_history_state.notes[index].start, start, __ATOMIC_RELAXED);
}

bool huge_history_find(const void *ptr, size_t *size)
{
    for (unsigned index = 0; ptr != NULL && index < HUGE_NOTES; index++)
        if (__atomic_load_n(&huge_history_state.notes[index].start, __ATOMIC_RELAXED) == ptr) {
            *size = __atomic_load_n(&huge_history_state.notes[index].size, __ATOMIC_RELAXED);
            return true;
        }
    return false;
}
