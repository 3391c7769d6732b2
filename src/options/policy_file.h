/* A policy: what was learnt of a program, or decided for it, as a text that people read, compare
 * and ship. One statement to a line, words separated by one space:
 *
 *   hakmem policy 1
 *   # a comment
 *   program 3f2a9c…             the build ID of the program that it is for; without: for any
 *   option price lean           as HAKMEM_PRICE=lean; the environment overrides it
 *   site 3f2a9c… 1b3c 48 group 2   blocks of 33 to 48 bytes that the code there asks for stand
 *                                  with group 2
 *   site 3f2a9c… 1b3c 64 group 2 caller 24 3f2a9c… 2a40
 *                                  the same, only where that code was called from this place
 *
 * A site is the return address of a call of malloc: the build ID of the file with the code, and the
 * place in that file, as the profile tells it (observe/pprof.h). Where one function allocates for
 * many, its callers tell more: one or two of them may follow, the next one first. The number is
 * that of the bytes from the stack pointer at the call of malloc up to this return address
 * (os_call_stack). A file with one wrong line is refused as a whole. */
#ifndef HAKMEM_OPTIONS_POLICY_FILE_H
#define HAKMEM_OPTIONS_POLICY_FILE_H

#include "base/types.h"
#include "options/tuning.h"

/* Bytes of a build ID that count: SHA-1 has as many. Of longer ones they are the first. */
#define BUILD_ID_BYTES ((size_t)20)
#define BUILD_ID_TEXT (2 * BUILD_ID_BYTES + 1)

/* A return address. */
typedef struct site_frame {
    char build_id[BUILD_ID_TEXT];
    uint64_t file_offset;
    unsigned slot; /* bytes above the stack pointer; 0: that of the call of malloc */
} site_frame_t;

typedef struct site_rule {
    site_frame_t frames[SITE_FRAMES_MOST]; /* innermost first */
    unsigned depth;                        /* so many of them */
    unsigned size;                         /* of a block, a size class */
    unsigned group; /* from 1 to SITE_GROUPS */
} site_rule_t;

typedef struct policy_option {
    unsigned row; /* of the table of options */
    int64_t value;
} policy_option_t;

typedef struct policy {
    char program[BUILD_ID_TEXT]; /* "": any */
    unsigned option_count;
    unsigned rule_count;
    policy_option_t options[POLICY_OPTIONS_MOST];
    site_rule_t rules[SITE_RULES_MOST];
} policy_t;

typedef struct policy_problem {
    unsigned line; /* from 1 on */
    const char *text;
} policy_problem_t;

/* Reads a policy of `length` bytes. False: *problem says what is wrong, *policy is of no use. */
bool policy_parse(const char *text, size_t length, policy_t *policy, policy_problem_t *problem);

#endif
