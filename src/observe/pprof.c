/* The profile as pprof wants it. See pprof.h. Numbers of fields are those of profile.proto
 * (github.com/google/pprof). */
#include "observe/pprof.h"

#include "base/bits.h"
#include "base/format.h"
#include "base/text.h"
#include "observe/sampler.h"
#include "observe/samples.h"
#include "os/os.h"
#include "options/tuning.h"

enum { /* of Profile */
    FIELD_SAMPLE_TYPE = 1,
    FIELD_SAMPLE = 2,
    FIELD_MAPPING = 3,
    FIELD_LOCATION = 4,
    FIELD_STRING = 6,
    FIELD_TIME = 9,
    FIELD_DURATION = 10,
    FIELD_PERIOD_TYPE = 11,
    FIELD_PERIOD = 12,
    FIELD_COMMENT = 13,
    FIELD_DEFAULT_TYPE = 14,
};

/* What stands at the beginning of the table of strings, in this order. */
static const char *const pprof_strings[] = {
    "",
    "alloc_objects",
    "count",
    "alloc_space",
    "bytes",
    "inuse_objects",
    "inuse_space",
    "moved_objects",
    "moved_space",
    "lifetime",
    "milliseconds",
    "space",
    "block_size",
    "kept_space",
    "unnamed",
    "caller_2",
    "caller_3",
};
enum {
    STRING_NONE,
    STRING_ALLOC_OBJECTS,
    STRING_COUNT,
    STRING_ALLOC_SPACE,
    STRING_BYTES,
    STRING_INUSE_OBJECTS,
    STRING_INUSE_SPACE,
    STRING_MOVED_OBJECTS,
    STRING_MOVED_SPACE,
    STRING_LIFETIME,
    STRING_MILLISECONDS,
    STRING_SPACE,
    STRING_BLOCK_SIZE,
    STRING_KEPT_SPACE,
    STRING_UNNAMED,
    STRING_CALLER,
    STRING_COUNT_OF_ALL = STRING_CALLER + SITE_FRAMES_MOST - 1
};

/* The values of a sample, in order: what, and in what unit. */
static const unsigned sample_types[][2] = {
    {STRING_ALLOC_OBJECTS, STRING_COUNT},   {STRING_ALLOC_SPACE, STRING_BYTES},
    {STRING_INUSE_OBJECTS, STRING_COUNT},   {STRING_INUSE_SPACE, STRING_BYTES},
    {STRING_MOVED_OBJECTS, STRING_COUNT},   {STRING_MOVED_SPACE, STRING_BYTES},
    {STRING_LIFETIME, STRING_MILLISECONDS}, {STRING_KEPT_SPACE, STRING_BYTES},
};
#define SAMPLE_TYPE_COUNT (sizeof sample_types / sizeof sample_types[0])

/* A message within the profile: its length has to be known before it. */
typedef struct message {
    unsigned char bytes[16 * (PROFILE_DEPTH + 16)];
    size_t length;
} message_t;

typedef struct mapping {
    uintptr_t start;
    uintptr_t end;
    uint64_t shown_start; /* what the profile says instead of `start` */
} mapping_t;

/* An address whose location is written, and what the profile says instead of it. */
typedef struct place {
    uintptr_t address;
    uint64_t shown;
    uint32_t next; /* of the same bucket; 0: none */
} place_t;

#define PLACE_BUCKETS (PROFILE_SITES / 4)

/* What is mapped while a profile is written. The stack of the thread may be a short one. */
typedef struct workspace {
    mapping_t mappings[PROFILE_CODE_MOST];
    uint32_t place_buckets[PLACE_BUCKETS]; /* by hash: the number of the last place */
    place_t places[PROFILE_FRAMES + 1];    /* number 0 is none */
    unsigned char buffer[4096];
    message_t message;             /* the one that is made */
    uint64_t shown[PROFILE_DEPTH]; /* the addresses of a call stack */
} workspace_t;

