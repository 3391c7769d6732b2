/* Files that options ask for: their names, and those that grow. */
#ifndef HAKMEM_API_OUTPUT_FILE_H
#define HAKMEM_API_OUTPUT_FILE_H

#include "policy/options.h"

/* Room for the longest: each %p may become a number of seven digits, the most that Linux has. */
typedef struct output_path {
    char text[OPTION_TEXT_ROOM * 4];
    bool has_process; /* the number of the process stands in it: children have files of their own */
} output_path_t;

/* The option's text, in which %p is the number of the process. */
void output_path_make(output_path_t *path, const char *option);

/* Says that nothing could be written there. `what`: "profile". */
void output_path_complain(const output_path_t *path, const char *what, int error);

/* A file that grows. It is opened for each part: a descriptor that stays open is one that the
 * program may close, and give to a file of its own. One thread at a time. */
typedef struct output_file {
    output_path_t path;
    uint64_t written; /* bytes: as long must the file be, if nobody else writes it */
} output_file_t;

/* Makes it, empty. `option` and `what`: as above. False: it cannot be, which was said. */
bool output_file_create(output_file_t *file, const char *option, const char *what);

/* False: the part is not there, or not all of it, which was said. */
bool output_file_append(output_file_t *file, const void *bytes, size_t length, const char *what);

#endif
