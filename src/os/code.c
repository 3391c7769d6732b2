/* The code that is mapped in the process, as the dynamic loader knows it. */
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/bits.h"
#include "os/os.h"

#define BUILD_ID_NOTE 3 /* NT_GNU_BUILD_ID, with the name "GNU" */

typedef struct visit {
    os_code_visitor_t visitor;
    void *context;
    char program[4096];
} visit_t;

static bool is_inside_readable(const struct dl_phdr_info *info, const ElfW(Phdr) *inner)
{
    for (unsigned index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *outer = &info->dlpi_phdr[index];
        if (outer->p_type == PT_LOAD && (outer->p_flags & PF_R) != 0 &&
            inner->p_vaddr >= outer->p_vaddr &&
            inner->p_vaddr + inner->p_filesz <= outer->p_vaddr + outer->p_filesz)
            return true;
    }
    return false;
}

/* Looks through a segment of notes for the one that names the build. */
static void find_in_notes(os_code_t *code, const unsigned char *notes, size_t size, size_t align)
{
    const ElfW(Nhdr) *note;
    for (size_t at = 0; at + sizeof *note <= size;) {
        note = (const ElfW(Nhdr) *)(const void *)(notes + at);
        size_t name = at + sizeof *note;
        size_t content = align_up(name + note->n_namesz, align);
        if (content > size || note->n_descsz > size - content)
            return;
        if (note->n_type == BUILD_ID_NOTE && note->n_namesz == 4 && notes[name] == 'G' &&
            notes[name + 1] == 'N' && notes[name + 2] == 'U') {
            code->build_id = notes + content;
            code->build_id_length = note->n_descsz;
            return;
        }
        at = align_up(content + note->n_descsz, align);
    }
}

static void find_build_id(os_code_t *code, const struct dl_phdr_info *info)
{
    for (unsigned index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[index];
        if (header->p_type == PT_NOTE && code->build_id == NULL &&
            is_inside_readable(info, header))
            find_in_notes(code, (const unsigned char *)(info->dlpi_addr + header->p_vaddr),
                          header->p_filesz, header->p_align == 8 ? 8 : 4);
    }
}

const unsigned char *os_program_build_id(size_t *length)
{
    os_code_t code = {.build_id = NULL};
    struct dl_phdr_info info = {.dlpi_phdr = (const ElfW(Phdr) *)getauxval(AT_PHDR),
                                .dlpi_phnum = (ElfW(Half))getauxval(AT_PHNUM)};
    for (unsigned index = 0; info.dlpi_phdr != NULL && index < info.dlpi_phnum; index++)
        if (info.dlpi_phdr[index].p_type == PT_PHDR)
            info.dlpi_addr = (uintptr_t)info.dlpi_phdr - info.dlpi_phdr[index].p_vaddr;
    if (info.dlpi_phdr != NULL)
        find_build_id(&code, &info);
    *length = code.build_id_length;
    return code.build_id;
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *argument)
{
    visit_t *visit = argument;
    (void)size;
    os_code_t code = {.path = info->dlpi_name};
    if (code.path == NULL || code.path[0] == '\0') /* the program, which the loader finds first */
        code.path = visit->program;
    find_build_id(&code, info);
    for (unsigned index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[index];
        if (header->p_type != PT_LOAD || (header->p_flags & PF_X) == 0)
            continue;
        code.start = info->dlpi_addr + header->p_vaddr;
        code.end = code.start + header->p_memsz;
        code.file_offset = header->p_offset;
        code.linked_start = header->p_vaddr;
        visit->visitor(&code, visit->context);
    }
    return 0;
}

void os_visit_code(os_code_visitor_t visitor, void *context)
{
    visit_t visit = {.visitor = visitor, .context = context};
    int saved_errno = errno;
    ssize_t length = readlink("/proc/self/exe", visit.program, sizeof visit.program - 1);
    visit.program[length < 0 ? 0 : length] = '\0';
    (void)dl_iterate_phdr(visit_object, &visit);
    errno = saved_errno;
}