typedef struct writer {
    pprof_sink_t sink;
    void *context;
    bool is_refused;
    size_t string_count;
    size_t mapping_count;
    size_t unmapped_count;
    uint32_t place_count;
    workspace_t *space;
    size_t length; /* of what waits in the buffer */
} writer_t;

/* ---- bytes ---- */

static void pprof_flush(writer_t *writer)
{
    if (!writer->is_refused && writer->length != 0)
        writer->is_refused = !writer->sink(writer->space->buffer, writer->length, writer->context);
    writer->length = 0;
}

static void pprof_put_byte(writer_t *writer, unsigned char byte)
{
    if (writer->length == sizeof writer->space->buffer)
        pprof_flush(writer);
    writer->space->buffer[writer->length++] = byte;
}

static void pprof_put_number(writer_t *writer, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        pprof_put_byte(writer, (unsigned char)(value | 128));
    pprof_put_byte(writer, (unsigned char)value);
}

static void pprof_put_bytes(writer_t *writer, const void *bytes, size_t length)
{
    for (size_t at = 0; at < length; at++)
        pprof_put_byte(writer, ((const unsigned char *)bytes)[at]);
}

/* A field is named by its number and the kind of what follows: 0 is a number, 2 a length. */
static void pprof_put_field(writer_t *writer, unsigned field, uint64_t value)
{
    pprof_put_number(writer, field << 3);
    pprof_put_number(writer, value);
}

static void pprof_put_counted(writer_t *writer, unsigned field, const void *bytes, size_t length)
{
    pprof_put_number(writer, field << 3 | 2);
    pprof_put_number(writer, length);
    pprof_put_bytes(writer, bytes, length);
}

/* An empty one; it is put before the next one is begun. */
static message_t *pprof_begin_message(writer_t *writer)
{
    writer->space->message.length = 0;
    return &writer->space->message;
}

static void pprof_put_message(writer_t *writer, unsigned field)
{
    const message_t *message = &writer->space->message;
    pprof_put_counted(writer, field, message->bytes, message->length);
}

static void message_add_number(message_t *message, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        message->bytes[message->length++] = (unsigned char)(value | 128);
    message->bytes[message->length++] = (unsigned char)value;
}

static void message_add_field(message_t *message, unsigned field, uint64_t value)
{
    message_add_number(message, field << 3);
    message_add_number(message, value);
}

/* A number that a sample has beside its values. */
static void message_add_label(message_t *message, unsigned what, uint64_t value, unsigned unit)
{
    message_add_number(message, 3 << 3 | 2);
    size_t start = ++message->length; /* behind its length, which is one byte */
    message_add_field(message, 1, what);
    message_add_field(message, 3, value);
    message_add_field(message, 4, unit);
    message->bytes[start - 1] = (unsigned char)(message->length - start);
}

/* The number that the string has from now on. */
static size_t pprof_put_string(writer_t *writer, const char *text)
{
    pprof_put_counted(writer, FIELD_STRING, text, text_length(text));
    return writer->string_count++;
}

/* ---- what stands once ---- */

static void pprof_put_type(writer_t *writer, unsigned field, unsigned what, unsigned unit)
{
    message_t *message = pprof_begin_message(writer);
    message_add_field(message, 1, what);
    message_add_field(message, 2, unit);
    pprof_put_message(writer, field);
}

static void pprof_put_comment(writer_t *writer, const char *what, uint64_t value)
{
    line_t line = {.length = 0};
    line_add(&line, what);
    line_add_number(&line, value);
    line.text[line.length] = '\0';
    pprof_put_field(writer, FIELD_COMMENT, pprof_put_string(writer, line.text));
}

