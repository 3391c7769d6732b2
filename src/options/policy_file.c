/* The text of a policy. See policy_file.h. No allocation, no locale. */
#include "options/policy_file.h"

#include "base/text.h"
#include "options/options.h"

#define WORDS_OF_SITE 6
#define WORDS_OF_CALLER 4
#define WORDS_MOST (WORDS_OF_SITE + (SITE_FRAMES_MOST - 1) * WORDS_OF_CALLER)
#define WORD_ROOM 64

typedef struct words {
    unsigned count;
    char at[WORDS_MOST][WORD_ROOM];
} words_t;

/* The words of a line, or what is wrong with it. */
static const char *policy_split_line(const char *line, size_t length, words_t *words)
{
    size_t in_word = 0;
    for (size_t at = 0; at <= length; at++) {
        char byte = at < length ? line[at] : ' ';
        if (byte == ' ') {
            if (in_word == 0)
                return "words are separated by one space";
            words->at[words->count++][in_word] = '\0';
            in_word = 0;
        } else if (byte < ' ' || byte > '~') {
            return "a character that is not printable";
        } else if (words->count == WORDS_MOST) {
            return "more words than a statement has";
        } else if (in_word == WORD_ROOM - 1) {
            return "a word that is too long";
        } else {
            words->at[words->count][in_word++] = byte;
        }
    }
    return NULL;
}

static bool policy_parse_hex(const char *text, uint64_t *value)
{
    *value = 0;
    size_t length = text_length(text);
    for (size_t at = 0; at < length; at++) {
        char digit = text[at];
        bool is_letter = digit >= 'a' && digit <= 'f';
        if (!is_letter && (digit < '0' || digit > '9'))
            return false;
        *value = *value << 4 | (uint64_t)(is_letter ? digit - 'a' + 10 : digit - '0');
    }
    return length >= 1 && length <= 16;
}

static bool policy_copy_build_id(char *to, const char *text)
{
    size_t length = text_length(text);
    for (size_t at = 0; at < length; at++)
        if (!((text[at] >= '0' && text[at] <= '9') || (text[at] >= 'a' && text[at] <= 'f')))
            return false;
    if (length < 8 || length >= BUILD_ID_TEXT)
        return false;
    for (size_t at = 0; at <= length; at++)
        to[at] = text[at];
    return true;
}

/* ---- statements: each returns what is wrong, or NULL ---- */

static const char *policy_add_program(policy_t *policy, const words_t *words)
{
    if (words->count != 2 || policy->program[0] != '\0')
        return "expected one line: program BUILD-ID";
    return policy_copy_build_id(policy->program, words->at[1]) ? NULL
                                                               : "no build ID in small hex digits";
}

static const char *policy_add_option(policy_t *policy, const words_t *words)
{
    policy_option_t option;
    if (words->count != 3)
        return "expected: option NAME VALUE";
    if (!option_find_row(words->at[1], &option.row))
        return "there is no such option";
    if (!option_parse(option.row, words->at[2], &option.value))
        return "the option does not take this value";
    for (unsigned index = 0; index < policy->option_count; index++)
        if (policy->options[index].row == option.row)
            return "the option stands here twice";
    if (policy->option_count == POLICY_OPTIONS_MOST)
        return "too many options";
    policy->options[policy->option_count++] = option;
    return NULL;
}

/* A number from 1 to `most`; 0: it is none. */
static unsigned policy_parse_count(const char *text, unsigned most)
{
    unsigned value = 0;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return 0;
        value = value * 10 + (unsigned)(*text - '0');
        if (value > most)
            return 0;
    }
    return value;
}

/* `at`: of the word with the build ID. */
static const char *policy_parse_frame(const words_t *words, unsigned at, site_frame_t *frame)
{
    if (!policy_copy_build_id(frame->build_id, words->at[at]))
        return "no build ID in small hex digits";
    if (!policy_parse_hex(words->at[at + 1], &frame->file_offset))
        return "the place is no number in small hex digits";
    return NULL;
}

/* The callers that a site has behind its group. */
static const char *policy_parse_callers(const words_t *words, site_rule_t *rule)
{
    unsigned last_slot = 0;
    for (unsigned at = WORDS_OF_SITE; at < words->count; at += WORDS_OF_CALLER) {
        site_frame_t *frame = &rule->frames[rule->depth++];
        frame->slot = policy_parse_count(words->at[at + 1], SITE_SLOT_MOST);
        if (!text_is(words->at[at], "caller"))
            return "expected: caller BYTES BUILD-ID PLACE";
        if (frame->slot <= last_slot || frame->slot % sizeof(void *) != 0)
            return "the bytes of stack are no rising multiples of 8 up to 1024";
        const char *wrong = policy_parse_frame(words, at + 2, frame);
        if (wrong != NULL)
            return wrong;
        last_slot = frame->slot;
    }
    return NULL;
}

