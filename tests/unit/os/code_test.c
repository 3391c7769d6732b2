/* os/code.c and os/stack.c: the code of this program is found, with its build; a call stack has the
 * callers in order, and no more than there is room for. */
#include "check.h"
#include "os/os.h"

typedef struct search {
    uintptr_t address;
    unsigned count;
    os_code_t found;
} search_t;

static void look(const os_code_t *code, void *context)
{
    search_t *search = context;
    search->count++;
    check(code->start < code->end && code->path != NULL);
    if (search->address >= code->start && search->address < code->end) search->found = *code;
}

test(the_code_of_the_program_is_found_with_its_build)
{
    search_t search = {.address = (uintptr_t)look};
    size_t length;
    os_visit_code(look, &search);
    check(search.count >= 1 && search.found.start != 0);
    check(strstr(search.found.path, "os_code_test") != NULL);
    const char *id = os_program_note("GNU", OS_NOTE_BUILD_ID, &length);
    check((const unsigned char *)id == search.found.build_id);
    check_eq(length, search.found.build_id_length);
    check(length == 0 || length >= 8);
    check(os_program_note("GN", OS_NOTE_BUILD_ID, &length) == NULL && length == 0);
    check(os_program_note("GNU", 0x7fffffff, &length) == NULL && length == 0);
}

enum { MOST = 100 };

static struct {
    os_code_t code[MOST];
    char paths[MOST][200];
    unsigned count;
} all[2];
static unsigned round_now;

static void collect(const os_code_t *code, void *context)
{
    (void)context;
    if (code->path[0] != '/') return; /* that of the kernel has no file */
    const unsigned index = all[round_now].count++;
    check(index < MOST);
    all[round_now].code[index] = *code;
    (void)snprintf(all[round_now].paths[index], sizeof all[0].paths[0], "%s", code->path);
}

static const char *base_name(const char *path)
{
    return strrchr(path, '/') + 1; /* the loader may name a link */
}

test(the_same_code_is_found_without_the_loader)
{
    os_visit_code(collect, NULL);
    round_now = 1;
    os_code_at_fork_in_child();
    os_visit_code(collect, NULL);
    check_eq(all[0].count, all[1].count);
    check(all[0].count >= 1);
    for (unsigned index = 0; index < all[0].count; index++) {
        const os_code_t *theirs = &all[0].code[index];
        unsigned other = 0;
        while (all[1].code[other].start != theirs->start) check(++other < all[1].count);
        const os_code_t *ours = &all[1].code[other];
        check_eq(ours->end, theirs->end);
        check_eq(ours->file_offset, theirs->file_offset);
        check_eq(ours->linked_start, theirs->linked_start);
        check(ours->build_id == theirs->build_id);
        check(strcmp(base_name(all[0].paths[index]), base_name(all[1].paths[other])) == 0 ||
              strstr(all[0].paths[index], ".so") != NULL);
    }
}

static uintptr_t frames[64];
static unsigned depth;

/* Each level is a call from the same place, which the compiler cannot see through. */
static void descend(unsigned levels, unsigned most);
static void (*volatile again)(unsigned levels, unsigned most) = descend;

static void descend(unsigned levels, unsigned most)
{
    if (levels == 0)
        depth = os_call_stack(frames, most, NULL, NULL);
    else
        again(levels - 1, most);
    __asm__ volatile("" ::: "memory"); /* not a tail call */
}

/* Frames that are the same as the one before. */
static unsigned repeated(void)
{
    unsigned count = 0;
    for (unsigned index = 1; index < depth; index++) count += frames[index] == frames[index - 1];
    return count;
}

test(callers_stand_in_order)
{
    again(10, 64);
    check(depth >= 12);
    check_eq(repeated(), 9);
}

test(the_innermost_are_kept_where_room_is_short)
{
    again(30, 5);
    check_eq(depth, 5);
    check(repeated() >= 2);
}

/* Two looks from the same place; the second begins at the caller of this function. */
__attribute__((noinline)) static void look_twice(void)
{
    uintptr_t whole[64];
    const unsigned whole_depth = os_call_stack(whole, 64, NULL, NULL);
    check(whole_depth > 3);
    depth = os_call_stack(frames, 64, (const void *)(whole[2] + 1), NULL);
    check_eq(depth, whole_depth - 2);
    check(memcmp(frames, whole + 2, depth * sizeof *frames) == 0);
}

test(frames_before_the_caller_are_left_out)
{
    look_twice();
    __asm__ volatile("" ::: "memory"); /* not a tail call */
}

check_main()