static void pprof_put_head(writer_t *writer, const pprof_facts_t *facts)
{
    for (unsigned index = 0; index < STRING_COUNT_OF_ALL; index++)
        (void)pprof_put_string(writer, pprof_strings[index]);
    for (unsigned index = 0; index < SAMPLE_TYPE_COUNT; index++)
        pprof_put_type(writer, FIELD_SAMPLE_TYPE, sample_types[index][0], sample_types[index][1]);
    pprof_put_type(writer, FIELD_PERIOD_TYPE, STRING_SPACE, STRING_BYTES);
    pprof_put_field(writer, FIELD_PERIOD, facts->mean);
    pprof_put_field(writer, FIELD_TIME, facts->written_ns);
    pprof_put_field(writer, FIELD_DURATION, facts->duration_ns);
    pprof_put_field(writer, FIELD_DEFAULT_TYPE, STRING_INUSE_SPACE);
    pprof_put_comment(writer, "samples left out for lack of room: ", facts->left_out);
    if (facts->goes_on)
        pprof_put_comment(writer,
                          "the program went on after milliseconds: ", facts->duration_ns / 1000000);
}

/* ---- code ----
 *
 * A profile does not tell where the kernel has placed code (ASLR). The mapping with the number n is
 * shown as if it began n times MAPPING_DISTANCE behind its linked address. Code in no mapping
 * has the addresses 1, 2, 3 and so on. */

#define MAPPING_DISTANCE ((uint64_t)1 << 40) /* more than any file has of code */

static uint64_t shown_start(const writer_t *writer, const os_code_t *code)
{
    bool is_fixed = code->start == code->linked_start; /* anybody can read it in the file */
    return code->linked_start + (is_fixed ? 0 : writer->mapping_count * MAPPING_DISTANCE);
}

static size_t pprof_put_build_id(writer_t *writer, const os_code_t *code)
{
    line_t line = {.length = 0};
    line_add_bytes(&line, code->build_id, code->build_id_length);
    line.text[line.length] = '\0';
    return pprof_put_string(writer, line.text);
}

static void pprof_put_mapping(const os_code_t *code, void *context)
{
    writer_t *writer = context;
    if (writer->mapping_count == PROFILE_CODE_MOST)
        return;
    mapping_t *mapping = &writer->space->mappings[writer->mapping_count++];
    *mapping = (mapping_t){code->start, code->end, shown_start(writer, code)};
    message_t *message = pprof_begin_message(writer);
    message_add_field(message, 1, writer->mapping_count);
    message_add_field(message, 2, mapping->shown_start);
    message_add_field(message, 3, mapping->shown_start + (code->end - code->start));
    message_add_field(message, 4, code->file_offset);
    message_add_field(message, 5, pprof_put_string(writer, code->path));
    if (code->build_id != NULL)
        message_add_field(message, 6, pprof_put_build_id(writer, code));
    pprof_put_message(writer, FIELD_MAPPING);
}

/* The number of the mapping that the address lies in; 0: none. */
static size_t pprof_mapping_of(const writer_t *writer, uintptr_t address)
{
    for (size_t index = 0; index < writer->mapping_count; index++) {
        const mapping_t *mapping = &writer->space->mappings[index];
        if (address >= mapping->start && address < mapping->end)
            return index + 1;
    }
    return 0;
}

/* ---- call stacks ---- */

/* Writes the location of an address. Returns its number, which is the address that the profile
 * shows. */
static uint64_t pprof_put_new_location(writer_t *writer, uintptr_t address)
{
    size_t number = pprof_mapping_of(writer, address);
    const mapping_t *mapping = &writer->space->mappings[number - (number != 0)];
    uint64_t shown = number == 0 ? ++writer->unmapped_count
                                 : mapping->shown_start + (address - mapping->start);
    message_t *message = pprof_begin_message(writer);
    message_add_field(message, 1, shown);
    if (number != 0)
        message_add_field(message, 2, number);
    message_add_field(message, 3, shown);
    pprof_put_message(writer, FIELD_LOCATION);
    return shown;
}

