/* What the kernel tells of the host of a virtual machine. Linux. */
#include "os/os.h"

/* The order of the smallest free pages that are told to the host; -1, or that without its sign
 * (4294967295), where none are (mm/page_reporting.c). */
bool os_host_takes_free_memory(void)
{
    char text[16];
    size_t length = os_read_file("/sys/module/page_reporting/parameters/page_reporting_order", text,
                                 sizeof text);
    return length != 0 && length <= sizeof "99" && text[0] >= '0' && text[0] <= '9';
}
