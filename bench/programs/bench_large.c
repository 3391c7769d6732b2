/*
 * bench_large WORKLOAD CYCLES [--slots --mebibytes --pause]
 *
 * Large blocks as users of other allocators have reported them. One thread.
 *
 * steps: SLOTS arrays grow in turn by small steps, each by realloc and to a length of its own of 1
 * KiB to 4 MiB; a full one is freed and begins anew. Each step is written. A cycle is 1,000 steps.
 * sparse: SLOTS zeroed tables of up to MEBIBYTES are replaced in turn, of which one page in a
 * hundred is written; each fifth time a block of the same length is allocated, written and freed.
 * temporaries: a block of MEBIBYTES is allocated, written and freed, each a little longer than the
 * one before; PAUSE between two.
 * columns: SLOTS blocks of 64 KiB to 8 MiB are replaced at random and written, while one more block
 * doubles from 64 KiB to 8 MiB, a step each cycle, and begins anew.
 * thinned: small blocks of MEBIBYTES in all are allocated and written, then nine of ten are freed
 * at random; again and again, the last tenth lives on.
 */
#include "bench.h"

#include <stdlib.h>
#include <unistd.h>

enum { WORKLOAD, CYCLES, SLOTS, MEBIBYTES, PAUSE, PARAMETER_COUNT };
enum { STEPS, SPARSE, TEMPORARIES, COLUMNS, THINNED };
enum { STEPS_A_CYCLE = 1000, SPARSE_PAGES = 100, DENSE_CYCLES = 5, LONGER = 65536 };
enum { COLUMN_LEAST = 65536, COLUMN_DOUBLINGS = 7, STORED_LEAST = 100, STORED_MOST = 2000 };

static parameter_t parameters[PARAMETER_COUNT] = {
    [WORKLOAD] = {"workload", KIND_CHOICE, POSITIONAL, STEPS, 0, 0,
                  "steps|sparse|temporaries|columns|thinned", false},
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 500, 1, LIMIT_CYCLES, NULL, false},
    [SLOTS] = {"slots", KIND_COUNT, NAMED_ONLY, 300, 1, 100000, NULL, false},
    [MEBIBYTES] = {"mebibytes", KIND_COUNT, NAMED_ONLY, 40, 2, 1024, NULL, false},
    [PAUSE] = {"pause", KIND_SECONDS, NAMED_ONLY, 0, 0, LIMIT_SECONDS_NS, NULL, false},
};

static bench_t bench = {"bench_large", "one step, table or block", parameters, PARAMETER_COUNT,
                        false};

typedef struct array {
    unsigned char *data;
    uint64_t length;
    uint64_t step;
    uint64_t last; /* length at which it is freed; 0: it has not begun */
} array_t;

static void write_pages(unsigned char *block, uint64_t from, uint64_t size, uint64_t distance)
{
    for (uint64_t offset = from; offset < size; offset += distance)
        block[offset] = 1;
}

static void step(array_t *array, bench_random_t *random)
{
    if (array->last == 0) {
        uint64_t bits = bench_random_next(random);
        array->last = (1024 + bench_scale(bits, 1024)) << bench_scale(bits >> 32, 12);
        array->step = 40 + (bits >> 16) % 360 + array->last / 300;
    }
    array->data = realloc(array->data, array->length + array->step);
    if (array->data == NULL)
        bench_fail("realloc returned NULL");
    if (array->length != 0 && array->data[array->length - 1] != 7)
        bench_fail("realloc lost a byte");
    memset(array->data + array->length, 7, array->step);
    array->length += array->step;
    if (array->length < array->last)
        return;
    free(array->data);
    *array = (array_t){NULL, 0, 0, 0};
}

static uint64_t run_steps(bench_random_t *random)
{
    uint64_t count = parameters[CYCLES].value * STEPS_A_CYCLE;
    array_t *arrays = bench_map(parameters[SLOTS].value, sizeof *arrays);
    for (uint64_t index = 0; index < count; index++)
        step(&arrays[bench_scale(bench_random_next(random), parameters[SLOTS].value)], random);
    return count;
}

