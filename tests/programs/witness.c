/* The witness: preloaded behind the allocator, it writes one line for every program that starts,
 * "<program>\t<function>\t<library that the function is bound to>": malloc, or the first of its
 * family that is bound elsewhere than malloc. Owned by stage.py, which builds it and reads its
 * lines. It allocates nothing.
 *
 * dlsym would name the program itself where that takes malloc's address (a PLT entry stands in for
 * the function). So the witness looks where its own calls would go: into its jump slots. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const family[] = {"malloc", "calloc", "realloc", "free",
                                     "posix_memalign", "aligned_alloc", "memalign",
                                     "malloc_usable_size"};

/* Never called: its calls are why this library has the jump slots. */
void witness_calls_the_family(void **out)
{
    out[0] = realloc(malloc(1), 2);
    out[1] = calloc(1, 1);
    out[2] = aligned_alloc(64, 64);
    out[3] = memalign(64, malloc_usable_size(out[2]));
    if (posix_memalign(&out[4], 64, 64)) free(out[4]);
}

/* The loader's own copy of the dynamic section holds addresses, not offsets. */
static ElfW(Addr) dynamic(ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == tag) return entry->d_un.d_ptr;
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
        if (strcmp(strings + symbols[symbol].st_name, name) != 0) continue;
        Dl_info owner;
        void *target = *(void **)(base + slots[i].r_offset);
        return dladdr(target, &owner) ? owner.dli_fname : NULL;
    }
    return NULL;
}

__attribute__((constructor)) static void testify(void)
{
    const char *record = getenv("PROGRAMS_WITNESS");
    char program[1024];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    Dl_info self;
    if (!record || length < 0 || !dladdr(_DYNAMIC, &self)) return;
    program[length] = '\0';

    size_t member = 0;
    const char *bound = library_of("malloc", self.dli_fbase);
    for (size_t i = 1; bound && i < sizeof family / sizeof *family; i++) {
        const char *other = library_of(family[i], self.dli_fbase);
        if (other && strcmp(other, bound) == 0) continue;
        member = i;
        bound = other;
        break;
    }

    char line[4096];
    int size = snprintf(line, sizeof line, "%s\t%s\t%s\n", program, family[member],
                        bound ? bound : "nothing");
    int file = open(record, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0) return;
    /* One write in append mode: lines of programs that start together do not mix. */
    ssize_t written = write(file, line, (size_t)size);
    (void)written;
    close(file);
}
