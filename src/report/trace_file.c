/* The allocation trace in a file. See trace_file.h. */
#include "report/trace_file.h"

#include <errno.h>

#include "report/output_file.h"
#include "os/fatal.h"
#include "observe/trace.h"
#include "options/options.h"

static output_file_t trace_file;

static bool trace_file_append(const void *bytes, size_t length)
{
    return output_file_append(&trace_file, bytes, length);
}

void trace_file_prepare(void)
{
    if (option_texts.trace[0] == '\0')
        return;
    if (options.ld_safe) {
        complain("HAKMEM_TRACE is ignored: HAKMEM_LD_SAFE serves every call");
        return;
    }
    if (output_file_open(&trace_file, option_texts.trace, "trace", true) &&
        !trace_begin(trace_file_append))
        output_file_complain(&trace_file, ENOMEM);
}

void trace_file_at_exit(void)
{
    trace_end();
}

void trace_file_at_fork_in_child(void)
{
    trace_drop();
    output_file_at_fork_in_child(&trace_file, false);
}
