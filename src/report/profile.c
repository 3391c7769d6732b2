/* The heap profile. See profile.h and docs/profile.md. */
#include "report/profile.h"

#include <errno.h>
#include <string.h>

#include "check/guard.h"
#include "slab/detour.h"
#include "report/output_file.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/format.h"
#include "hakmem.h"
#include "os/fatal.h"
#include "os/lock.h"
#include "observe/pprof.h"
#include "observe/sampler.h"
#include "observe/samples.h"
#include "os/os.h"
#include "options/options.h"
#include "slab/size_class.h"

static struct {
    output_file_t file;      /* of the option */
    uint64_t started_ms;     /* 0: never; read without a lock */
    bool every_block_counts; /* for a leak report: nobody turns that off */
    bool is_writing;         /* who has set it has the file, and the next four fields */
    uint64_t due_ms;         /* when it is written again; read by others, too */
    char *bytes;             /* a profile that is made; NULL: no room yet */
    size_t room;
    size_t length;
} profile_state;

static bool profile_was_started(void)
{
    return __atomic_load_n(&profile_state.started_ms, __ATOMIC_RELAXED) != 0;
}

void profile_sample(const void *block, size_t size, const void *caller)
{
    uintptr_t frames[PROFILE_DEPTH];
    size_t held = size + guard_bytes();
    sampler_own.is_busy = true; /* unwinders of old allocate once */
    uint16_t slots[SITE_FRAMES_MOST - 1];
    unsigned depth = os_call_stack(frames, PROFILE_DEPTH, caller, slots);
    sampled_t sampled = {.block = block,
                         .size = size,
                         .block_size = held <= MID_MAX ? size_classes[size_class_of(held)].size
                                                       : power_of_two_at_least(held),
                         .weight = sampler_weight(size, sampler_mean()),
                         .now_ms = os_clock_ms(),
                         .is_unnamed = depth == 0 || frames[0] + 1 != (uintptr_t)caller};
    memcpy(sampled.slots, slots, sizeof slots);
    (void)samples_add(&sampled, frames, depth);
    sampler_own.is_busy = false;
    profile_keep_up(sampled.now_ms);
}

void profile_note_free(const void *block, const void *caller)
{
    uintptr_t frames[PROFILE_DEPTH];
    if (!profile_state.every_block_counts || sampler_own.is_busy)
        return;
    sampler_own.is_busy = true;
    samples_note_free(block, frames, os_call_stack(frames, PROFILE_DEPTH, caller, NULL));
    sampler_own.is_busy = false;
}

static int profile_begin(size_t mean)
{
    if (options.ld_safe) /* nothing is ours then */
        return ENOTSUP;
    if (!samples_create(mean > SAMPLER_LEAST_MEAN ? PROFILE_SAMPLES : LEAK_BLOCKS))
        return ENOMEM;
    if (profile_state.every_block_counts && !samples_remember_frees())
        return ENOMEM;
    if (!profile_was_started()) {
        pprof_prepare();
        __atomic_store_n(&profile_state.started_ms, os_clock_ms(), __ATOMIC_RELAXED);
    }
    sampler_start(mean);
    detour_set(DETOUR_SAMPLES, true);
    return 0;
}

/* ---- the file ---- */

static bool profile_append(const void *bytes, size_t length, void *nothing)
{
    (void)nothing;
    return output_file_append(&profile_state.file, bytes, length);
}

static bool write_to_file(const void *bytes, size_t length, void *context)
{
    return os_write_file(*(const int *)context, bytes, length);
}

/* 0, or the number of the error. */
static int write_profile(pprof_sink_t sink, void *context, bool goes_on)
{
    static const int errors[] = {
        [PPROF_DONE] = 0, [PPROF_NO_MEMORY] = ENOMEM, [PPROF_REFUSED] = EIO};
    pprof_facts_t facts = {.written_ns = os_calendar_ns(),
                           .duration_ns = (os_clock_ms() - profile_state.started_ms) * 1000000,
                           .mean = sampler_mean(),
                           .left_out = samples_left_out(),
                           .goes_on = goes_on};
    return errors[pprof_write(&facts, sink, context)];
}

/* ---- while the program runs ----
 *
 * A file is overwritten in one piece and cut to length then, as statistics are: whoever kills the
 * program leaves an old profile or a new one. */

/* acquire, and release where the flag is cleared: who writes has the file to itself */
static bool take_file(void)
{
    return !__atomic_exchange_n(&profile_state.is_writing, true, __ATOMIC_ACQUIRE);
}

/* Makes room for a piece behind what is there. The lock of the samples is held. */
static bool make_room(size_t length)
{
    if (profile_state.room - profile_state.length >= length)
        return true;
    size_t room = power_of_two_at_least(profile_state.length + length + 64 * KIB);
    char *bytes = os_map(room);
    if (bytes == NULL)
        return false;
    if (profile_state.bytes != NULL) {
        memcpy(bytes, profile_state.bytes, profile_state.length);
        (void)os_release(profile_state.bytes, profile_state.room);
    }
    profile_state.bytes = bytes;
    profile_state.room = room;
    return true;
}

