/* The dynamic loader of glibc: a file of its own. */
#include <link.h>
#include <sys/auxv.h>

#include "os/os.h"

bool os_is_loader(uintptr_t address)
{
    uintptr_t base = getauxval(AT_BASE); /* 0: a static program */
    const ElfW(Ehdr) *file = (const ElfW(Ehdr) *)base;
    if (base == 0 || address < base)
        return false;
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)(base + file->e_phoff);
    uintptr_t end = base;
    for (unsigned index = 0; index < file->e_phnum; index++)
        if (headers[index].p_type == PT_LOAD)
            end = base + headers[index].p_vaddr + headers[index].p_memsz;
    return address < end;
}
