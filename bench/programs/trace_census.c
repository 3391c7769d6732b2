/*
 * trace_census TRACE [LOW-HIGH,...:COUNT ...]
 *
 * Which blocks are in use when most bytes are? One line for each size that the program asked for:
 *
 *   peak SIZE BLOCKS
 *
 * For each further argument likewise, of blocks of LOW to HIGH bytes, when COUNT of them are in use
 * for the first time; where so many never are, when most of them are:
 *
 *   LOW-HIGH,...:COUNT SIZE BLOCKS
 *
 * Blocks from before the trace began are not known.
 */
#include "trace_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MOMENTS = 64, MOST_RANGES = 256 };

const char *const trace_program = "trace_census";

/* What is in use at a record; a block that is being resized is not. */
typedef struct state {
    trace_reader_t reader;
    trace_blocks_t blocks; /* their sizes */
    uint64_t bytes;
} state_t;

typedef struct range {
    uint64_t low;
    uint64_t high;
} range_t;

/* Ranges of sizes, and how many blocks of them are looked for. */
typedef struct moment {
    const char *name;
    range_t ranges[MOST_RANGES];
    size_t range_count;
    uint64_t wanted;
    uint64_t count; /* in use */
    uint64_t most;
    uint64_t record; /* when that was so first; from 1 on */
} moment_t;

static moment_t moments[MOST_MOMENTS];
static size_t moment_count;

static bool is_among(const moment_t *moment, uint64_t size)
{
    for (size_t index = 0; index < moment->range_count; index++)
        if (size >= moment->ranges[index].low && size <= moment->ranges[index].high) return true;
    return false;
}

static void note_change(uint64_t size, bool is_more, uint64_t now)
{
    for (size_t index = 0; index < moment_count; index++) {
        moment_t *moment = &moments[index];
        if (!is_among(moment, size)) continue;
        moment->count += is_more ? 1 : UINT64_MAX;
        if (moment->count <= moment->most || moment->most >= moment->wanted) continue;
        moment->most = moment->count;
        moment->record = now;
    }
}

static void put_in(state_t *state, const trace_record_t *record, uint64_t now)
{
    uint64_t old;
    if (trace_take_out(&state->blocks, record->address, &old)) {
        state->bytes -= old; /* its free is not in the trace */
        note_change(old, false, now);
    }
    trace_put_in(&state->blocks, record->address, record->size);
    state->bytes += record->size;
    note_change(record->size, true, now);
}

/* A block that is unknown counts for nothing. */
static void take_out(state_t *state, uint64_t address, uint64_t now)
{
    uint64_t size;
    if (!trace_take_out(&state->blocks, address, &size)) return;
    state->bytes -= size;
    note_change(size, false, now);
}

/* False: the trace is over. */
static bool do_record(state_t *state, uint64_t now)
{
    trace_record_t record;
    if (!trace_read(&state->reader, &record)) return false;
    if (record.kind == FREED || record.kind == RESIZE)
        take_out(state, record.address, now);
    else
        put_in(state, &record, now);
    return true;
}

static int by_size(const void *left, const void *right)
{
    const uint64_t first = *(const uint64_t *)left;
    const uint64_t second = *(const uint64_t *)right;
    return (first > second) - (first < second);
}

static void print_state(const state_t *state, const moment_t *moment)
{
    uint64_t *sizes = NULL;
    size_t room = 0;
    size_t count = 0;
    for (size_t index = 0; index < state->blocks.room; index++) {
        const trace_entry_t *entry = &state->blocks.entries[index];
        if (entry->address == 0 || !is_among(moment, entry->number)) continue;
        sizes = trace_with_room(sizes, count, &room, sizeof *sizes);
        sizes[count++] = entry->number;
    }
    if (count != 0) qsort(sizes, count, sizeof *sizes, by_size);
    for (size_t first = 0, next = 0; first < count; first = next) {
        while (next < count && sizes[next] == sizes[first]) next++;
        printf("%s %" PRIu64 " %zu\n", moment->name, sizes[first], next - first);
    }
    free(sizes);
}

static uint64_t find_peak(const char *path)
{
    state_t state = {.reader = trace_open(path)};
    uint64_t most = 0;
    uint64_t peak = 1;
    for (uint64_t now = 1; do_record(&state, now); now++) {
        if (state.bytes <= most) continue;
        most = state.bytes;
        peak = now;
    }
    return peak;
}

static void print_all(const char *path, uint64_t peak)
{
    static const moment_t all = {"peak", {{0, UINT64_MAX}}, 1, 0, 0, 0, 0};
    const size_t known = moment_count;
    moment_count = 0; /* they are found */
    state_t state = {.reader = trace_open(path)};
    for (uint64_t now = 1; do_record(&state, now); now++) {
        if (now == peak) print_state(&state, &all);
        for (size_t index = 0; index < known; index++)
            if (moments[index].record == now) print_state(&state, &moments[index]);
    }
}

/* False: the text is none. */
static bool read_moment(const char *text, moment_t *moment)
{
    moment->name = text;
    for (char end = ','; end == ',';) {
        int length = 0;
        range_t range;
        if (moment->range_count == MOST_RANGES ||
            sscanf(text, "%" SCNu64 "-%" SCNu64 "%c%n", &range.low, &range.high, &end, &length) !=
                3)
            return false;
        moment->ranges[moment->range_count++] = range;
        text += length;
        if (end == ':') return sscanf(text, "%" SCNu64 "%c", &moment->wanted, &end) == 1;
    }
    return false;
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 2 || argument_count - 2 > MOST_MOMENTS) {
        fprintf(stderr, "trace_census: give a trace, and at most %d LOW-HIGH,...:COUNT\n",
                MOST_MOMENTS);
        return 2;
    }
    for (int index = 2; index < argument_count; index++) {
        if (read_moment(arguments[index], &moments[moment_count++])) continue;
        fprintf(stderr, "trace_census: %s is not LOW-HIGH,...:COUNT\n", arguments[index]);
        return 2;
    }
    print_all(arguments[1], find_peak(arguments[1]));
    return 0;
}
