/*
 * replay_prepare TRACE FILE
 *
 * Makes of an allocation trace (docs/trace.md) the file that replay takes. What the trace says
 * about blocks that it does not know, as those of before it began, is left out and counted. Threads
 * that were never there at the same time become one.
 */
#include "replay.h"
#include "trace_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_PLACE UINT32_MAX

const char *const trace_program = "replay_prepare";
static const char *trace_path;

/* ---- threads and workers ---- */

typedef struct thread {
    uint64_t last;    /* its last record, counted from 1 */
    uint32_t worker;  /* from 1 on; 0: none yet */
    uint32_t resized; /* the place whose block it is resizing */
} thread_t;

typedef struct worker {
    uint64_t free_from; /* the record after which its thread has no more */
    replay_step_t *steps;
    size_t count;
    size_t room;
} worker_t;

static thread_t *threads;
static size_t thread_room;
static worker_t workers[REPLAY_MOST_WORKERS];
static uint32_t worker_count;

static thread_t *thread_at(uint32_t number)
{
    while (number >= thread_room)
        threads = trace_with_room(threads, thread_room, &thread_room, sizeof *threads);
    return &threads[number];
}

static void find_last_records(trace_reader_t reader)
{
    trace_record_t record;
    for (uint64_t number = 1; trace_read(&reader, &record); number++)
        thread_at(record.thread)->last = number;
}

static worker_t *worker_of(thread_t *thread, uint64_t now)
{
    if (thread->worker != 0) return &workers[thread->worker - 1];
    uint32_t index = 0;
    while (index < worker_count && workers[index].free_from >= now) index++;
    if (index == REPLAY_MOST_WORKERS) trace_stop(trace_path, "it has too many threads at a time");
    if (index == worker_count) worker_count++;
    workers[index].free_from = thread->last;
    thread->worker = index + 1;
    thread->resized = NO_PLACE;
    return &workers[index];
}

/* ---- blocks and places ---- */

static trace_blocks_t blocks; /* their places */
static uint32_t *turns; /* of each place */
static size_t turn_room;
static size_t place_count;
static uint32_t *free_places;
static size_t free_room;
static size_t free_count;

/* NO_PLACE: no block is known there. */
static uint32_t take_out(uint64_t address)
{
    uint64_t place;
    return trace_take_out(&blocks, address, &place) ? (uint32_t)place : NO_PLACE;
}

static uint32_t provide_place(void)
{
    if (free_count != 0) return free_places[--free_count];
    if (place_count >= NO_PLACE) trace_stop(trace_path, "it has too many blocks at a time");
    turns = trace_with_room(turns, place_count, &turn_room, sizeof *turns);
    return (uint32_t)place_count++;
}

static void release_place(uint32_t place)
{
    free_places = trace_with_room(free_places, free_count, &free_room, sizeof *free_places);
    free_places[free_count++] = place;
}

/* ---- steps ---- */

static uint64_t unknown_count;

static void add_step(worker_t *worker, uint32_t place, replay_action_t action, uint64_t size,
                     uint64_t shift)
{
    worker->steps =
        trace_with_room(worker->steps, worker->count, &worker->room, sizeof *worker->steps);
    worker->steps[worker->count++] = (replay_step_t){
        .place = place, .turn = turns[place]++, .what = replay_what(action, size, shift)};
}

static void add_block(worker_t *worker, const trace_record_t *record)
{
    const uint32_t place = provide_place();
    (void)take_out(record->address); /* of one whose free the trace does not know */
    trace_put_in(&blocks, record->address, place);
    add_step(worker, place,
             record->kind == ZEROED ? REPLAY_ALLOCATE_ZEROED
             : record->shift != 0   ? REPLAY_ALLOCATE_ALIGNED
                                    : REPLAY_ALLOCATE,
             record->size, record->shift);
}

static void add_record(const trace_record_t *record, thread_t *thread, uint64_t now)
{
    worker_t *worker = worker_of(thread, now);
    if (record->kind == BLOCK || record->kind == ZEROED) {
        add_block(worker, record);
        return;
    }
    const bool is_end = record->kind == RESIZED;
    const uint32_t place = is_end ? thread->resized : take_out(record->address);
    unknown_count += place == NO_PLACE && !is_end;
    if (record->kind == RESIZE) thread->resized = place;
    if (is_end) thread->resized = NO_PLACE;
    if (place == NO_PLACE || record->kind == RESIZE) return;
    add_step(worker, place, is_end ? REPLAY_RESIZE : REPLAY_FREE, record->size, 0);
    if (is_end)
        trace_put_in(&blocks, record->address, place);
    else
        release_place(place);
}

static void write_all(FILE *file, const void *data, size_t size, size_t count, const char *path)
{
    if (fwrite(data, size, count, file) != count) trace_stop(path, strerror(errno));
}

/* Returns how many steps there are. */
static uint64_t write_file(const char *path)
{
    const replay_head_t head = {REPLAY_MAGIC, worker_count, place_count};
    uint64_t steps = 0;
    uint64_t offset = sizeof head + worker_count * sizeof(replay_worker_t);
    FILE *file = fopen(path, "wb");
    if (file == NULL) trace_stop(path, strerror(errno));
    write_all(file, &head, sizeof head, 1, path);
    for (uint32_t index = 0; index < worker_count; index++) {
        const replay_worker_t part = {offset, workers[index].count};
        write_all(file, &part, sizeof part, 1, path);
        offset += part.count * sizeof(replay_step_t);
        steps += part.count;
    }
    for (uint32_t index = 0; index < worker_count; index++) {
        const worker_t *worker = &workers[index];
        if (worker->count != 0)
            write_all(file, worker->steps, sizeof *worker->steps, worker->count, path);
    }
    if (fclose(file) != 0) trace_stop(path, strerror(errno));
    return steps;
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 3) {
        fprintf(stderr, "replay_prepare: give a trace, and the file to be made of it\n");
        return 2;
    }
    trace_path = arguments[1];
    trace_reader_t reader = trace_open(trace_path);
    trace_record_t record;
    find_last_records(reader);
    for (uint64_t now = 1; trace_read(&reader, &record); now++)
        add_record(&record, thread_at(record.thread), now);
    if (worker_count == 0) trace_stop(trace_path, "nothing is allocated in it");
    const uint64_t steps = write_file(arguments[2]);
    printf("%" PRIu64 " calls, %zu blocks at a time, %" PRIu32 " threads at a time", steps,
           place_count, worker_count);
    if (unknown_count != 0) printf("; %" PRIu64 " of unknown blocks left out", unknown_count);
    printf("\n");
    return 0;
}
