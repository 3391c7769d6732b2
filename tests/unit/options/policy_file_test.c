/* options/policy_file.h: what a policy may say, and that a file with one wrong line is refused with
 * the number of that line. */
#include "options/policy_file.h"

#include "check.h"
#include "options/options.h"

#define HEAD "hakmem policy 1\n"
#define FORM "expected: site BUILD-ID PLACE SIZE group NUMBER [caller BYTES BUILD-ID PLACE]"
#define SLOTS "the bytes of stack are no rising multiples of 8 up to 1024"
#define SITE "site " ID " 1b3c 48 group 1"
#define ID "0123456789abcdef0123456789abcdef01234567"

static policy_t policy;
static policy_problem_t problem;

static bool parse(const char *text)
{
    return policy_parse(text, strlen(text), &policy, &problem);
}

static void check_refused(const char *text, unsigned line, const char *why)
{
    check(!parse(text));
    if (strcmp(problem.text, why) != 0) (void)fprintf(stderr, "said: %s\n", problem.text);
    check(strcmp(problem.text, why) == 0);
    check_eq(problem.line, line);
}

static int64_t value_of(const char *name)
{
    unsigned row;
    check(option_find_row(name, &row));
    for (unsigned index = 0; index < policy.option_count; index++)
        if (policy.options[index].row == row) return policy.options[index].value;
    check(false);
    return 0;
}

test(an_empty_policy_is_a_policy)
{
    check(parse(HEAD));
    check_eq(policy.option_count + policy.rule_count, 0);
    check(policy.program[0] == '\0');
}

test(everything_that_may_stand_in_one_is_read)
{
    check(parse(HEAD "# why\n\nprogram " ID "\noption price lean\noption purge_delay_ms 250\n"
                     "option background off\n"
                     "site " ID " 1b3c 48 group 2\nsite " ID " 1b3c 64 group 15\n"));
    check(strcmp(policy.program, ID) == 0);
    check_eq(policy.option_count, 3);
    check_eq(value_of("price"), 3500);
    check_eq(value_of("purge_delay_ms"), 250);
    check_eq(value_of("background"), 0);
    check_eq(policy.rule_count, 2);
    check_eq(policy.rules[0].depth, 1);
    check(strcmp(policy.rules[0].frames[0].build_id, ID) == 0);
    check_eq(policy.rules[0].frames[0].file_offset, 0x1b3c);
    check_eq(policy.rules[1].size, 64);
    check_eq(policy.rules[1].group, 15);
}

test(a_site_may_have_callers)
{
    check(parse(HEAD SITE "\n" SITE " caller 24 " ID " 77\n"
                     SITE " caller 24 " ID " 77 caller 1024 01234567 ffffffffffffffff\n"
                     SITE " caller 24 " ID " 78 caller 32 " ID " 77\n"
                     "site " ID " 1b3c 64 group 1 caller 8 " ID " 77\n"));
    check_eq(policy.rule_count, 5);
    check_eq(policy.rules[1].depth, 2);
    check_eq(policy.rules[2].depth, 3);
    check_eq(policy.rules[2].group, 1);
    check_eq(policy.rules[2].frames[1].slot, 24);
    check_eq(policy.rules[2].frames[1].file_offset, 0x77);
    check_eq(policy.rules[2].frames[2].slot, 1024);
    check_eq(policy.rules[2].frames[2].file_offset, UINT64_MAX);
    check(strcmp(policy.rules[2].frames[2].build_id, "01234567") == 0);
}