/* The same, if that was not done yet. */
static uint64_t pprof_put_location(writer_t *writer, uintptr_t address)
{
    place_t *places = writer->space->places;
    uint64_t hash = (uint64_t)address * 0x9e3779b97f4a7c15u >> 32;
    uint32_t *bucket = &writer->space->place_buckets[hash % PLACE_BUCKETS];
    for (uint32_t number = *bucket; number != 0; number = places[number].next)
        if (places[number].address == address)
            return places[number].shown;
    uint64_t shown = pprof_put_new_location(writer, address);
    places[++writer->place_count] = (place_t){address, shown, *bucket};
    *bucket = writer->place_count;
    return shown;
}

static uint64_t pprof_blocks_in(const amount_t *amount)
{
    return (amount->count + WEIGHT_ONE / 2) / WEIGHT_ONE;
}

static void pprof_put_site(const site_t *site, const uintptr_t *frames, void *context)
{
    writer_t *writer = context;
    amount_t in_use = {site->allocated.count - site->freed.count,
                       site->allocated.bytes - site->freed.bytes};
    uint64_t *shown = writer->space->shown;
    for (unsigned index = 0; index < site->depth; index++)
        shown[index] = pprof_put_location(writer, frames[index]);
    message_t *message = pprof_begin_message(writer);
    for (unsigned index = 0; index < site->depth; index++)
        message_add_field(message, 1, shown[index]);
    message_add_field(message, 2, pprof_blocks_in(&site->allocated));
    message_add_field(message, 2, site->allocated.bytes);
    message_add_field(message, 2, pprof_blocks_in(&in_use));
    message_add_field(message, 2, in_use.bytes);
    message_add_field(message, 2, pprof_blocks_in(&site->freed_elsewhere));
    message_add_field(message, 2, site->freed_elsewhere.bytes);
    message_add_field(message, 2, site->lifetime_ms);
    message_add_field(message, 2, site->allocated.bytes - site->ended);
    message_add_label(message, STRING_BLOCK_SIZE, site->block_size, STRING_BYTES);
    if (site->is_unnamed)
        message_add_label(message, STRING_UNNAMED, 1, STRING_NONE);
    for (unsigned index = 0; index < SITE_FRAMES_MOST - 1; index++)
        if (site->slots[index] != 0)
            message_add_label(message, STRING_CALLER + index, site->slots[index], STRING_BYTES);
    pprof_put_message(writer, FIELD_SAMPLE);
}

/* ---- the workspace: one waits, all zero; who writes meanwhile maps another ---- */

static workspace_t *pprof_waiting; /* NULL: none waits; atomic */

static size_t workspace_size(void)
{
    return align_up(sizeof(workspace_t), os_page_size());
}

static void workspace_give_back(workspace_t *space)
{
    workspace_t *none = NULL;
    bool is_clean = os_purge_own(space, workspace_size());
    /* release: pairs with the acquire in pprof_write */
    if (!is_clean || !__atomic_compare_exchange_n(&pprof_waiting, &none, space, false,
                                                  __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        (void)os_release(space, workspace_size());
}

void pprof_prepare(void)
{
    os_code_prepare();
    workspace_t *space = os_map(workspace_size());
    if (space != NULL)
        workspace_give_back(space);
}

pprof_result_t pprof_write(const pprof_facts_t *facts, pprof_sink_t sink, void *context)
{
    writer_t writer = {.sink = sink,
                       .context = context,
                       .space = __atomic_exchange_n(&pprof_waiting, NULL, __ATOMIC_ACQUIRE)};
    if (writer.space == NULL)
        writer.space = os_map(workspace_size());
    if (writer.space == NULL)
        return PPROF_NO_MEMORY;
    pprof_put_head(&writer, facts);
    /* Before the samples: who frees a sampled block may hold the loader's lock. */
    os_visit_code(pprof_put_mapping, &writer);
    samples_visit(pprof_put_site, &writer);
    pprof_flush(&writer);
    workspace_give_back(writer.space);
    return writer.is_refused ? PPROF_REFUSED : PPROF_DONE;
}
