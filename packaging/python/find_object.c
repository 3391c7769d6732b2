/* For the wheel, which is built once and runs with other C libraries. The unwinder of a recent
 * compiler calls _dl_find_object, which glibc has from 2.35 on; the linker sends these calls here
 * (--wrap). Where the function is there it is used, and takes no lock. Else the list of the loaded
 * objects is searched, with the lock of the dynamic loader, as unwinders did before. */
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

typedef int find_t(void *address, struct dl_find_object *result);

find_t __wrap__dl_find_object;

static find_t *of_the_system; /* written once, before there is a second thread */

/* Not at the first call: dlsym takes locks, and that call is made inside of malloc. */
__attribute__((constructor)) static void look_for_it(void)
{
    *(void **)&of_the_system = dlsym(RTLD_DEFAULT, "_dl_find_object");
}

typedef struct search {
    uintptr_t address;
    struct dl_find_object *result;
} search_t;

/* Returns 1, which ends the search, if the address lies in the object. */
static int look_into(struct dl_phdr_info *object, size_t size, void *argument)
{
    search_t *search = argument;
    uintptr_t start = UINTPTR_MAX, end = 0, table = 0;
    int holds_it = 0;
    (void)size;
    for (unsigned number = 0; number < object->dlpi_phnum; number++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[number];
        uintptr_t first = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_GNU_EH_FRAME)
            table = first;
        if (segment->p_type != PT_LOAD)
            continue;
        start = first < start ? first : start;
        end = first + segment->p_memsz > end ? first + segment->p_memsz : end;
        holds_it |= search->address - first < segment->p_memsz;
    }
    if (!holds_it)
        return 0;
    *search->result = (struct dl_find_object){
        .dlfo_map_start = (void *)start,
        .dlfo_map_end = (void *)end,
        .dlfo_eh_frame = (void *)table,
    };
    return 1;
}

/* 0 and the object of the address, with its table for the unwinder, or -1. */
int __wrap__dl_find_object(void *address, struct dl_find_object *result)
{
    if (of_the_system != NULL)
        return of_the_system(address, result);
    search_t search = {.address = (uintptr_t)address, .result = result};
    return dl_iterate_phdr(look_into, &search) == 1 && result->dlfo_eh_frame != NULL ? 0 : -1;
}
