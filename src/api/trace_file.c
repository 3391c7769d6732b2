/* The allocation trace in a file. See trace_file.h. */
#include "api/trace_file.h"

#include <errno.h>

#include "api/output_file.h"
#include "harden/fatal.h"
#include "observe/trace.h"
#include "policy/options.h"

static output_file_t file;

static bool append(const void *bytes, size_t length)
{
    return output_file_append(&file, bytes, length, "more of the trace");
}

void trace_file_prepare(void)
{
    if (option_texts.trace[0] == '\0')
        return;
    if (options.ld_safe) {
        complain("HAKMEM_TRACE is ignored: HAKMEM_LD_SAFE serves every call");
        return;
    }
    if (output_file_create(&file, option_texts.trace, "trace") && !trace_begin(append))
        output_path_complain(&file.path, "trace", ENOMEM);
}

void trace_file_at_exit(void)
{
    trace_end();
}

void trace_file_at_fork_in_child(void)
{
    trace_drop();
}
