/* The rest of glibc's malloc family: what asks about the heap rather than takes from it, and the
 * other names of functions that stand elsewhere. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/init.h"
#include "api/libc_heap.h"
#include "api/report.h"
#include "api/slow.h"
#include "base/bits.h"
#include "base/format.h"
#include "cache/upkeep.h"
#include "os/os.h"

/* ---- other names, for programs older than the standard ones ---- */

PUBLIC void *libc_malloc(size_t size) __asm__("__libc_malloc");
PUBLIC void *libc_malloc(size_t size)
{
    return malloc(size);
}

PUBLIC void *libc_calloc(size_t count, size_t size) __asm__("__libc_calloc");
PUBLIC void *libc_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

PUBLIC void *libc_realloc(void *ptr, size_t size) __asm__("__libc_realloc");
PUBLIC void *libc_realloc(void *ptr, size_t size)
{
    return realloc(ptr, size);
}

PUBLIC void libc_free(void *ptr) __asm__("__libc_free");
PUBLIC void libc_free(void *ptr)
{
    free(ptr);
}

PUBLIC void cfree(void *ptr);
PUBLIC void cfree(void *ptr)
{
    free(ptr);
}

PUBLIC void *libc_memalign(size_t alignment, size_t size) __asm__("__libc_memalign");
PUBLIC void *libc_memalign(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

PUBLIC void *libc_valloc(size_t size) __asm__("__libc_valloc");
PUBLIC void *libc_valloc(size_t size)
{
    return valloc(size);
}

PUBLIC void *libc_pvalloc(size_t size) __asm__("__libc_pvalloc");
PUBLIC void *libc_pvalloc(size_t size)
{
    return pvalloc(size);
}

/* ---- questions ---- */

static NOINLINE size_t usable_size_otherwise(void *ptr)
{
    if (ptr == NULL)
        return 0;
    size_t size = block_size(ptr, "malloc_usable_size");
    return size == SIZE_MAX ? libc_heap_usable_size(ptr) : size;
}

/* Some programs (redis) ask more often than they allocate. */
PUBLIC size_t malloc_usable_size(void *ptr)
{
    size_t size = small_block_size(ptr);
    return LIKELY(size != 0) ? size : usable_size_otherwise(ptr);
}

/* Gives everything idle back whatever `pad` says: there is no top of the heap to pad. */
PUBLIC int malloc_trim(size_t pad)
{
    (void)pad;
    return ensure_init() && upkeep_purge_all() != 0;
}

/* Accepts every parameter and changes nothing: what they tune does not exist here. 1 is success. */
PUBLIC int mallopt(int parameter, int value)
{
    (void)parameter;
    (void)value;
    return 1;
}

/* What the fields mean here:
 *
 *   arena     mapped for all blocks but huge ones   uordblks  of it, blocks that the program has
 *   fordblks  the rest: free, whatever its state    keepcost  of that, pages that hold memory
 *   ordblks           pieces of free memory: blocks in caches and slabs, kept spans, and one for
 *                     each page heap with free pages
 *   smblks, fsmblks   0: there are no fastbins, whatever M_MXFAST asks for
 *   hblks, hblkhd     huge blocks (a mapping of their own each) that the program has, their bytes
 *   usmblks           0, as in glibc */
PUBLIC struct mallinfo2 mallinfo2(void)
{
    hakmem_statistics_t sum = report_statistics();
    report_pieces_t pieces = report_pieces();
    size_t arena = sum.mapped - sum.huge_used - sum.huge_cached;
    size_t used = smaller_of(sum.used - sum.huge_used, arena);
    return (struct mallinfo2){
        .arena = arena,
        .ordblks = pieces.cached + pieces.free_in_slabs + pieces.kept + pieces.free_runs,
        .hblks = report_used_huge().count,
        .hblkhd = sum.huge_used,
        .uordblks = used,
        .fordblks = arena - used,
        .keepcost = sum.free_pages,
    };
}

static int narrow(size_t value)
{
    return value > INT32_MAX ? INT32_MAX : (int)value;
}

PUBLIC struct mallinfo mallinfo(void)
{
    struct mallinfo2 wide = mallinfo2();
    return (struct mallinfo){
        .arena = narrow(wide.arena),
        .ordblks = narrow(wide.ordblks),
        .hblks = narrow(wide.hblks),
        .hblkhd = narrow(wide.hblkhd),
        .uordblks = narrow(wide.uordblks),
        .fordblks = narrow(wide.fordblks),
        .keepcost = narrow(wide.keepcost),
    };
}

/* XML as glibc's: consumers read <system> and <total>. */
PUBLIC int malloc_info(int options, FILE *stream)
{
    if (options != 0)
        return EINVAL;
    hakmem_statistics_t sum = report_statistics();
    fprintf(stream,
            "<malloc version=\"1\">\n"
            "<heap nr=\"0\">\n"
            "<sizes>\n</sizes>\n"
            "</heap>\n"
            "<total type=\"fast\" count=\"0\" size=\"%zu\"/>\n"
            "<total type=\"rest\" count=\"0\" size=\"%zu\"/>\n"
            "<total type=\"mmap\" count=\"0\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n"
            "<system type=\"max\" size=\"%zu\"/>\n"
            "<aspace type=\"total\" size=\"%zu\"/>\n"
            "<aspace type=\"mprotect\" size=\"%zu\"/>\n"
            "</malloc>\n",
            sum.cached, sum.free_in_slabs, sum.huge_used, sum.mapped, sum.mapped, sum.mapped,
            sum.mapped);
    return 0;
}

static void print_row(const char *name, size_t value)
{
    line_t line = {.length = 0};
    line_add(&line, name);
    while (line.length < 17)
        line_add(&line, " ");
    line_add(&line, "= ");
    for (size_t power = 1000000000; power > value && power > 1; power /= 10)
        line_add(&line, " ");
    line_add_number(&line, value);
    line_end(&line);
    os_write(OS_STANDARD_ERROR, line.text, line.length);
}

static void print_head(const char *head)
{
    line_t line = {.length = 0};
    line_add(&line, head);
    line_end(&line);
    os_write(OS_STANDARD_ERROR, line.text, line.length);
}

/* The rows of glibc in its words, which programs look for, then ours. The most that was ever mapped
 * is not kept: in its place stands what is mapped now. */
PUBLIC void malloc_stats(void)
{
    hakmem_statistics_t sum = report_statistics();
    struct mallinfo2 info = mallinfo2();
    print_head("Arena 0:");
    print_row("system bytes", info.arena);
    print_row("in use bytes", info.uordblks);
    print_head("Total (incl. mmap):");
    print_row("system bytes", info.arena + info.hblkhd);
    print_row("in use bytes", info.uordblks + info.hblkhd);
    print_row("max mmap regions", info.hblks);
    print_row("max mmap bytes", info.hblkhd);
    print_row("cached bytes", sum.cached);
    print_row("free in slabs", sum.free_in_slabs);
    print_row("free pages", sum.free_pages);
    print_row("kept huge bytes", sum.huge_cached);
    print_row("own structures", sum.metadata);
}
