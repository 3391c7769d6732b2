/* The policy of the process. See policy_load.h. */
#include "api/policy_load.h"

#include "base/bits.h"
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

/* That of the program, as text; "" if it has none. */
static line_t program_build_id(void)
{
    size_t length;
    line_t line = {.length = 0};
    const unsigned char *id = os_program_build_id(&length);
    line_add_bytes(&line, id, smaller_of(length, BUILD_ID_BYTES));
    line.text[line.length] = '\0';
    return line;
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
    named = options_policy_path(environment);
    char *text = named == NULL ? NULL : os_map(POLICY_FILE_MOST);
    if (text == NULL)
        return NULL;
    line_t build_id = program_build_id();
    size_t length = read_text(text, build_id.text);
    if (length != 0 && policy_parse(text, length, &policy, &problem)) {
        problem.text = NULL;
        is_in_force = policy.program[0] == '\0' || text_is(policy.program, build_id.text);
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
