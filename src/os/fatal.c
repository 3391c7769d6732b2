/* The lines of fatal.h. tests/misuse/expected.txt holds those of misuse. */
#include "os/fatal.h"

#include "base/assert.h"
#include "base/format.h"
#include "base/text.h"
#include "os/os.h"
#include "options/options.h"

/* The files that messages go to, as they were at the start. A program may close them, and a file of
 * the program may then get the number. */
static struct {
    os_file_t errors;
    os_file_t reports;
    bool is_noted;
} fatal_files;

void messages_prepare(void)
{
    fatal_files.errors = os_look_at(OS_STANDARD_ERROR);
    fatal_files.reports = os_look_at((int)options.report_fd);
    fatal_files.is_noted = true;
}

bool reports_are_read(void)
{
    if (!fatal_files.is_noted)
        messages_prepare();
    return os_is_same_file(fatal_files.reports, os_look_at((int)options.report_fd));
}

/* The message before an abort may also go to a standard error that the program has redirected: to a
 * terminal, pipe or socket, and to a file that is only written at its end, as servers open their
 * logs. Another regular file may hold data. */
bool errors_are_read(void)
{
    if (!fatal_files.is_noted)
        messages_prepare();
    os_file_t now = os_look_at(OS_STANDARD_ERROR);
    return os_is_same_file(fatal_files.errors, now) ||
           (fatal_files.errors.is_open &&
            (now.is_stream || (now.is_regular && os_appends(OS_STANDARD_ERROR))));
}

static _Noreturn void fatal_die(line_t *line)
{
    line_end(line);
    if (errors_are_read())
        os_write(OS_STANDARD_ERROR, line->text, line->length);
    os_abort();
}

static line_t fatal_begin_line(const char *what, const void *ptr)
{
    line_t line = {.length = 0};
    line_add(&line, "hakmem: ");
    line_add(&line, what);
    line_add(&line, " of ");
    line_add_pointer(&line, ptr);
    return line;
}

/* A second free has a name of its own; of the other calls the name is said. */
_Noreturn void fatal_already_free(const char *verb, const void *ptr, size_t size)
{
    bool is_free = text_is(verb, "free");
    line_t line = fatal_begin_line(is_free ? "double free" : verb, ptr);
    line_add(&line, is_free ? " (" : " after free (");
    line_add_number(&line, size);
    line_add(&line, " bytes)");
    fatal_die(&line);
}

_Noreturn void fatal_inside_block(const char *verb, const void *ptr, size_t size)
{
    line_t line = fatal_begin_line(verb, ptr);
    line_add(&line, ", which points inside a block of ");
    line_add_number(&line, size);
    line_add(&line, " bytes");
    fatal_die(&line);
}

_Noreturn void fatal_free_memory(const char *verb, const void *ptr)
{
    line_t line = fatal_begin_line(verb, ptr);
    line_add(&line, ", which is free memory already");
    fatal_die(&line);
}

_Noreturn void fatal_no_heap(const void *heap)
{
    line_t line = fatal_begin_line("use", heap);
    line_add(&line, ", which is no heap: it was destroyed, or never made");
    fatal_die(&line);
}

_Noreturn void fatal_not_ours(const char *verb, const void *ptr)
{
    line_t line = fatal_begin_line(verb, ptr);
    line_add(&line, ", which is not an address of this heap");
    fatal_die(&line);
}

_Noreturn void fatal_wrong_size(const char *verb, const void *ptr, size_t said, size_t size)
{
    line_t line = fatal_begin_line(verb, ptr);
    line_add(&line, " with size ");
    line_add_number(&line, said);
    line_add(&line, ", which is a block of ");
    line_add_number(&line, size);
    line_add(&line, " bytes");
    fatal_die(&line);
}

static _Noreturn void fatal_die_with_size(line_t *line, size_t size)
{
    line_add(line, " (");
    line_add_number(line, size);
    line_add(line, " bytes)");
    fatal_die(line);
}

_Noreturn void fatal_overflow(const void *ptr, size_t size)
{
    line_t line = fatal_begin_line("write behind the end", ptr);
    fatal_die_with_size(&line, size);
}

_Noreturn void fatal_written_after_free(const void *ptr, size_t size)
{
    line_t line = fatal_begin_line("write after free", ptr);
    fatal_die_with_size(&line, size);
}

_Noreturn void fatal(const char *reason)
{
    line_t line = {.length = 0};
    line_add(&line, "hakmem: ");
    line_add(&line, reason);
    fatal_die(&line);
}

/* Letters of a program's name that a message has: enough to know the program by, and the sentence
 * behind it still fits. */
#define NAME_MOST 40

static void add_program_name(line_t *line)
{
    const char *name = os_program_name();
    for (unsigned at = 0; at < NAME_MOST && name[at] != '\0'; at++)
        line_add(line, (char[2]){name[at]});
}

void complain(const char *text)
{
    line_t line = {.length = 0};
    line_add(&line, "hakmem[");
    line_add_number(&line, options.plain_syscalls ? 0 : os_process_id());
    line_add(&line, " ");
    add_program_name(&line);
    line_add(&line, "]: ");
    line_add(&line, text);
    line_end(&line);
    if (reports_are_read())
        os_write((int)options.report_fd, line.text, line.length);
}

_Noreturn void assertion_failed(const char *condition, const char *file, int number)
{
    line_t line = {.length = 0};
    line_add(&line, "hakmem: broken law at ");
    line_add(&line, file);
    line_add(&line, ":");
    line_add_number(&line, (uint64_t)number);
    line_add(&line, ": ");
    line_add(&line, condition);
    fatal_die(&line);
}
