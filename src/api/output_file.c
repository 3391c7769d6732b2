/* Output files. See output_file.h. */
#include "api/output_file.h"

#include <errno.h>

#include "base/format.h"
#include "harden/fatal.h"
#include "os/os.h"

void output_path_make(output_path_t *path, const char *option)
{
    size_t length = 0;
    path->has_process = false;
    for (const char *from = option; *from != '\0'; from++) {
        if (from[0] != '%' || from[1] != 'p') {
            path->text[length++] = *from;
            continue;
        }
        line_t number = {.length = 0};
        line_add_number(&number, os_process_id());
        for (size_t at = 0; at < number.length; at++)
            path->text[length++] = number.text[at];
        path->has_process = true;
        from++;
    }
    path->text[length] = '\0';
}

void output_path_complain(const output_path_t *path, const char *what, int error)
{
    line_t line = {.length = 0};
    line_add(&line, "no ");
    line_add(&line, what);
    line_add(&line, " could be written to ");
    line_add(&line, path->text);
    line_add(&line, ": error ");
    line_add_number(&line, (uint64_t)error);
    line.text[line.length] = '\0';
    complain(line.text);
}

bool output_file_create(output_file_t *file, const char *option, const char *what)
{
    output_path_make(&file->path, option);
    file->written = 0;
    int made = os_create_file(file->path.text);
    if (made < 0)
        output_path_complain(&file->path, what, -made);
    else
        os_close_file(made);
    return made >= 0;
}

/* 0, or the number of the error. */
static int try_append(output_file_t *file, const void *bytes, size_t length)
{
    int opened = os_open_to_append(file->path.text);
    if (opened < 0)
        return -opened;
    bool is_ours = os_file_size(opened) == file->written;
    bool is_written = is_ours && os_write_file(opened, bytes, length);
    os_close_file(opened);
    file->written += length;
    return is_written ? 0 : is_ours ? EIO : EBUSY;
}

bool output_file_append(output_file_t *file, const void *bytes, size_t length, const char *what)
{
    int error = try_append(file, bytes, length);
    if (error != 0)
        output_path_complain(&file->path, what, error);
    return error == 0;
}
