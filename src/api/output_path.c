/* Names of output files. See output_path.h. */
#include "api/output_path.h"

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
