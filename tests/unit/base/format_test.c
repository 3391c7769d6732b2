/* base/format.h against printf, and at the end of its buffer. */
#include "base/format.h"

#include "check.h"

static void check_text(const line_t *line, const char *expected)
{
    check_eq(line->length, strlen(expected));
    check(memcmp(line->text, expected, line->length) == 0);
}

test(texts_follow_one_another)
{
    line_t line = {.length = 0};
    line_add(&line, "free of ");
    line_add(&line, "");
    line_add(&line, "nothing");
    line_add_in_brackets(&line, "");
    line_add_in_brackets(&line, "at all");
    check_text(&line, "free of nothing (at all)");
}

test(what_would_begin_a_line_or_steer_a_terminal_is_a_question_mark)
{
    line_t line = {.length = 0};
    line_add(&line, "a\nb\r\x1b[2J\x7f \xc3\xa9");
    check_text(&line, "a?b??[2J? \xc3\xa9");
}

test(numbers_are_written_as_printf_writes_them)
{
    static const uint64_t numbers[] = {0, 1, 9, 10, 42, 99, 100, 4096, UINT32_MAX, UINT64_MAX};
    for (size_t index = 0; index < sizeof numbers / sizeof numbers[0]; index++) {
        line_t line = {.length = 0};
        char expected[64];
        (void)snprintf(expected, sizeof expected, "%ju", (uintmax_t)numbers[index]);
        line_add_number(&line, numbers[index]);
        check_text(&line, expected);
    }
}

test(pointers_are_written_as_printf_writes_them)
{
    static const uintptr_t addresses[] = {1, 0xabcdef, 0x7fffdeadbeef, UINTPTR_MAX};
    for (size_t index = 0; index < sizeof addresses / sizeof addresses[0]; index++) {
        line_t line = {.length = 0};
        char expected[64];
        (void)snprintf(expected, sizeof expected, "%p", (void *)addresses[index]);
        line_add_pointer(&line, (void *)addresses[index]);
        check_text(&line, expected);
    }
    line_t line = {.length = 0};
    line_add_pointer(&line, NULL);
    check_text(&line, "0x0");
}

test(what_does_not_fit_is_cut_and_room_is_left_for_an_end)
{
    line_t line = {.length = 0};
    for (unsigned round = 0; round < 100; round++)
        line_add(&line, "0123456789");
    check_eq(line.length, sizeof line.text - 1);
    for (size_t at = 0; at < line.length; at++)
        check_eq(line.text[at], '0' + (char)(at % 10));
}

test(a_number_that_does_not_fit_is_cut_too)
{
    line_t line = {.length = sizeof line.text - 3};
    memset(line.text, '.', sizeof line.text);
    line_add_number(&line, 123456);
    check_eq(line.length, sizeof line.text - 1);
    check(memcmp(line.text + sizeof line.text - 3, "12.", 3) == 0);
}

check_main()
