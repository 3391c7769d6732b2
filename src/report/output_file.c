/* Output files. See output_file.h. */
#include "report/output_file.h"

#include <errno.h>
#include <string.h>

#include "base/format.h"
#include "os/fatal.h"

/* Written when the first file is opened. */
static struct {
    /* No name is opened where the rights differ from these: a program that gives up rights, or goes
     * to another root, means all of its process. The folder counts for names that begin in it. */
    os_rights_t rights_at_start;
    bool are_rights_known;
} output_state;

/* Errors of our own. */
#define LOST (-1)         /* the number stands for another file */
#define NOT_OURS_NOW (-2) /* the process is a child that no handler of fork has seen */

static void make_path(output_file_t *file)
{
    size_t length = 0;
    for (const char *from = file->option; *from != '\0'; from++) {
        if (from[0] != '%' || from[1] != 'p') {
            file->path[length++] = *from;
            continue;
        }
        line_t number = {.length = 0};
        line_add_number(&number, file->process);
        memcpy(file->path + length, number.text, number.length);
        length += number.length;
        file->has_process = true;
        from++;
    }
    file->path[length] = '\0';
}

/* The path stands last: it may be too long for the line. */
void output_file_complain(output_file_t *file, int error)
{
    line_t line = {.length = 0};
    if (file->has_failed || error == NOT_OURS_NOW)
        return;
    file->has_failed = true;
    line_add(&line, "no ");
    line_add(&line, file->what);
    line_add(&line, " could be written");
    if (error == LOST) {
        line_add(&line, ": the program has closed it");
    } else if (error == OS_NOT_REGULAR) {
        line_add(&line, ": only a regular file serves, no link, pipe or device");
    } else {
        line_add(&line, ": error ");
        line_add_number(&line, (uint64_t)error);
    }
    line_add_in_brackets(&line, file->path);
    line.text[line.length] = '\0';
    complain(line.text);
}

bool output_file_open(output_file_t *file, const char *option, const char *what)
{
    *file = (output_file_t){.option = option, .what = what, .process = os_process_id()};
    make_path(file);
    if (!output_state.are_rights_known)
        output_state.rights_at_start = os_rights();
    output_state.are_rights_known = true;
    int number = os_open_output(file->path);
    if (number < 0) {
        output_file_complain(file, -number);
        return false;
    }
    file->number = number;
    file->opened = os_look_at(number);
    return true;
}

/* Is the file still there under its number? */
static bool is_there(const output_file_t *file)
{
    return os_is_same_file(file->opened, os_look_at(file->number)) && os_is_output(file->number);
}

bool output_file_begin(output_file_t *file)
{
    if (file->number == 0 || file->process != os_process_id())
        return false;
    if (!is_there(file)) {
        output_file_complain(file, LOST);
        return false;
    }
    os_rewind_file(file->number);
    file->written = 0;
    return true;
}

/* 0, or the error. */
static int try_append(output_file_t *file, const void *bytes, size_t length)
{
    if (file->process != os_process_id())
        return NOT_OURS_NOW;
    if (!is_there(file))
        return LOST;
    file->written += length;
    return os_write_file(file->number, bytes, length) ? 0 : EIO;
}

bool output_file_append(output_file_t *file, const void *bytes, size_t length)
{
    int error = try_append(file, bytes, length);
    if (error != 0)
        output_file_complain(file, error);
    return error == 0;
}

void output_file_end(output_file_t *file)
{
    os_cut_file(file->number, file->written);
}

/* Not where the program has changed its root, its folder or its users since: the name would stand
 * for another place, where a user of the program may have put a link to a folder of root, or the
 * file would be made with rights that it did not have when the option was set. */
static bool may_open(const char *name)
{
    os_rights_t rights = os_rights();
    if (name[0] == '/') {
        rights.folder_device = output_state.rights_at_start.folder_device;
        rights.folder_inode = output_state.rights_at_start.folder_inode;
    }
    return memcmp(&rights, &output_state.rights_at_start, sizeof rights) == 0;
}

void output_file_at_fork_in_child(output_file_t *file, bool wants_own)
{
    if (file->number == 0)
        return;
    if (is_there(file))
        os_close_file(file->number);
    file->number = 0;
    if (wants_own && file->has_process && may_open(file->option))
        (void)output_file_open(file, file->option, file->what);
}