static uint64_t run_sparse(bench_random_t *random)
{
    unsigned char **tables = bench_map(parameters[SLOTS].value, sizeof *tables);
    const uint64_t distance = SPARSE_PAGES * BENCH_PAGE_SIZE;
    for (uint64_t cycle = 0; cycle < parameters[CYCLES].value; cycle++) {
        uint64_t bits = bench_random_next(random);
        uint64_t size =
            (2 + bench_scale(bits, parameters[MEBIBYTES].value - 1)) * BYTES_PER_MEBIBYTE;
        unsigned char **slot = &tables[cycle % parameters[SLOTS].value];
        uint64_t first = bench_scale(bits >> 32, distance);
        free(*slot);
        *slot = calloc(1, size);
        if (*slot == NULL)
            bench_fail("calloc returned NULL");
        for (uint64_t offset = first; offset < size; offset += distance)
            if ((*slot)[offset] != 0)
                bench_fail("calloc returned a block that is not zero");
        write_pages(*slot, first, size, distance);
        if (cycle % DENSE_CYCLES != 0)
            continue;
        unsigned char *dense = malloc(size);
        if (dense == NULL)
            bench_fail("malloc returned NULL");
        write_pages(dense, 0, size, BENCH_PAGE_SIZE);
        free(dense);
    }
    return parameters[CYCLES].value;
}

static uint64_t run_temporaries(void)
{
    for (uint64_t cycle = 0; cycle < parameters[CYCLES].value; cycle++) {
        uint64_t size = parameters[MEBIBYTES].value * BYTES_PER_MEBIBYTE + cycle * LONGER;
        unsigned char *block = malloc(size);
        if (block == NULL)
            bench_fail("malloc returned NULL");
        write_pages(block, 0, size, BENCH_PAGE_SIZE);
        bench_use(block);
        free(block);
        if (parameters[PAUSE].value != 0)
            usleep((unsigned)(parameters[PAUSE].value / 1000));
    }
    return parameters[CYCLES].value;
}

static uint64_t run_columns(bench_random_t *random)
{
    unsigned char **columns = bench_map(parameters[SLOTS].value, sizeof *columns);
    unsigned char *growing = NULL;
    uint64_t length = 0;
    for (uint64_t cycle = 0; cycle < parameters[CYCLES].value; cycle++) {
        uint64_t bits = bench_random_next(random);
        uint64_t size = (COLUMN_LEAST + bench_scale(bits, COLUMN_LEAST))
                        << bench_scale(bits >> 32, COLUMN_DOUBLINGS);
        unsigned char **slot =
            &columns[bench_scale(bench_random_next(random), parameters[SLOTS].value)];
        free(*slot);
        *slot = malloc(size);
        if (*slot == NULL)
            bench_fail("malloc returned NULL");
        write_pages(*slot, 0, size, BENCH_PAGE_SIZE);
        if (length == COLUMN_LEAST << COLUMN_DOUBLINGS) {
            free(growing);
            growing = NULL;
            length = 0;
        }
        uint64_t longer = length == 0 ? COLUMN_LEAST : 2 * length;
        growing = realloc(growing, longer);
        if (growing == NULL)
            bench_fail("realloc returned NULL");
        write_pages(growing, length, longer, BENCH_PAGE_SIZE);
        length = longer;
    }
    return parameters[CYCLES].value;
}

static uint64_t run_thinned(bench_random_t *random)
{
    uint64_t most = parameters[MEBIBYTES].value * BYTES_PER_MEBIBYTE;
    uint64_t slot_count = most / ((STORED_LEAST + STORED_MOST) / 2);
    unsigned char **blocks = bench_map(slot_count, sizeof *blocks);
    uint64_t operations = 0;
    for (uint64_t cycle = 0; cycle < parameters[CYCLES].value; cycle++) {
        for (uint64_t index = 0; index < slot_count; index++) {
            if (blocks[index] != NULL)
                continue;
            uint64_t size =
                STORED_LEAST + bench_scale(bench_random_next(random), STORED_MOST - STORED_LEAST);
            blocks[index] = malloc(size);
            if (blocks[index] == NULL)
                bench_fail("malloc returned NULL");
            memset(blocks[index], 1, size);
            operations++;
        }
        for (uint64_t index = 0; index < slot_count; index++) {
            if (bench_scale(bench_random_next(random), 10) == 0)
                continue;
            free(blocks[index]);
            blocks[index] = NULL;
        }
    }
    return operations;
}

int main(int argument_count, char **arguments)
{
    bench_random_t random = bench_random_seed(42, 0);
    bench_open(&bench, argument_count, arguments);
    bench_begin(&bench);
    uint64_t start_ns = bench_now_ns();
    uint64_t operations = parameters[WORKLOAD].value == STEPS         ? run_steps(&random)
                          : parameters[WORKLOAD].value == SPARSE      ? run_sparse(&random)
                          : parameters[WORKLOAD].value == TEMPORARIES ? run_temporaries()
                          : parameters[WORKLOAD].value == COLUMNS     ? run_columns(&random)
                                                                      : run_thinned(&random);
    bench_close(&bench, operations, bench_now_ns() - start_ns);
    return 0;
}
