/* The policy of the process. See policy_load.h. */
#include "site/policy_load.h"

#include "base/bits.h"
#include "base/format.h"
#include "base/text.h"
#include "os/fatal.h"
#include "os/os.h"
#include "options/options.h"

/* Where policies for all users of the machine are: build ID of the program and .policy. */
#define POLICY_FOLDER "/etc/hakmem/policies"
/* The note in a program that has a policy; hakmem.h writes it. */
#define POLICY_NOTE_OWNER "hakmem"
#define POLICY_NOTE_TYPE 1

typedef struct path {
    char text[1024];
    size_t length;
} path_t;

/* Written while the process is initialised, by one thread. */
static struct {
    policy_t policy;
    bool is_in_force;
    const char *origin; /* of the policy, as a complaint names it */
    path_t source;      /* the file or folder; "": the program */
    path_t file;        /* in a folder; not on the stack of the first caller, which may be short */
    policy_problem_t problem;
} policy_state SPARSE;

static void path_begin(path_t *path)
{
    path->length = 0;
    path->text[0] = '\0';
}

static void path_add(path_t *path, const char *text)
{
    while (*text != '\0' && path->length < sizeof path->text - 1)
        path->text[path->length++] = *text++;
    path->text[path->length] = '\0';
}

/* The build ID of the program as text; "" if it has none. */
static line_t policy_program(void)
{
    size_t length;
    line_t line = {.length = 0};
    const char *id = os_program_note("GNU", OS_NOTE_BUILD_ID, &length);
    line_add_bytes(&line, (const unsigned char *)id, smaller_of(length, BUILD_ID_BYTES));
    line.text[line.length] = '\0';
    return line;
}

static void read_policy(const char *text, size_t length)
{
    if (!policy_parse(text, length, &policy_state.policy, &policy_state.problem))
        return;
    policy_state.problem.text = NULL;
    policy_state.is_in_force = policy_state.policy.program[0] == '\0' ||
                               text_is(policy_state.policy.program, policy_program().text);
}

/* False: there is no such file, or it is empty. */
static bool read_policy_file(const char *path)
{
    char *text = os_map(POLICY_FILE_MOST);
    size_t length = text == NULL ? 0 : os_read_file(path, text, POLICY_FILE_MOST);
    if (length == POLICY_FILE_MOST - 1)
        policy_state.problem.text = "it is too long";
    else if (length != 0)
        read_policy(text, length);
    if (text != NULL)
        (void)os_release(text, POLICY_FILE_MOST);
    return length != 0;
}

/* The file for this program; "" if it has no build ID. */
static const char *path_in(const char *folder)
{
    line_t build_id = policy_program();
    path_t *path = &policy_state.file;
    path_begin(path);
    if (build_id.length == 0)
        return path->text;
    path_add(path, folder);
    path_add(path, "/");
    path_add(path, build_id.text);
    path_add(path, ".policy");
    return path->text;
}

static void load_named(const char *named)
{
    policy_state.origin = "HAKMEM_POLICY";
    path_add(&policy_state.source, named);
    if (os_is_folder(named))
        (void)read_policy_file(path_in(named));
    else if (!read_policy_file(named))
        policy_state.problem.text = "it cannot be read, is empty, or is no regular file";
}

/* The policy in the program's file; NULL: it has none. */
static const char *note_of_program(size_t *length)
{
    const char *text = os_program_note(POLICY_NOTE_OWNER, POLICY_NOTE_TYPE, length);
    while (text != NULL && *length != 0 && text[*length - 1] == '\0')
        --*length;
    return text;
}

static bool is_file(const char *path)
{
    char byte[2];
    return path[0] != '\0' && os_read_file(path, byte, sizeof byte) != 0;
}

static void load_shipped(void)
{
    size_t length;
    const char *note = note_of_program(&length);
    if (note != NULL) {
        policy_state.origin = "the policy in the program";
        read_policy(note, length);
        if (policy_state.problem.text == NULL && !policy_state.is_in_force)
            policy_state.problem = (policy_problem_t){.text = "it is for another build"};
        return;
    }
    policy_state.origin = "the policy of the machine";
    path_add(&policy_state.source, path_in(POLICY_FOLDER));
    if (is_file(policy_state.source.text))
        (void)read_policy_file(policy_state.source.text);
}

const policy_t *policy_load(char *const *environment)
{
    const char *named = options_policy_path(environment);
    policy_state.is_in_force = false;
    policy_state.problem = (policy_problem_t){.line = 0};
    path_begin(&policy_state.source);
    if (environment == NULL)
        return NULL;
    if (named == NULL)
        load_shipped();
    else if (!text_is(named, "none"))
        load_named(named);
    return policy_in_force();
}

bool policy_is_shipped(char *const *environment)
{
    size_t length;
    return environment != NULL &&
           (note_of_program(&length) != NULL || is_file(path_in(POLICY_FOLDER)));
}

/* The path stands last: it may be too long for the line. */
void policy_complain(void)
{
    line_t line = {.length = 0};
    if (policy_state.problem.text == NULL)
        return;
    line_add(&line, policy_state.origin);
    line_add(&line, " is ignored: ");
    if (policy_state.problem.line != 0) {
        line_add(&line, "line ");
        line_add_number(&line, policy_state.problem.line);
        line_add(&line, ": ");
    }
    line_add(&line, policy_state.problem.text);
    line_add_in_brackets(&line, policy_state.source.text);
    line.text[line.length] = '\0';
    complain(line.text);
}

const policy_t *policy_in_force(void)
{
    return policy_state.is_in_force ? &policy_state.policy : NULL;
}

const char *policy_state_name(void)
{
    if (policy_state.problem.text != NULL)
        return "refused";
    if (policy_state.is_in_force)
        return "in_force";
    return policy_state.policy.program[0] != '\0' ? "for_another_build" : "none";
}
