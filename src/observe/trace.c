/* The allocation trace. See trace.h. */
#include "observe/trace.h"

#include "base/bits.h"
#include "os/os.h"
#include "options/tuning.h"

/* A record with the two that may stand in front of it is no longer. */
#define RECORD_MOST 80

bool trace_is_on;

/* Of the calling thread. */
typedef struct tracer {
    uint64_t number; /* from 1 on; 0: it has none yet */
    bool is_resizing;
} tracer_t;

static _Thread_local tracer_t trace_own;

/* The lock protects all of it. */
static struct {
    lock_t lock;
    trace_sink_t sink;
    unsigned char *buffer; /* of TRACE_BUFFER bytes */
    size_t length;         /* bytes in the buffer */
    uint64_t thread_count; /* threads that have a number */
    uint64_t thread;       /* of the last record */
    uint64_t ms;           /* of the last record */
    uintptr_t granule;     /* of the last block */
} trace_state = {.lock = LOCK_INITIAL(LOCK_TRACE)};

static void trace_put_byte(unsigned byte)
{
    trace_state.buffer[trace_state.length++] = (unsigned char)byte;
}

static void trace_put_number(uint64_t value)
{
    for (; value >= 128; value >>= 7)
        trace_put_byte((unsigned)(value & 127) | 128);
    trace_put_byte((unsigned)value);
}

static void trace_put_place(const void *block)
{
    uintptr_t now = (uintptr_t)block >> 4;
    int64_t difference = (int64_t)(now - trace_state.granule);
    trace_put_number((uint64_t)difference << 1 ^ (uint64_t)(difference >> 63));
    trace_state.granule = now;
}

void trace_drop(void)
{
    __atomic_store_n(&trace_is_on, false, __ATOMIC_RELAXED);
}

/* The caller holds the lock. */
static void trace_flush(void)
{
    if (trace_state.length != 0 && !trace_state.sink(trace_state.buffer, trace_state.length))
        trace_drop();
    trace_state.length = 0;
}

/* Puts the letter of a record, behind those of the thread and the time. False: the trace is over.
 * The caller holds the lock. */
static bool trace_begin_record(char letter)
{
    if (!trace_is_on)
        return false;
    if (trace_state.length + RECORD_MOST > TRACE_BUFFER)
        trace_flush();
    if (trace_own.number == 0)
        trace_own.number = ++trace_state.thread_count;
    if (trace_own.number != trace_state.thread) {
        trace_put_byte('t');
        trace_put_number(trace_state.thread = trace_own.number);
    }
    uint64_t now_ms = os_clock_ms();
    if (now_ms > trace_state.ms) {
        trace_put_byte('w');
        trace_put_number(now_ms - trace_state.ms);
        trace_state.ms = now_ms;
    }
    trace_put_byte((unsigned char)letter);
    return true;
}

bool trace_begin(trace_sink_t to)
{
    trace_state.buffer = os_map(TRACE_BUFFER);
    if (trace_state.buffer == NULL)
        return false;
    for (const char *from = TRACE_HEAD; *from != '\0'; from++)
        trace_put_byte((unsigned char)*from);
    trace_state.sink = to;
    trace_state.ms = os_clock_ms();
    __atomic_store_n(&trace_is_on, true, __ATOMIC_RELAXED);
    return true;
}

void trace_end(void)
{
    lock_acquire(&trace_state.lock);
    if (trace_is_on)
        trace_flush();
    trace_drop();
    lock_release(&trace_state.lock);
}

void trace_note_block(const void *block, size_t size, size_t alignment, bool is_zeroed)
{
    bool is_plain = alignment <= BLOCK_ALIGNMENT;
    if (trace_own.is_resizing)
        return;
    lock_acquire(&trace_state.lock);
    if (trace_begin_record(!is_plain ? 'a' : is_zeroed ? 'c' : 'm')) {
        trace_put_number(size);
        if (!is_plain)
            trace_put_number(highest_bit(alignment));
        trace_put_place(block);
    }
    lock_release(&trace_state.lock);
}

static void trace_note_place(char letter, const void *block)
{
    lock_acquire(&trace_state.lock);
    if (trace_begin_record(letter))
        trace_put_place(block);
    lock_release(&trace_state.lock);
}

void trace_note_free(const void *block)
{
    if (!trace_own.is_resizing)
        trace_note_place('f', block);
}

void trace_begin_resize(const void *block)
{
    trace_note_place('b', block);
    trace_own.is_resizing = true;
}

void trace_end_resize(const void *block, size_t size)
{
    trace_own.is_resizing = false;
    lock_acquire(&trace_state.lock);
    if (trace_begin_record('e')) {
        trace_put_number(size);
        trace_put_place(block);
    }
    lock_release(&trace_state.lock);
}

void trace_at_fork(fork_phase_t phase)
{
    lock_at_fork(&trace_state.lock, phase);
}
