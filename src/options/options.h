/* The settings of the process: read once at initialisation, plain numbers afterwards. */
#ifndef HAKMEM_OPTIONS_OPTIONS_H
#define HAKMEM_OPTIONS_OPTIONS_H

#include "base/types.h"

struct policy;

typedef struct options {
#define OPTION(name, ...) int64_t name;
#include "options/option_table.h"
#undef OPTION
} options_t;

/* Bytes that the value of an option may have that is a text, with the NUL behind it. */
#define OPTION_TEXT_ROOM 256

/* Options whose value is a text; "" where they are unset. */
typedef struct option_texts {
#define TEXT(name, sentence) char name[OPTION_TEXT_ROOM];
#include "options/text_table.h"
#undef TEXT
} option_texts_t;

/* Values of free_policy. */
enum { FREE_KEEP, FREE_BATCH, FREE_ADAPTIVE };

/* Values of leak_report. */
enum { LEAKS_UNTOLD, LEAKS_BY_SIZE, LEAKS_BY_STACK };

/* Written by options_load before a second thread can be in here; read-only afterwards. */
extern HIDDEN options_t options;
extern HIDDEN option_texts_t option_texts;

/* Called with one complete sentence about something in the environment that was not understood and
 * is ignored, or that contradicts something else there. */
typedef void (*option_complaint_t)(const char *text);

/* Sets `options` from the preset that HAKMEM_MODE names and the variables HAKMEM_<NAME> in
 * `environment` (NAME=value texts ending in NULL; NULL: presets only). The options of `policy`
 * (NULL: there is none) override the preset, but for those that the mode sets otherwise than the
 * default mode does; the variables override both. */
void options_load(char *const *environment, const struct policy *policy,
                  option_complaint_t complain);

/* The text of HAKMEM_POLICY, before options_load; NULL: there is none. With plain_syscalls it is
 * "none" then. */
const char *options_policy_path(char *const *environment);

/* Can the settings only be kept if every call takes the slow path? Then no thread gets a cache. */
bool options_want_every_call(void);

/* Does the environment have anything to say? */
bool options_are_named(char *const *environment);

/* Puts the row of the table for the option called `name` into *row. False: there is none. */
bool option_find_row(const char *name, unsigned *row);

/* Puts the value that `text` means for the option of that row into *value. False: the option does
 * not take such a text. */
bool option_parse(unsigned row, const char *text, int64_t *value);

/* Puts the value of the option called `name` into *value. False: there is no such option. */
bool option_find(const char *name, int64_t *value);

#endif
