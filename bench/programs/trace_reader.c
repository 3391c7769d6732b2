/* Records of a trace, and a table of its blocks. See trace_reader.h. */
#include "trace_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define TRACE_HEAD "hakmem trace 1\n"

_Noreturn void trace_stop(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", trace_program, path, why);
    exit(1);
}

static uint64_t read_number(trace_reader_t *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (reader->at == reader->end || shift > 63)
            trace_stop(reader->path, "it is cut off, or no trace");
        const unsigned char byte = *reader->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

static uint64_t read_place(trace_reader_t *reader)
{
    const uint64_t code = read_number(reader);
    reader->granule += code >> 1 ^ -(code & 1);
    return reader->granule;
}

bool trace_read(trace_reader_t *reader, trace_record_t *record)
{
    if (reader->at == reader->end) return false;
    *record = (trace_record_t){.letter = (char)*reader->at++};
    if (memchr("mcaetw", record->letter, 6) != NULL) record->number = read_number(reader);
    if (record->letter == 'a') record->shift = read_number(reader);
    if (memchr("mcafbe", record->letter, 6) != NULL) record->granule = read_place(reader);
    if (record->letter == 't') reader->thread = record->number;
    if (memchr("mcafbetw", record->letter, 8) == NULL || record->shift >= 48 ||
        (record->letter != 't' && record->number >> 48 != 0))
        trace_stop(reader->path, "it is no trace");
    return true;
}

trace_reader_t trace_open(const char *path)
{
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) trace_stop(path, strerror(errno));
    const size_t length = (size_t)status.st_size;
    const size_t head = strlen(TRACE_HEAD);
    const unsigned char *bytes = MAP_FAILED;
    if (length > head) bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED || memcmp(bytes, TRACE_HEAD, head) != 0)
        trace_stop(path, "it is no trace, or an empty one");
    return (trace_reader_t){.path = path, .at = bytes + head, .end = bytes + length, .thread = 1};
}

static _Noreturn void stop_for_memory(void)
{
    fprintf(stderr, "%s: there is not enough memory for the trace\n", trace_program);
    exit(1);
}

void *trace_with_room(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room) return array;
    const size_t more = *room == 0 ? 64 : *room;
    char *grown = realloc(array, (*room + more) * size);
    if (grown == NULL) stop_for_memory();
    memset(grown + *room * size, 0, more * size);
    *room += more;
    return grown;
}

/* ---- blocks ---- */

static size_t home_of(const trace_blocks_t *blocks, uint64_t granule)
{
    return (size_t)(granule * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (blocks->room - 1);
}

static trace_entry_t *find(const trace_blocks_t *blocks, uint64_t granule)
{
    size_t index = home_of(blocks, granule);
    while (blocks->entries[index].granule != 0 && blocks->entries[index].granule != granule)
        index = (index + 1) & (blocks->room - 1);
    return &blocks->entries[index];
}

static void grow(trace_blocks_t *blocks)
{
    trace_blocks_t old = *blocks;
    blocks->room = old.room == 0 ? 1024 : 2 * old.room;
    blocks->entries = calloc(blocks->room, sizeof *blocks->entries);
    if (blocks->entries == NULL) stop_for_memory();
    for (size_t index = 0; index < old.room; index++)
        if (old.entries[index].granule != 0)
            *find(blocks, old.entries[index].granule) = old.entries[index];
    free(old.entries);
}

void trace_put_in(trace_blocks_t *blocks, uint64_t granule, uint64_t number)
{
    if (2 * blocks->count >= blocks->room) grow(blocks);
    trace_entry_t *entry = find(blocks, granule);
    blocks->count += entry->granule == 0;
    *entry = (trace_entry_t){granule, number};
}

/* Those behind the one that goes move up (Knuth, TAOCP 3, 6.4, algorithm R). */
bool trace_take_out(trace_blocks_t *blocks, uint64_t granule, uint64_t *number)
{
    if (blocks->room == 0 || granule == 0) return false;
    trace_entry_t *hole = find(blocks, granule);
    if (hole->granule == 0) return false;
    *number = hole->number;
    size_t empty = (size_t)(hole - blocks->entries);
    const size_t last = blocks->room - 1;
    for (size_t index = (empty + 1) & last; blocks->entries[index].granule != 0;
         index = (index + 1) & last) {
        const size_t from_home = (index - home_of(blocks, blocks->entries[index].granule)) & last;
        if (from_home < ((index - empty) & last)) continue;
        blocks->entries[empty] = blocks->entries[index];
        empty = index;
    }
    blocks->entries[empty].granule = 0;
    blocks->count--;
    return true;
}
