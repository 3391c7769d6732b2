/* The call stack of the calling thread, by the unwinder of the compiler's runtime, which is linked
 * into the library. The unwinder reads the tables that exceptions need, and needs no frame
 * pointers, which the programs of most distributions lack. With glibc 2.35 and a compiler of its
 * time no lock is taken (_dl_find_object); before, that of the dynamic loader is.
 *
 * A build without an unwinder (HAKMEM_UNWINDER) knows the caller of the allocator, and no more. */
#include "base/config.h"
#include "options/tuning.h"
#include "os/os.h"

/* Where nothing can be unwound. */
static unsigned only_caller(uintptr_t *frames, unsigned most, const void *caller)
{
    if (caller == NULL || most == 0)
        return 0;
    frames[0] = (uintptr_t)caller - 1;
    return 1;
}

#if HAKMEM_UNWINDER
#include <unwind.h>

/* In a static program the C library allocates before the unwinder can find any code, which ends the
 * program. */
static bool code_is_known = config_shared;

__attribute__((constructor)) static void stack_at_load(void)
{
    code_is_known = true;
}

/* The code of the shared library; the linker defines both. In a static program it would be that of
 * the program. */
extern const char code_start[] __asm__("__ehdr_start") HIDDEN;
extern const char code_end[] __asm__("etext") HIDDEN;

typedef struct walk {
    uintptr_t *frames;
    unsigned most;
    unsigned depth;
    uintptr_t caller;
    bool is_outside; /* of the library: the frames before are nobody's business */
    uintptr_t entry; /* the stack pointer of the innermost frame */
    uintptr_t inner; /* that of the frame before */
    uint16_t slots[SITE_FRAMES_MOST];
} walk_t;

static bool is_own_code(uintptr_t address)
{
    return config_shared && address >= (uintptr_t)code_start && address < (uintptr_t)code_end;
}

/* Where a return address stands between the stack pointers of two frames, as os_call_stack says it:
 * on x86-64 it is the last word, elsewhere any. */
static uint16_t walk_find_slot(const walk_t *walk, uintptr_t stack, uintptr_t address)
{
    if (stack <= walk->inner || stack - walk->entry > SITE_SLOT_MOST)
        return 0;
    for (uintptr_t at = stack - sizeof at; at >= walk->inner; at -= sizeof at)
        if (*(const uintptr_t *)at == address)
            return (uint16_t)(at - walk->entry);
    return 0;
}

/* `address` 0: it is no return address. */
static void walk_note_slot(walk_t *walk, uintptr_t stack, uintptr_t address)
{
    if (walk->depth == 0)
        walk->entry = stack;
    else if (walk->depth < SITE_FRAMES_MOST)
        walk->slots[walk->depth] = address == 0 ? 0 : walk_find_slot(walk, stack, address);
    walk->inner = stack;
}

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *argument)
{
    walk_t *walk = argument;
    int is_before_instruction = 0; /* a signal came there; else it is a return address */
    uintptr_t address = _Unwind_GetIPInfo(context, &is_before_instruction);
    if (address == 0)
        return _URC_END_OF_STACK;
    if (address == walk->caller) {
        walk->depth = 0;
        walk->caller = 0;
    }
    walk->is_outside |= !is_own_code(address);
    if (walk->is_outside) {
        walk_note_slot(walk, _Unwind_GetCFA(context), is_before_instruction ? 0 : address);
        walk->frames[walk->depth++] = address - !is_before_instruction;
    }
    return walk->depth < walk->most ? _URC_NO_REASON : _URC_END_OF_STACK;
}

unsigned os_call_stack(uintptr_t *frames, unsigned most, const void *caller, uint16_t *slots)
{
    walk_t walk = {.frames = frames, .most = most, .caller = (uintptr_t)caller};
    if (code_is_known)
        (void)_Unwind_Backtrace(take_frame, &walk);
    else
        walk.depth = only_caller(frames, most, caller);
    for (unsigned frame = 1; slots != NULL && frame < SITE_FRAMES_MOST; frame++)
        slots[frame - 1] = frame < walk.depth ? walk.slots[frame] : 0;
    return walk.depth;
}
#else
unsigned os_call_stack(uintptr_t *frames, unsigned most, const void *caller, uint16_t *slots)
{
    for (unsigned frame = 1; slots != NULL && frame < SITE_FRAMES_MOST; frame++)
        slots[frame - 1] = 0;
    return only_caller(frames, most, caller);
}
#endif