static bool is_same_frame(const site_frame_t *frame, const site_frame_t *other)
{
    return frame->file_offset == other->file_offset && text_is(frame->build_id, other->build_id);
}

/* How many frames two sites share, from the innermost on; 0: none, or the sizes differ. */
static unsigned shared_frames(const site_rule_t *rule, const site_rule_t *other)
{
    unsigned depth = 0;
    while (rule->size == other->size && depth < rule->depth && depth < other->depth &&
           is_same_frame(&rule->frames[depth], &other->frames[depth]))
        depth++;
    return depth;
}

/* What is wrong with a site beside one that stands there already, or NULL. */
static const char *policy_compare_sites(const site_rule_t *rule, const site_rule_t *other)
{
    unsigned shared = shared_frames(rule, other);
    if (shared == rule->depth && shared == other->depth)
        return "the site stands here twice";
    for (unsigned depth = 1; depth <= shared; depth++)
        if (depth < rule->depth && depth < other->depth &&
            rule->frames[depth].slot != other->frames[depth].slot)
            return "the bytes of stack differ from those of another line";
    return NULL;
}

static const char *policy_add_site(policy_t *policy, const words_t *words)
{
    if (words->count < WORDS_OF_SITE || !text_is(words->at[4], "group") ||
        (words->count - WORDS_OF_SITE) % WORDS_OF_CALLER != 0)
        return "expected: site BUILD-ID PLACE SIZE group NUMBER [caller BYTES BUILD-ID PLACE]";
    site_rule_t rule = {.depth = 1,
                        .size = policy_parse_count(words->at[3], SITE_SIZE_MOST),
                        .group = policy_parse_count(words->at[5], SITE_GROUPS)};
    const char *wrong = policy_parse_frame(words, 1, &rule.frames[0]);
    if (wrong == NULL)
        wrong = policy_parse_callers(words, &rule);
    if (wrong != NULL)
        return wrong;
    if (rule.size == 0)
        return "the size is no number from 1 to 32768";
    if (rule.group == 0)
        return "the group is no number from 1 to 15";
    if (policy->rule_count == SITE_RULES_MOST)
        return "too many sites";
    for (unsigned index = 0; index < policy->rule_count && wrong == NULL; index++)
        wrong = policy_compare_sites(&policy->rules[index], &rule);
    if (wrong != NULL)
        return wrong;
    policy->rules[policy->rule_count++] = rule;
    return NULL;
}

static const char *policy_add_statement(policy_t *policy, const words_t *words)
{
    if (text_is(words->at[0], "program"))
        return policy_add_program(policy, words);
    if (text_is(words->at[0], "option"))
        return policy_add_option(policy, words);
    if (text_is(words->at[0], "site"))
        return policy_add_site(policy, words);
    return "expected program, option or site";
}

static const char *policy_read_line(policy_t *policy, const char *line, size_t length,
                                    unsigned number)
{
    words_t words = {.count = 0};
    if (number == 1) /* what is compared ends at the end of the line at the latest */
        return text_behind(line, "hakmem policy 1") == line + length ? NULL
                                                                     : "expected: hakmem policy 1";
    if (length == 0 || line[0] == '#')
        return NULL;
    const char *wrong = policy_split_line(line, length, &words);
    return wrong != NULL ? wrong : policy_add_statement(policy, &words);
}

bool policy_parse(const char *text, size_t length, policy_t *policy, policy_problem_t *problem)
{
    size_t start = 0;
    *problem = (policy_problem_t){.line = 1, .text = "expected: hakmem policy 1"};
    policy->program[0] = '\0';
    policy->option_count = 0;
    policy->rule_count = 0;
    for (size_t at = 0; at < length; at++) {
        if (text[at] != '\n')
            continue;
        problem->text = policy_read_line(policy, text + start, at - start, problem->line);
        if (problem->text != NULL)
            return false;
        problem->line++;
        start = at + 1;
    }
    if (start == length && length != 0)
        return true;
    if (problem->text == NULL)
        problem->text = "the last line has no end";
    return false;
}
