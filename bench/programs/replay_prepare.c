/*
 * replay_prepare TRACE FILE
 *
 * Makes of an allocation trace (option trace, src/observe/trace.h) the file that replay takes. What
 * the trace says about blocks that it does not know, as those of before it began, is left out and
 * counted. Threads that were never there at the same time become one.
 */
#include "replay.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define TRACE_HEAD "hakmem trace 1\n"
#define NO_PLACE UINT32_MAX

/* ---- the trace ---- */

typedef struct reader {
    const unsigned char *at;
    const unsigned char *end;
    uint64_t granule; /* of the block named last */
    uint64_t thread;
} reader_t;

typedef struct record {
    char letter;
    uint64_t number; /* size, thread or time */
    uint64_t shift;
    uint64_t granule;
} record_t;

static const char *trace_path;

static _Noreturn void stop(const char *path, const char *why)
{
    fprintf(stderr, "replay_prepare: %s: %s\n", path, why);
    exit(1);
}

static uint64_t read_number(reader_t *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (reader->at == reader->end || shift > 63) stop(trace_path, "it is cut off, or no trace");
        const unsigned char byte = *reader->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

static uint64_t read_place(reader_t *reader)
{
    const uint64_t code = read_number(reader);
    reader->granule += code >> 1 ^ -(code & 1);
    return reader->granule;
}

/* False: the trace is over. */
static bool read_record(reader_t *reader, record_t *record)
{
    if (reader->at == reader->end) return false;
    *record = (record_t){.letter = (char)*reader->at++};
    if (memchr("mcaetw", record->letter, 6) != NULL) record->number = read_number(reader);
    if (record->letter == 'a') record->shift = read_number(reader);
    if (memchr("mcafbe", record->letter, 6) != NULL) record->granule = read_place(reader);
    if (record->letter == 't') reader->thread = record->number;
    if (memchr("mcafbetw", record->letter, 8) == NULL || record->shift >= 48 ||
        (record->letter != 't' && record->number >> 48 != 0))
        stop(trace_path, "it is no trace");
    return true;
}

static reader_t open_trace(const char *path)
{
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) stop(path, strerror(errno));
    const size_t length = (size_t)status.st_size;
    const size_t head = strlen(TRACE_HEAD);
    const unsigned char *bytes = MAP_FAILED;
    if (length > head) bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED || memcmp(bytes, TRACE_HEAD, head) != 0)
        stop(path, "it is no trace, or an empty one");
    return (reader_t){.at = bytes + head, .end = bytes + length, .thread = 1};
}

/* ---- arrays that grow ---- */

/* Room for one element more; zero at first. */
static void *with_room(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room) return array;
    const size_t more = *room == 0 ? 64 : *room;
    char *grown = realloc(array, (*room + more) * size);
    if (grown == NULL) stop(trace_path, "there is not enough memory for it");
    memset(grown + *room * size, 0, more * size);
    *room += more;
    return grown;
}

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

static thread_t *thread_at(uint64_t number)
{
    if (number >> 24 != 0) stop(trace_path, "it is no trace");
    while (number >= thread_room)
        threads = with_room(threads, thread_room, &thread_room, sizeof *threads);
    return &threads[number];
}

static void find_last_records(reader_t reader)
{
    record_t record;
    for (uint64_t number = 1; read_record(&reader, &record); number++)
        thread_at(reader.thread)->last = number;
}

static worker_t *worker_of(thread_t *thread, uint64_t now)
{
    if (thread->worker != 0) return &workers[thread->worker - 1];
    uint32_t index = 0;
    while (index < worker_count && workers[index].free_from >= now) index++;
    if (index == REPLAY_MOST_WORKERS) stop(trace_path, "it has too many threads at a time");
    if (index == worker_count) worker_count++;
    workers[index].free_from = thread->last;
    thread->worker = index + 1;
    thread->resized = NO_PLACE;
    return &workers[index];
}

/* ---- blocks and places ---- */

/* Where a block is known by its address: open addressing, by granule. A granule of 0 is none. */
typedef struct entry {
    uint64_t granule;
    uint32_t place;
} entry_t;

static entry_t *entries;
static size_t entry_room; /* a power of two */
static size_t entry_count;
static uint32_t *turns; /* of each place */
static size_t turn_room;
static size_t place_count;
static uint32_t *free_places;
static size_t free_room;
static size_t free_count;

