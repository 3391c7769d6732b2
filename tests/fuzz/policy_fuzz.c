/* A fuzzer of policies (src/options/policy_file.c), for libFuzzer and tests/fuzz/replay.c.

   The input is a text behind the first line of a policy, in which small bytes stand for words of
   the language; where its first byte is 0, it is the text as it is.

   Checked: no byte behind the text is read, a refusal has a printable reason and one of the text's
   lines, and all that is accepted lies within its bounds. */
#include "check.h"
#include "options/options.h"
#include "options/policy_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const words[] = {
    "\n",      "program ",       "option ",        "site ",          " group ",
    "0123456789abcdef0123456789abcdef01234567",    "price ",         "purge_delay_ms ",
    "lean",    "off",            "# ",             " 48",            " 1b3c",
#define OPTION(name, ...) #name " ",
#include "options/option_table.h"
#undef OPTION
    "1",       " caller ",       " 24 ",
};

enum { WORD_COUNT = sizeof words / sizeof words[0], ROOM = 65536, LITERAL = 128 };

static char text[ROOM];

static size_t put(size_t length, const char *what, size_t count)
{
    if (count > ROOM - length) count = ROOM - length;
    memcpy(text + length, what, count);
    return length + count;
}

/* Returns the length of the text. */
static size_t build(const uint8_t *data, size_t size)
{
    static const char head[] = "hakmem policy 1\n";
    if (size != 0 && data[0] == 0) return put(0, (const char *)data + 1, size - 1);
    size_t length = put(0, head, sizeof head - 1);
    for (size_t at = 0; at < size; at++) {
        const char *word = words[data[at] % WORD_COUNT];
        const char letter = (char)(data[at] - LITERAL);
        length = data[at] < LITERAL ? put(length, word, strlen(word)) : put(length, &letter, 1);
    }
    return put(length, "\n", 1);
}

static void check_is_within_bounds(const policy_t *policy)
{
    check(policy->option_count <= POLICY_OPTIONS_MOST && policy->rule_count <= SITE_RULES_MOST);
    check(strlen(policy->program) < BUILD_ID_TEXT);
    for (unsigned index = 0; index < policy->rule_count; index++) {
        const site_rule_t *rule = &policy->rules[index];
        check(rule->group >= 1 && rule->group <= SITE_GROUPS);
        check(rule->size >= 1 && rule->size <= SITE_SIZE_MOST);
        check(rule->depth >= 1 && rule->depth <= SITE_FRAMES_MOST);
        for (unsigned frame = 0; frame < rule->depth; frame++) {
            check(strlen(rule->frames[frame].build_id) >= 8);
            check(rule->frames[frame].slot <= SITE_SLOT_MOST);
            check((rule->frames[frame].slot == 0) == (frame == 0));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static policy_t policy;
    policy_problem_t problem;
    const size_t length = build(data, size);
    char *exact = malloc(length + 1); /* a sanitizer sees what is read behind it */
    check(exact != NULL);
    memcpy(exact, text, length);
    exact = realloc(exact, length != 0 ? length : 1);
    check(exact != NULL);
    if (policy_parse(exact, length, &policy, &problem)) {
        check_is_within_bounds(&policy);
    } else {
        unsigned lines = 1;
        for (size_t at = 0; at < length; at++) lines += exact[at] == '\n';
        check(problem.line >= 1 && problem.line <= lines);
        check(problem.text != NULL && *problem.text != '\0');
        for (const char *at = problem.text; *at != '\0'; at++) check(*at >= ' ' && *at <= '~');
    }
    free(exact);
    return 0;
}
