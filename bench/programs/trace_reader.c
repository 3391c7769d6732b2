/* Records of a trace, and a table of its blocks. See trace_reader.h. */
#include "trace_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRACE_HEAD = 32 };

_Noreturn void trace_stop(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", trace_program, path, why);
    exit(1);
}

/* As it is in the file: record_t of recorder/records.c. */
typedef struct file_record {
    uint64_t address;
    uint64_t size;
    uint64_t time_ns;
    uint32_t stack;
    uint16_t thread;
    uint8_t kind;
    uint8_t shift;
} file_record_t;

bool trace_read(trace_reader_t *reader, trace_record_t *record)
{
    file_record_t found;
    for (;;) {
        if (reader->at == reader->end) return false;
        memcpy(&found, reader->at, sizeof found);
        reader->at += sizeof found;
        if (found.kind != STACK) break;
        if (reader->at == reader->end) trace_stop(reader->path, "it is no trace");
        reader->at += sizeof found; /* the frames */
    }
    if (found.kind > ZEROED || found.kind == 0 || found.address == 0 || found.shift >= 48 ||
        found.size >> 48 != 0)
        trace_stop(reader->path, "it is no trace");
    *record = (trace_record_t){found.kind, found.size, found.address, found.thread, found.shift};
    return true;
}

trace_reader_t trace_open(const char *path)
{
    struct stat status;
    uint64_t count = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) trace_stop(path, strerror(errno));
    const size_t length = (size_t)status.st_size;
    const unsigned char *bytes = MAP_FAILED;
    if (length >= TRACE_HEAD) bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes != MAP_FAILED && memcmp(bytes, RECORDER_MAGIC, sizeof RECORDER_MAGIC) == 0)
        memcpy(&count, bytes + sizeof RECORDER_MAGIC, sizeof count);
    close(file);
    if (count == 0) trace_stop(path, "it is no trace of this version, or an empty one");
    if (count > (length - TRACE_HEAD) / sizeof(file_record_t)) trace_stop(path, "it is cut off");
    return (trace_reader_t){.path = path,
                            .at = bytes + TRACE_HEAD,
                            .end = bytes + TRACE_HEAD + count * sizeof(file_record_t)};
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

static size_t home_of(const trace_blocks_t *blocks, uint64_t address)
{
    return (size_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (blocks->room - 1);
}

static trace_entry_t *find(const trace_blocks_t *blocks, uint64_t address)
{
    size_t index = home_of(blocks, address);
    while (blocks->entries[index].address != 0 && blocks->entries[index].address != address)
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
        if (old.entries[index].address != 0)
            *find(blocks, old.entries[index].address) = old.entries[index];
    free(old.entries);
}

void trace_put_in(trace_blocks_t *blocks, uint64_t address, uint64_t number)
{
    if (2 * blocks->count >= blocks->room) grow(blocks);
    trace_entry_t *entry = find(blocks, address);
    blocks->count += entry->address == 0;
    *entry = (trace_entry_t){address, number};
}

/* Those behind the one that goes move up (Knuth, TAOCP 3, 6.4, algorithm R). */
bool trace_take_out(trace_blocks_t *blocks, uint64_t address, uint64_t *number)
{
    if (blocks->room == 0 || address == 0) return false;
    trace_entry_t *hole = find(blocks, address);
    if (hole->address == 0) return false;
    *number = hole->number;
    size_t empty = (size_t)(hole - blocks->entries);
    const size_t last = blocks->room - 1;
    for (size_t index = (empty + 1) & last; blocks->entries[index].address != 0;
         index = (index + 1) & last) {
        const size_t from_home = (index - home_of(blocks, blocks->entries[index].address)) & last;
        if (from_home < ((index - empty) & last)) continue;
        blocks->entries[empty] = blocks->entries[index];
        empty = index;
    }
    blocks->entries[empty].address = 0;
    blocks->count--;
    return true;
}
