/* The policy of the process. See policy_load.h. */
#include "api/policy_load.h"

#include "base/format.h"
#include "base/text.h"
#include "harden/fatal.h"
#include "os/os.h"
#include "policy/options.h"

typedef struct path {
    char text[1024];
    size_t length;
} path_t;

static policy_t policy;
static bool is_in_force;
static const char *named; /* what HAKMEM_POLICY says */
static policy_problem_t problem;

static void add(path_t *path, const char *text)
{
    while (*text != '\0' && path->length < sizeof path->text - 1)
        path->text[path->length++] = *text++;
    path->text[path->length] = '\0';
}

static void program_build_id(char *text)
{
    size_t length;
    line_t line = {.length = 0};
    const unsigned char *id = os_program_build_id(&length);
    for (size_t at = 0; at < length && line.length + 2 < BUILD_ID_TEXT; at++) {
        if (id[at] < 16)
            line_add(&line, "0");
        line_add_based(&line, id[at], 16);
    }
    for (size_t at = 0; at < line.length; at++)
        text[at] = line.text[at];
    text[line.length] = '\0';
}

/* The length of the text; 0: there is none. */
static size_t read_text(char *text, const char *build_id)
{
    path_t path = {.length = 0};
    add(&path, named);
    bool is_folder = os_is_folder(path.text);
    if (is_folder) {
        add(&path, "/");
        add(&path, build_id);
        add(&path, ".policy");
    }
    size_t length = os_read_file(path.text, text, POLICY_FILE_MOST);
    if (length == 0 && !is_folder)
        problem.text = "it cannot be read, or is empty";
    if (length == POLICY_FILE_MOST - 1)
        problem.text = "it is too long";
    return problem.text != NULL ? 0 : length;
}

const policy_t *policy_load(char *const *environment)
{
    char build_id[BUILD_ID_TEXT];
    named = options_policy_path(environment);
    char *text = named == NULL ? NULL : os_map(POLICY_FILE_MOST);
    if (text == NULL)
        return NULL;
    program_build_id(build_id);
    size_t length = read_text(text, build_id);
    if (length != 0 && policy_parse(text, length, &policy, &problem)) {
        problem.text = NULL;
        is_in_force = policy.program[0] == '\0' || text_is(policy.program, build_id);
    }
    (void)os_release(text, POLICY_FILE_MOST);
    return policy_in_force();
}

void policy_complain(void)
{
    line_t line = {.length = 0};
    if (problem.text == NULL)
        return;
    line_add(&line, "HAKMEM_POLICY=");
    line_add(&line, named);
    line_add(&line, " is ignored: ");
    if (problem.line != 0) {
        line_add(&line, "line ");
        line_add_number(&line, problem.line);
        line_add(&line, ": ");
    }
    line_add(&line, problem.text);
    line.text[line.length] = '\0';
    complain(line.text);
}

const policy_t *policy_in_force(void)
{
    return is_in_force ? &policy : NULL;
}
