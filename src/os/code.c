/* The code that is mapped in the process, as the dynamic loader knows it. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/text.h"
#include "os/background.h"
#include "os/os.h"

#define HEAD_PAGE 4096 /* program headers lie right behind the head of a file */

/* A note that is looked for, and what it says; NULL: it was not found. */
typedef struct wanted_note {
    const char *owner;
    uint32_t type;
    const char *content;
    size_t length;
} wanted_note_t;

typedef struct visit {
    os_code_visitor_t visitor;
    void *context;
} visit_t;

static char program_path[4096] SPARSE; /* read once: a sandbox may forbid it later */

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

static void find_in_notes(wanted_note_t *wanted, const char *notes, size_t size, size_t align)
{
    const ElfW(Nhdr) *note;
    for (size_t at = 0; at + sizeof *note <= size;) {
        note = (const ElfW(Nhdr) *)(const void *)(notes + at);
        size_t name = at + sizeof *note;
        size_t content = align_up(name + note->n_namesz, align);
        if (content > size || note->n_descsz > size - content)
            return;
        if (note->n_type == wanted->type && note->n_namesz == text_length(wanted->owner) + 1 &&
            text_is(notes + name, wanted->owner)) {
            wanted->content = notes + content;
            wanted->length = note->n_descsz;
            return;
        }
        at = align_up(content + note->n_descsz, align);
    }
}

static void find_note(wanted_note_t *wanted, const struct dl_phdr_info *info)
{
    for (unsigned index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[index];
        if (header->p_type == PT_NOTE && wanted->content == NULL &&
            is_inside_readable(info, header))
            find_in_notes(wanted, (const char *)(info->dlpi_addr + header->p_vaddr),
                          header->p_filesz, header->p_align == 8 ? 8 : 4);
    }
}

/* How far from the linker's addresses the program lies. Static programs may have no PT_PHDR: there
 * it is told by the segment with the file's head, which lies on the page of the program headers.
 * False: it does not, and nobody can tell. */
static bool find_shift(struct dl_phdr_info *info)
{
    uintptr_t headers = (uintptr_t)info->dlpi_phdr;
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)(headers & ~(uintptr_t)(HEAD_PAGE - 1));
    const ElfW(Phdr) *first = NULL;
    for (unsigned index = 0; headers != 0 && index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[index];
        if (header->p_type == PT_PHDR) {
            info->dlpi_addr = headers - header->p_vaddr;
            return true;
        }
        if (header->p_type == PT_LOAD && header->p_offset == 0 && first == NULL)
            first = header;
    }
    if (first == NULL || (first->p_flags & PF_R) == 0 ||
        (uintptr_t)head + head->e_phoff != headers)
        return false;
    info->dlpi_addr = (uintptr_t)head - first->p_vaddr;
    return true;
}

