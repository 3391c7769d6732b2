/* Files that options ask for. Each is opened once, at the start of the process, and written later
 * by whichever thread of the program has something to say, as long as its number still stands for
 * it: a program may close all numbers and open files of its own. */
#ifndef HAKMEM_REPORT_OUTPUT_FILE_H
#define HAKMEM_REPORT_OUTPUT_FILE_H

#include "os/os.h"
#include "options/options.h"

/* Room for the longest name: each %p may become a number of seven digits, the most that Linux
 * has. */
typedef char output_path_t[OPTION_TEXT_ROOM * 4];

/* One thread at a time uses it. */
typedef struct output_file {
    output_path_t path;
    const char *option;
    const char *what; /* "profile" */
    os_file_t opened; /* what the number stood for */
    uint64_t process; /* that has opened it, and may write */
    uint64_t written; /* bytes, since it was begun */
    int number;       /* 0: there is none */
    bool has_process; /* the number of the process is in the name: children have their own */
    bool has_failed;
} output_file_t;

/* Opens it, at initialisation. `option`: its name, in which %p is the number of the process. False:
 * it cannot be, which was said. */
bool output_file_open(output_file_t *file, const char *option, const char *what);

/* Text that is written from here on takes the place of what is in the file. False: it may not be
 * written, for it is another process's, or lost, which was said. */
bool output_file_begin(output_file_t *file);

/* False: the part is not there, or not all of it, which was said, unless the file is another
 * process's. */
bool output_file_append(output_file_t *file, const void *bytes, size_t length);

/* Takes away what is left of an older, longer text. */
void output_file_end(output_file_t *file);

/* Says, once, that nothing could be written. */
void output_file_complain(output_file_t *file, int error);

/* The child of a fork leaves the file to its parent. `wants_own`: it gets one of its own if the
 * name says so, means the same place still, and it has the rights of the start. */
void output_file_at_fork_in_child(output_file_t *file, bool wants_own);

#endif
