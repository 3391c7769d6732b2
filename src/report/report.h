/* One count over all layers, from which every report is made. While other threads run it is a guess
 * whose parts need not agree; include/hakmem.h says what adds up otherwise. */
#ifndef HAKMEM_REPORT_REPORT_H
#define HAKMEM_REPORT_REPORT_H

#include "base/types.h"
#include "hakmem.h"

/* Blocks that the program has, and what they hold. */
typedef struct used {
    size_t count;
    size_t bytes;
} used_t;

typedef struct report {
    hakmem_statistics_t bytes;
    used_t used_large;   /* blocks above 32 KiB */
    used_t used_huge;    /* blocks with a mapping of their own */
    size_t cached_count; /* free small blocks in thread caches and depots */
    size_t free_in_slabs_count;
    size_t cached_large_count;
    size_t free_runs; /* heaps with free pages: these are joined, so all of one count as one */
} report_t;

/* Small blocks of one size. */
typedef struct size_report {
    unsigned class;    /* the one that stands for it; groups have others (size_class_as_counted) */
    size_t used_count; /* that the program has */
    size_t cached_count;
    size_t free_count; /* in slabs */
    size_t slab_count; /* of malloc's heap */
} size_report_t;

/* Called with each size that has a class, by the number of the class. No lock is held. */
typedef void (*size_visitor_t)(const size_report_t *size, void *context);

/* A figure of hakmem_statistics_t that says where memory is. */
typedef struct report_row {
    const char *field; /* its name in include/hakmem.h */
    const char *text;  /* indented: a part of the row above */
    size_t offset;
} report_row_t;

extern HIDDEN const report_row_t report_rows[];
extern HIDDEN const size_t report_row_count;

static inline size_t report_value(const report_row_t *row, const hakmem_statistics_t *bytes)
{
    return *(const size_t *)(const void *)((const char *)bytes + row->offset);
}

/* Writes a line with a headline or with a figure to the descriptor. These functions allocate
 * nothing. */
void report_write_head(int file, const char *head);
void report_write_figure(int file, const char *name, size_t width, size_t value);

/* Writes all rows of the report as a table. */
void report_write(int file, const report_t *report);

/* Counts. The process has been initialised. `visit` is called on the way; NULL: nobody wants to
 * know each size. No table of all sizes is on the thread's stack, which may be a short one. */
report_t report_make(size_visitor_t visit, void *context);

/* As hakmem_version says. */
extern HIDDEN const char report_version[];

#endif
