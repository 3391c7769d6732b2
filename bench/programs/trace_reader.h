/* Reads an allocation trace (recorder/recorder.h), record by record, and keeps what is known of its
 * blocks by their addresses. For programs that end, with one line, at a trace that is none. */
#ifndef TRACE_READER_H
#define TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder.h"

typedef struct trace_reader {
    const char *path;
    const unsigned char *at;
    const unsigned char *end;
} trace_reader_t;

typedef struct trace_record {
    kind_t kind; /* all but STACK */
    uint64_t size;
    uint64_t address;
    uint32_t thread;
    uint32_t shift; /* 0: the address is that of malloc */
} trace_record_t;

/* The program's name, for messages. */
extern const char *const trace_program;

/* Ends the program: "PROGRAM: PATH: WHY". */
_Noreturn void trace_stop(const char *path, const char *why);

trace_reader_t trace_open(const char *path);

/* False: the trace is over. */
bool trace_read(trace_reader_t *reader, trace_record_t *record);

/* Room for one element more of an array that begins as NULL; what is new is zero. */
void *trace_with_room(void *array, size_t count, size_t *room, size_t size);

/* ---- a number for each block, by address (not 0): open addressing ---- */

typedef struct trace_entry {
    uint64_t address; /* 0: none */
    uint64_t number;
} trace_entry_t;

typedef struct trace_blocks {
    trace_entry_t *entries;
    size_t room; /* a power of two, or 0 */
    size_t count;
} trace_blocks_t;

/* Replaces the number of a block that is known. */
void trace_put_in(trace_blocks_t *blocks, uint64_t address, uint64_t number);

/* False: no block is known there. */
bool trace_take_out(trace_blocks_t *blocks, uint64_t address, uint64_t *number);

#endif
