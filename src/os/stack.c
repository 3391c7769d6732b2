/* The call stack of the calling thread, by the unwinder of the compiler's runtime, which is linked
 * into the library. It reads the tables that exceptions need and so does without frame pointers,
 * which the programs of most distributions lack. With glibc 2.35 and a compiler of its time no
 * lock is taken (_dl_find_object); before, that of the dynamic loader is.
 *
 * A build without an unwinder (HAKMEM_UNWINDER) knows the caller of the allocator, and no more. */
#include "base/config.h"
#include "os/os.h"

#if HAKMEM_UNWINDER
#include <unwind.h>

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
} walk_t;

static bool is_own_code(uintptr_t address)
{
    return config_shared && address >= (uintptr_t)code_start && address < (uintptr_t)code_end;
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
    if (walk->is_outside)
        walk->frames[walk->depth++] = address - !is_before_instruction;
    return walk->depth < walk->most ? _URC_NO_REASON : _URC_END_OF_STACK;
}

unsigned os_call_stack(uintptr_t *frames, unsigned most, const void *caller)
{
    walk_t walk = {.frames = frames, .most = most, .caller = (uintptr_t)caller};
    (void)_Unwind_Backtrace(take_frame, &walk);
    return walk.depth;
}
#else
unsigned os_call_stack(uintptr_t *frames, unsigned most, const void *caller)
{
    if (caller == NULL || most == 0)
        return 0;
    frames[0] = (uintptr_t)caller - 1;
    return 1;
}
#endif