test(wrong_callers_are_named)
{
    check_refused(HEAD SITE " caller\n", 2, FORM);
    check_refused(HEAD SITE " caller 24 " ID "\n", 2, FORM);
    check_refused(HEAD SITE " called 24 " ID " 77\n", 2,
                  "expected: caller BYTES BUILD-ID PLACE");
    check_refused(HEAD SITE " caller 24 " ID " 0x\n", 2,
                  "the place is no number in small hex digits");
    check_refused(HEAD SITE " caller 24 0123 77\n", 2, "no build ID in small hex digits");
    check_refused(HEAD SITE " caller 0 " ID " 77\n", 2, SLOTS);
    check_refused(HEAD SITE " caller 12 " ID " 77\n", 2, SLOTS);
    check_refused(HEAD SITE " caller 1032 " ID " 77\n", 2, SLOTS);
    check_refused(HEAD SITE " caller -8 " ID " 77\n", 2, SLOTS);
    check_refused(HEAD SITE " caller 24 " ID " 77 caller 24 " ID " 78\n", 2, SLOTS);
    check_refused(HEAD SITE " caller 8 " ID " 77 caller 16 " ID " 78 caller 24 " ID " 79\n", 2,
                  "more words than a statement has");
    check_refused(HEAD SITE " caller 24 " ID " 77\n" SITE " caller 24 " ID " 77\n", 3,
                  "the site stands here twice");
    check_refused(HEAD SITE " caller 24 " ID " 77\n" SITE " caller 32 " ID " 78\n", 3,
                  "the bytes of stack differ from those of another line");
    check_refused(HEAD SITE " caller 24 " ID " 77 caller 32 " ID " 1\n"
                       SITE " caller 24 " ID " 77 caller 40 " ID " 2\n", 3,
                  "the bytes of stack differ from those of another line");
}

test(wrong_lines_are_named)
{
    check_refused("", 1, "expected: hakmem policy 1");
    check_refused("hakmem policy 2\n", 1, "expected: hakmem policy 1");
    check_refused("hakmem policy 1", 1, "expected: hakmem policy 1");
    check_refused(HEAD "option price lean", 2, "the last line has no end");
    check_refused(HEAD "\n# \noption nonesuch 1\n", 4, "there is no such option");
    check_refused(HEAD "option price 0\n", 2, "the option does not take this value");
    check_refused(HEAD "option price 99999999999999999999\n", 2,
                  "the option does not take this value");
    check_refused(HEAD "option price lean\noption price fast\n", 3, "the option stands here twice");
    check_refused(HEAD "option price\n", 2, "expected: option NAME VALUE");
    check_refused(HEAD "option  price lean\n", 2, "words are separated by one space");
    check_refused(HEAD "option price lean \n", 2, "words are separated by one space");
    check_refused(HEAD "learn everything\n", 2, "expected program, option or site");
    check_refused(HEAD "program " ID "\nprogram " ID "\n", 3,
                  "expected one line: program BUILD-ID");
    check_refused(HEAD "program ABCDEF0123\n", 2, "no build ID in small hex digits");
    check_refused(HEAD "site " ID " 1b3c 48 group 16\n", 2, "the group is no number from 1 to 15");
    check_refused(HEAD "site " ID " 1b3c 48 group 0\n", 2, "the group is no number from 1 to 15");
    check_refused(HEAD "site " ID " 1b3c 32769 group 1\n", 2,
                  "the size is no number from 1 to 32768");
    check_refused(HEAD "site " ID " 0x1b 48 group 1\n", 2,
                  "the place is no number in small hex digits");
    check_refused(HEAD "site " ID " 10000000000000000 48 group 1\n", 2,
                  "the place is no number in small hex digits");
    check_refused(HEAD "site " ID " 1b 48 grown 1\n", 2, FORM);
    check_refused(HEAD "site " ID " 1b 48 group 1\nsite " ID " 1b 48 group 2\n", 3,
                  "the site stands here twice");
    check_refused(HEAD "option price le\x01n\n", 2, "a character that is not printable");
    check_refused(HEAD "a b c d e f g h i j k l m n o\n", 2, "more words than a statement has");
    check_refused(HEAD SITE " x\n", 2, FORM);
    check_refused(HEAD "option 01234567890123456789012345678901234567890123456789012345678901234 "
                       "1\n", 2, "a word that is too long");
}

test(bytes_that_are_no_text_are_refused)
{
    char text[] = HEAD "option price lean\n";
    text[20] = '\0';
    check(!policy_parse(text, sizeof text - 1, &policy, &problem));
    for (unsigned byte = 128; byte < 256; byte++) {
        text[20] = (char)byte;
        check(!policy_parse(text, sizeof text - 1, &policy, &problem));
    }
}

test(more_sites_than_there_is_room_for_are_refused)
{
    static char text[SITE_RULES_MOST * 80 + 200];
    int length = sprintf(text, HEAD);
    for (unsigned number = 0; number < SITE_RULES_MOST; number++)
        length += sprintf(text + length, "site " ID " %x 48 group 1\n", number + 1);
    check(parse(text));
    sprintf(text + length, "site " ID " ffff 48 group 1\n");
    check_refused(text, SITE_RULES_MOST + 2, "too many sites");
}

check_main()