static size_t home_of(uint64_t granule)
{
    return (size_t)(granule * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (entry_room - 1);
}

static entry_t *find(uint64_t granule)
{
    size_t index = home_of(granule);
    while (entries[index].granule != 0 && entries[index].granule != granule)
        index = (index + 1) & (entry_room - 1);
    return &entries[index];
}

static void grow_entries(void)
{
    entry_t *old = entries;
    const size_t old_room = entry_room;
    entry_room = old_room == 0 ? 1024 : 2 * old_room;
    entries = calloc(entry_room, sizeof *entries);
    if (entries == NULL) stop(trace_path, "there is not enough memory for it");
    for (size_t index = 0; index < old_room; index++)
        if (old[index].granule != 0) *find(old[index].granule) = old[index];
    free(old);
}

static void put_in(uint64_t granule, uint32_t place)
{
    if (2 * entry_count >= entry_room) grow_entries();
    entry_t *entry = find(granule);
    entry_count += entry->granule == 0;
    *entry = (entry_t){granule, place};
}

/* NO_PLACE: no block is known there. Those behind it move up (Knuth, TAOCP 3, 6.4, algorithm R). */
static uint32_t take_out(uint64_t granule)
{
    if (entry_room == 0 || granule == 0) return NO_PLACE;
    entry_t *hole = find(granule);
    if (hole->granule == 0) return NO_PLACE;
    const uint32_t place = hole->place;
    size_t empty = (size_t)(hole - entries);
    for (size_t index = (empty + 1) & (entry_room - 1); entries[index].granule != 0;
         index = (index + 1) & (entry_room - 1)) {
        const size_t from_home = (index - home_of(entries[index].granule)) & (entry_room - 1);
        if (from_home < ((index - empty) & (entry_room - 1))) continue;
        entries[empty] = entries[index];
        empty = index;
    }
    entries[empty].granule = 0;
    entry_count--;
    return place;
}

static uint32_t provide_place(void)
{
    if (free_count != 0) return free_places[--free_count];
    if (place_count >= NO_PLACE) stop(trace_path, "it has too many blocks at a time");
    turns = with_room(turns, place_count, &turn_room, sizeof *turns);
    return (uint32_t)place_count++;
}

static void release_place(uint32_t place)
{
    free_places = with_room(free_places, free_count, &free_room, sizeof *free_places);
    free_places[free_count++] = place;
}

/* ---- steps ---- */

static uint64_t unknown_count;

static void add_step(worker_t *worker, uint32_t place, replay_action_t action, uint64_t size,
                     uint64_t shift)
{
    worker->steps = with_room(worker->steps, worker->count, &worker->room, sizeof *worker->steps);
    worker->steps[worker->count++] = (replay_step_t){
        .place = place, .turn = turns[place]++, .what = replay_what(action, size, shift)};
}

static void add_block(worker_t *worker, const record_t *record)
{
    const uint32_t place = provide_place();
    (void)take_out(record->granule); /* of one whose free the trace does not know */
    put_in(record->granule, place);
    add_step(worker, place,
             record->letter == 'c'   ? REPLAY_ALLOCATE_ZEROED
             : record->letter == 'a' ? REPLAY_ALLOCATE_ALIGNED
                                     : REPLAY_ALLOCATE,
             record->number, record->shift);
}

static void add_record(const record_t *record, thread_t *thread, uint64_t now)
{
    worker_t *worker = worker_of(thread, now);
    if (memchr("mca", record->letter, 3) != NULL) {
        add_block(worker, record);
        return;
    }
    const bool is_end = record->letter == 'e';
    const uint32_t place = is_end ? thread->resized : take_out(record->granule);
    unknown_count += place == NO_PLACE && !is_end;
    if (record->letter == 'b') thread->resized = place;
    if (is_end) thread->resized = NO_PLACE;
    if (place == NO_PLACE || record->letter == 'b') return;
    add_step(worker, place, is_end ? REPLAY_RESIZE : REPLAY_FREE, record->number, 0);
    if (is_end)
        put_in(record->granule, place);
    else
        release_place(place);
}

static void write_all(FILE *file, const void *data, size_t size, size_t count, const char *path)
{
    if (fwrite(data, size, count, file) != count) stop(path, strerror(errno));
}

/* Returns how many steps there are. */
static uint64_t write_file(const char *path)
{
    const replay_head_t head = {REPLAY_MAGIC, worker_count, place_count};
    uint64_t steps = 0;
    uint64_t offset = sizeof head + worker_count * sizeof(replay_worker_t);
    FILE *file = fopen(path, "wb");
    if (file == NULL) stop(path, strerror(errno));
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
    if (fclose(file) != 0) stop(path, strerror(errno));
    return steps;
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 3) {
        fprintf(stderr, "replay_prepare: give a trace, and the file to be made of it\n");
        return 2;
    }
    trace_path = arguments[1];
    reader_t reader = open_trace(trace_path);
    record_t record;
    find_last_records(reader);
    for (uint64_t now = 1; read_record(&reader, &record); now++)
        if (record.letter != 't' && record.letter != 'w')
            add_record(&record, thread_at(reader.thread), now);
    if (worker_count == 0) stop(trace_path, "nothing is allocated in it");
    const uint64_t steps = write_file(arguments[2]);
    printf("%" PRIu64 " calls, %zu blocks at a time, %" PRIu32 " threads at a time", steps,
           place_count, worker_count);
    if (unknown_count != 0) printf("; %" PRIu64 " of unknown blocks left out", unknown_count);
    printf("\n");
    return 0;
}
