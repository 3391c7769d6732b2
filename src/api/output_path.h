/* The name of a file that an option asks for. */
#ifndef HAKMEM_API_OUTPUT_PATH_H
#define HAKMEM_API_OUTPUT_PATH_H

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

#endif
