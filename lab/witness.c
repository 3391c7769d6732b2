/* The witness: preloaded behind the allocator, it writes one line for every program that starts:
 *
 *     <program>\t<function>\t<library that the function is bound to>\t<answer>\t<pid>
 *
 * The function is malloc, or the first of its family that is bound elsewhere than malloc. The
 * answer is "yes" or "no" where the allocator can be asked whether a fresh block is its own
 * (hakmem_owns), else "-". At the end of a program on HAKMEM, its counters follow, one per
 * line: <program>\tcounter\t<name>\t<number>\t<pid>. The record is the file that MALLOC_WITNESS
 * names. Built by CMakeLists.txt for the laboratory and by tests/programs/stage.py; read by both.
 *
 * dlsym would name the program itself where that takes malloc's address (a PLT entry stands in for
 * the function). So the witness looks where its own calls would go: into its jump slots. */

#define _GNU_SOURCE
#include "hakmem.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const family[] = {
    "malloc",         "calloc",        "realloc",  "free",
    "posix_memalign", "aligned_alloc", "memalign", "malloc_usable_size"};

void witness_calls_the_family(void **out);

/* Never called: its calls are why this library has the jump slots. */
void witness_calls_the_family(void **out)
{
    out[0] = realloc(malloc(1), 2);
    out[1] = calloc(1, 1);
    out[2] = aligned_alloc(64, 64);
    out[3] = memalign(64, malloc_usable_size(out[2]));
    if (posix_memalign(&out[4], 64, 64))
        free(out[4]);
}

/* The loader's own copy of the dynamic section holds addresses, not offsets. */
static ElfW(Addr) dynamic(ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == tag)
            return entry->d_un.d_ptr;
    }
    return 0;
}

/* The library that a call of `name` from here enters, or NULL. */
static const char *library_of(const char *name, char *base)
{
    const ElfW(Rela) *slots = (const ElfW(Rela) *)dynamic(DT_JMPREL);
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)dynamic(DT_SYMTAB);
    const char *strings = (const char *)dynamic(DT_STRTAB);
    size_t count = dynamic(DT_PLTRELSZ) / sizeof *slots;
    for (size_t i = 0; i < count; i++) {
        size_t symbol = slots[i].r_info >> 32;
        if (strcmp(strings + symbols[symbol].st_name, name) != 0)
            continue;
        Dl_info owner;
        void *target = *(void **)(base + slots[i].r_offset);
        return dladdr(target, &owner) ? owner.dli_fname : NULL;
    }
    return NULL;
}

/* Weak: there only on HAKMEM. */
bool hakmem_owns(const void *ptr) __attribute__((weak));
bool hakmem_get_statistics(hakmem_statistics_t *statistics) __attribute__((weak));

static char program[1024]; /* empty: nobody asked */

/* One write in append mode: lines of programs that start together do not mix. */
__attribute__((format(printf, 1, 2))) static void record(const char *format, ...)
{
    char line[4096];
    va_list details;
    const char *path = getenv("MALLOC_WITNESS");
    va_start(details, format);
    int size = vsnprintf(line, sizeof line, format, details);
    va_end(details);
    int file = path != NULL ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    ssize_t written = write(file, line, (size_t)size);
    (void)written;
    close(file);
}

static const char *answer_of_the_allocator(void)
{
    if (hakmem_owns == NULL)
        return "-";
    void *block = malloc(100);
    bool is_own = hakmem_owns(block);
    free(block);
    return is_own ? "yes" : "no";
}

__attribute__((constructor)) static void testify(void)
{
    Dl_info self;
    if (getenv("MALLOC_WITNESS") == NULL || !dladdr(_DYNAMIC, &self))
        return;
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        return;

    size_t member = 0;
    const char *bound = library_of("malloc", self.dli_fbase);
    for (size_t i = 1; bound && i < sizeof family / sizeof *family; i++) {
        const char *other = library_of(family[i], self.dli_fbase);
        if (other && strcmp(other, bound) == 0)
            continue;
        member = i;
        bound = other;
        break;
    }
    record("%s\t%s\t%s\t%s\t%d\n", program, family[member], bound ? bound : "nothing",
           answer_of_the_allocator(), (int)getpid());
}

static void count(const char *name, uint64_t value)
{
    record("%s\tcounter\t%s\t%llu\t%d\n", program, name, (unsigned long long)value, (int)getpid());
}

__attribute__((destructor)) static void testify_at_the_end(void)
{
    hakmem_statistics_t now;
    if (program[0] == '\0')
        return;
    if (hakmem_get_statistics != NULL && hakmem_get_statistics(&now)) {
        count("system_calls", now.system_calls);
        count("mapped", now.mapped);
        count("used", now.used);
        count("cached", now.cached);
        count("free_in_slabs", now.free_in_slabs);
        count("free_pages", now.free_pages);
        count("metadata", now.metadata);
        count("huge_used", now.huge_used);
        count("huge_cached", now.huge_cached);
        count("purged", now.purged);
    }
}
