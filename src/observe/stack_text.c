/* Call stacks in messages. See stack_text.h. */
#include "observe/stack_text.h"

#include "os/fatal.h"
#include "observe/samples.h"
#include "os/os.h"
#include "options/options.h"

/* Return addresses that are named, and the length of a line from which on none is added: the rest
 * of its room is for the last one and for what complain puts in front. */
#define FRAMES_SHOWN 8
#define LINE_MOST 140

typedef struct named_address {
    uintptr_t address;
    line_t *line;
    bool is_named;
} named_address_t;

static const char *file_name(const char *path)
{
    const char *name = path;
    for (; *path != '\0'; path++)
        if (*path == '/')
            name = path + 1;
    return name;
}

static void name_address(const os_code_t *code, void *context)
{
    named_address_t *named = context;
    if (named->address < code->start || named->address >= code->end)
        return;
    named->is_named = true;
    line_add(named->line, file_name(code->path));
    line_add(named->line, "+0x");
    line_add_based(named->line, named->address - code->start + code->linked_start, 16);
}

void stack_text_add(line_t *line, const uintptr_t *frames, unsigned depth)
{
    for (unsigned at = 0; at < depth && at < FRAMES_SHOWN && line->length < LINE_MOST; at++) {
        named_address_t named = {.address = frames[at], .line = line};
        if (at != 0)
            line_add(line, " < ");
        os_visit_code(name_address, &named);
        if (!named.is_named) /* its code is not mapped any more */
            line_add_pointer(line, (const void *)frames[at]);
    }
}

static void stack_text_say(const void *block, const char *what, const uintptr_t *frames,
                           unsigned depth)
{
    line_t line = {.length = 0};
    if (depth == 0)
        return;
    line_add(&line, "hakmem: ");
    line_add_pointer(&line, block);
    line_add(&line, what);
    stack_text_add(&line, frames, depth);
    line_end(&line);
    if (errors_are_read())
        os_write(OS_STANDARD_ERROR, line.text, line.length);
}

void stack_text_say_history(const void *block)
{
    uintptr_t frames[FRAMES_SHOWN];
    if (!samples_exist() && options.leak_report != LEAKS_BY_STACK)
        return;
    stack_text_say(block, " was allocated from ", frames,
                   samples_stack(block, frames, FRAMES_SHOWN));
    stack_text_say(block, " was freed from ", frames,
                   samples_free_stack(block, frames, FRAMES_SHOWN));
}