static bool profile_collect(const void *bytes, size_t length, void *nothing)
{
    (void)nothing;
    if (!make_room(length))
        return false;
    memcpy(profile_state.bytes + profile_state.length, bytes, length);
    profile_state.length += length;
    return true;
}

/* The caller has the file. Without memory the profile of the end is the only one. */
static void write_so_far(void)
{
    profile_state.length = 0;
    if (write_profile(profile_collect, NULL, true) == 0 && output_file_begin(&profile_state.file) &&
        output_file_append(&profile_state.file, profile_state.bytes, profile_state.length))
        output_file_end(&profile_state.file);
}

void profile_keep_up(uint64_t now_ms)
{
    if (profile_state.file.number == 0 || profile_state.file.has_failed ||
        now_ms < __atomic_load_n(&profile_state.due_ms, __ATOMIC_RELAXED) || !take_file())
        return;
    MUST(lock_none_is_held());
    bool was_busy = sampler_own.is_busy;
    sampler_own.is_busy = true; /* what the loader allocates is no sample */
    write_so_far();
    sampler_own.is_busy = was_busy;
    uint64_t end_ms = os_clock_ms();
    uint64_t pause_ms = (end_ms - now_ms) * PROFILE_PERIOD_RATIO;
    __atomic_store_n(&profile_state.due_ms,
                     end_ms + (pause_ms > PROFILE_PERIOD_MS ? pause_ms : PROFILE_PERIOD_MS),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&profile_state.is_writing, false, __ATOMIC_RELEASE);
}

/* Where every block is a sample, those of malloc must not take spans of their own. */
static bool leaks_are_told_by_stack(void)
{
    if (options.leak_report != LEAKS_BY_STACK)
        return false;
    if (options.junk && options.check_frees)
        return true;
    complain("HAKMEM_LEAK_REPORT=stacks tells sizes only: it needs HAKMEM_MODE=debug");
    return false;
}

void profile_prepare(void)
{
    bool is_wanted = option_texts.profile[0] != '\0';
    bool by_stack = profile_state.every_block_counts = leaks_are_told_by_stack();
    if (!is_wanted && !by_stack)
        return;
    int error =
        profile_begin(by_stack ? SAMPLER_LEAST_MEAN : (size_t)options.profile_mean_kb * KIB);
    if (error == 0 && is_wanted)
        (void)output_file_open(&profile_state.file, option_texts.profile, "profile");
    profile_state.due_ms = profile_state.started_ms + PROFILE_PERIOD_MS;
    if (error == 0)
        return;
    line_t line = {.length = 0};
    line_add(&line, is_wanted ? "HAKMEM_PROFILE" : "HAKMEM_LEAK_REPORT=stacks");
    line_add(&line, error == ENOTSUP ? " is ignored: HAKMEM_LD_SAFE serves every call"
                                     : " is ignored: there is no memory for it");
    line.text[line.length] = '\0';
    complain(line.text);
}

void profile_at_exit(void)
{
    if (profile_state.file.number == 0)
        return;
    for (unsigned turn = 0; !take_file() && turn < LAST_WAIT_MS; turn++)
        os_sleep(1);
    if (!output_file_begin(&profile_state.file))
        return;
    int error = write_profile(profile_append, NULL, false);
    if (error == 0)
        output_file_end(&profile_state.file);
    else
        output_file_complain(&profile_state.file, error);
}

/* The child of a fork has the blocks of its parent, which are no leaks of its own, and which the
 * parent's profile has. */
void profile_at_fork_in_child(void)
{
    if (profile_was_started() && !profile_state.every_block_counts) {
        sampler_reseed();
        profile_state.started_ms = os_clock_ms();
        samples_leave_to_parent();
    }
    __atomic_store_n(&profile_state.is_writing, false, __ATOMIC_RELAXED);
    output_file_at_fork_in_child(&profile_state.file, options.leak_report != LEAKS_BY_STACK);
}

/* ---- include/hakmem.h ---- */

int profile_start(size_t mean)
{
    if (profile_state.every_block_counts)
        return EBUSY;
    return profile_begin(mean != 0 ? mean : (size_t)options.profile_mean_kb * KIB);
}

PUBLIC void hakmem_profile_stop(void)
{
    if (!profile_was_started() || profile_state.every_block_counts)
        return;
    sampler_stop();
    detour_set(DETOUR_SAMPLES, false);
}

PUBLIC int hakmem_profile_write(const char *path)
{
    if (path == NULL || !profile_was_started())
        return EINVAL;
    int file = os_create_file(path);
    if (file < 0)
        return -file;
    int error = write_profile(write_to_file, &file, false);
    os_close_file(file);
    return error;
}
