/* The allocation trace in a file. See trace_file.h.
 *
 * The file is opened for each part: a descriptor that stays open is one that the program may close,
 * and give to a file of its own. */
#include "api/trace_file.h"

#include <errno.h>

#include "api/output_path.h"
#include "harden/fatal.h"
#include "observe/trace.h"
#include "os/os.h"
#include "policy/options.h"

static output_path_t path;
static uint64_t written; /* bytes: as long must the file be, if nobody else writes it */

/* 0, or the number of the error. */
static int try_append(const void *bytes, size_t length)
{
    int file = os_open_to_append(path.text);
    if (file < 0)
        return -file;
    bool is_ours = os_file_size(file) == written;
    bool is_written = is_ours && os_write_file(file, bytes, length);
    os_close_file(file);
    written += length;
    return is_written ? 0 : is_ours ? EIO : EBUSY;
}

static bool append(const void *bytes, size_t length)
{
    int error = try_append(bytes, length);
    if (error != 0)
        output_path_complain(&path, "more of the trace", error);
    return error == 0;
}

void trace_file_prepare(void)
{
    if (option_texts.trace[0] == '\0')
        return;
    if (options.ld_safe) {
        complain("HAKMEM_TRACE is ignored: HAKMEM_LD_SAFE serves every call");
        return;
    }
    output_path_make(&path, option_texts.trace);
    int file = os_create_file(path.text);
    if (file < 0) {
        output_path_complain(&path, "trace", -file);
        return;
    }
    os_close_file(file);
    if (!trace_begin(append))
        output_path_complain(&path, "trace", ENOMEM);
}

void trace_file_at_exit(void)
{
    trace_end();
}

void trace_file_at_fork_in_child(void)
{
    trace_drop();
}