const char *os_program_note(const char *owner, uint32_t type, size_t *length)
{
    wanted_note_t wanted = {.owner = owner, .type = type};
    struct dl_phdr_info info = {.dlpi_phdr = (const ElfW(Phdr) *)getauxval(AT_PHDR),
                                .dlpi_phnum = (ElfW(Half))getauxval(AT_PHNUM)};
    if (find_shift(&info))
        find_note(&wanted, &info);
    *length = wanted.length;
    return wanted.content;
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *argument)
{
    visit_t *visit = argument;
    (void)size;
    os_code_t code = {.path = info->dlpi_name};
    if (code.path == NULL || code.path[0] == '\0') /* the program, which the loader finds first */
        code.path = program_path;
    wanted_note_t build_id = {.owner = "GNU", .type = OS_NOTE_BUILD_ID};
    find_note(&build_id, info);
    code.build_id = (const unsigned char *)build_id.content;
    code.build_id_length = build_id.length;
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

/* ---- without the loader ---- */

#define LINE_ROOM 5000 /* a path, and what stands in front of it */

/* The mapping of a file from its start, which has the headers. */
typedef struct head {
    const char *start; /* NULL: none was seen */
    char path[LINE_ROOM];
} head_t;

static bool code_is_in_child;

void os_code_at_fork_in_child(void)
{
    code_is_in_child = true;
}

static const char *behind_spaces(const char *at, unsigned words)
{
    for (; words != 0; words--) {
        while (*at != ' ' && *at != '\0')
            at++;
        while (*at == ' ')
            at++;
    }
    return at;
}

/* Is this the child of a fork, which has started no thread since? Ours does not count: it loads
 * nothing. */
static bool is_alone_after_fork(void)
{
    char text[512]; /* the 20th word is among them; the second has the only ) */
    if (!code_is_in_child || os_read_file("/proc/self/stat", text, sizeof text) == 0)
        return false;
    const char *behind_name = strrchr(text, ')');
    const char *wanted = os_background_is_running() ? "2 " : "1 ";
    return behind_name != NULL &&
           strncmp(behind_spaces(behind_name, 18), wanted, strlen(wanted)) == 0;
}

static uintptr_t hexadecimal_at(const char **at)
{
    uintptr_t value = 0;
    for (;; ++*at) {
        char letter = **at;
        if (letter >= '0' && letter <= '9')
            value = value << 4 | (uintptr_t)(letter - '0');
        else if (letter >= 'a' && letter <= 'f')
            value = value << 4 | (uintptr_t)(letter - 'a' + 10);
        else
            return value;
    }
}

/* No other thread of the program runs, so that what is mapped stays. */
static void visit_file(const head_t *head, visit_t *visit)
{
    const ElfW(Ehdr) *file = (const ElfW(Ehdr) *)(const void *)head->start;
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)(const void *)(head->start + file->e_phoff);
    struct dl_phdr_info info = {.dlpi_name = head->path,
                                .dlpi_phdr = headers,
                                .dlpi_phnum = file->e_phnum,
                                .dlpi_addr = (uintptr_t)head->start};
    for (unsigned index = 0; index < file->e_phnum; index++)
        if (headers[index].p_type == PT_LOAD && headers[index].p_offset == 0) {
            info.dlpi_addr = (uintptr_t)head->start - headers[index].p_vaddr;
            break;
        }
    (void)visit_object(&info, sizeof info, visit);
}

/* A line: 7f12a000-7f12b000 r-xp 00001000 fe:01 1234      /path */
static void read_maps_line(const char *line, head_t *head, visit_t *visit)
{
    const char *at = line;
    const char *start = (const char *)hexadecimal_at(&at); /* NOLINT: an address */
    const char *rights = behind_spaces(line, 1);
    const char *offset = behind_spaces(line, 2);
    const char *path = behind_spaces(line, 5);
    bool is_code = rights[0] == 'r' && rights[2] == 'x';
    if (*path != '/' && strcmp(path, "[vdso]") != 0)
        return;
    if (hexadecimal_at(&offset) == 0 && rights[0] == 'r') {
        head->start = start;
        (void)strcpy(head->path, path);
    }
    /* Files of which no code is mapped are not looked into: they may be devices. */
    if (!is_code || head->start == NULL || strcmp(path, head->path) != 0)
        return;
    if (memcmp(head->start, ELFMAG, SELFMAG) == 0)
        visit_file(head, visit);
    head->start = NULL;
}

static void visit_maps(visit_t *visit)
{
    static head_t head SPARSE; /* large; there is one thread */
    static char line[LINE_ROOM] SPARSE;
    static char bytes[1024] SPARSE;
    size_t length = 0;
    ssize_t got;
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    head.start = NULL;
    while (file >= 0 && (got = read(file, bytes, sizeof bytes)) > 0)
        for (ssize_t index = 0; index < got; index++) {
            bool is_end = bytes[index] == '\n';
            if (length + 1 < sizeof line)
                line[length++] = is_end ? '\0' : bytes[index];
            if (is_end) {
                line[sizeof line - 1] = '\0';
                read_maps_line(line, &head, visit);
                length = 0;
            }
        }
    if (file >= 0)
        (void)close(file);
}

void os_code_prepare(void)
{
    int saved_errno = errno;
    ssize_t length = readlink("/proc/self/exe", program_path, sizeof program_path - 1);
    program_path[length < 0 ? 0 : length] = '\0';
    errno = saved_errno;
}

void os_visit_code(os_code_visitor_t visitor, void *context)
{
    visit_t visit = {.visitor = visitor, .context = context};
    int saved_errno = errno;
    if (program_path[0] == '\0')
        os_code_prepare();
    if (is_alone_after_fork())
        visit_maps(&visit);
    else
        (void)dl_iterate_phdr(visit_object, &visit);
    errno = saved_errno;
}
