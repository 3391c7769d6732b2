/* A fuzzer of the whole interface, for libFuzzer (make fuzz) and for replaying its finds with
   tests/fuzz/replay.c: the input is a sequence of calls (decode.h), and tests/model/shadow.h knows
   what every block must hold.

   Checked: results are aligned and overlap no live block, contents stay, calloc gives zeros,
   realloc keeps the prefix, usable sizes stay, errno is as promised, the statistics add up, and at
   the end, with everything freed, they say the same bytes as at the start.

   Owners are threads that run one at a time, so that blocks pass between caches and a run can be
   repeated. Where the allocator stands on the fake kernel (tests/fake_os.h), time passes and
   calls fail as the input says; a refusal may then make a call fail, but nothing else. */
#include "adds_up.h"
#include "api/heap.h"
#include "check.h"
#include "fake_os.h"
#include "fuzz/decode.h"
#include "fuzz/operators.h"
#include "hakmem.h"
#include "model/shadow.h"

#include <errno.h>
#include <semaphore.h>

#pragma weak hakmem_owns
#pragma weak hakmem_purge
#pragma weak hakmem_idle
#pragma weak hakmem_get_statistics
#pragma weak hakmem_option_get
#pragma weak fake_os_fail
#pragma weak fake_os_fail_never
#pragma weak fake_os_advance

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* So many bytes may live at once, and so many calls make one input. */
enum { UNTOUCHED = 77, OWNER_COUNT = 4, LIVE_BYTES_MAX = 192 << 20, STEPS_MAX = 4096 };

typedef struct owner {
    pthread_t thread;
    bool runs;
    sem_t go;
    sem_t done;
    const uint8_t *from; /* NULL: end. */
    const uint8_t *to;
} owner_t;

static owner_t owners[OWNER_COUNT]; /* The first is the thread that calls us. */
static block_t slots[SLOT_COUNT];
static size_t live_bytes;
static size_t used_before;
static uint64_t last_seed;
static bool may_fail; /* The fake kernel refuses, or may have refused. */

/* ---- blocks come and go ---- */

static size_t bounded(size_t size)
{
    return live_bytes + size <= LIVE_BYTES_MAX ? size : size % 1024;
}

/* True: there is a block. */
static bool adopt(block_t *slot, void *ptr, size_t size, size_t alignment, block_kind_t kind)
{
    if (ptr == NULL) {
        check(may_fail);
        return false;
    }
    check(heap_is_aligned(ptr, alignment < 16 ? 16 : alignment));
    *slot = (block_t){.start = (unsigned char *)ptr,
                      .size = size,
                      .usable = malloc_usable_size(ptr),
                      .alignment = alignment,
                      .seed = ++last_seed,
                      .kind = kind};
    check(slot->usable >= size);
    shadow_add(slot);
    shadow_fill(slot);
    live_bytes += slot->usable;
    return true;
}

static void check_zero(const unsigned char *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += 4096) {
        const size_t step = at > 65536 && at + 65536 < size ? 64 : 4096;
        check(heap_is_zero(bytes + at, size - at < step ? size - at : step));
    }
}

static void *call_calloc(size_t size, uint8_t divisor)
{
    const size_t count = divisor % 8 + 1u;
    void *ptr = hidden(calloc(count, hidden_size(size / count)));
    if (ptr != NULL) check_zero((unsigned char *)ptr, size / count * count);
    return ptr;
}

/* Failure is told by the result; errno is not to be relied upon here. */
static void *call_posix_memalign(size_t alignment, size_t size)
{
    void *ptr = NULL;
    const int result = posix_memalign(&ptr, alignment < 8 ? 8 : alignment, size);
    check(result == 0 ? ptr != NULL : result == ENOMEM && ptr == NULL);
    errno = result == 0 ? errno : ENOMEM;
    return hidden(ptr);
}

/* The throwing forms end a program without a C++ runtime, so they get only what there is. */
static void *call_new(size_t size, size_t alignment, bool is_array, block_kind_t *kind)
{
    if (operator_new == NULL || may_fail) {
        *kind = alignment == 0 ? BLOCK_PLAIN : BLOCK_MEMALIGN;
        return hidden(alignment == 0 ? malloc(size) : memalign(alignment, size));
    }
    *kind = alignment == 0 ? BLOCK_NEW : BLOCK_NEW_ALIGNED;
    if (alignment == 0) return hidden(is_array ? operator_new_array(size) : operator_new(size));
    return hidden(is_array ? new_array_aligned(size, alignment) : new_aligned(size, alignment));
}

static void *call_allocate(step_t step, size_t size, size_t alignment, block_kind_t *kind)
{
    switch (step.call) {
    case CALL_CALLOC: return call_calloc(size, step.b);
    case CALL_MEMALIGN: *kind = BLOCK_MEMALIGN; return hidden(memalign(alignment, size));
    case CALL_POSIX_MEMALIGN: *kind = BLOCK_MEMALIGN; return call_posix_memalign(alignment, size);
    case CALL_ALIGNED_ALLOC:
        *kind = BLOCK_ALIGNED_ALLOC;
        return hidden(aligned_alloc(alignment, size));
    case CALL_VALLOC: *kind = BLOCK_MEMALIGN; return hidden(valloc(size));
    case CALL_PVALLOC: *kind = BLOCK_MEMALIGN; return hidden(pvalloc(size));
    case CALL_NEW: return call_new(size, 0, (step.b & 1) != 0, kind);
    case CALL_NEW_ALIGNED: return call_new(size, alignment, (step.b & 1) != 0, kind);
    default: return hidden(malloc(hidden_size(size)));
    }
}

static void allocate(step_t step, block_t *slot)
{
    size_t size = bounded(decode_size(step.a, step.b));
    size_t alignment = decode_alignment(step.slot ^ step.b);
    block_kind_t kind = BLOCK_PLAIN;
    errno = UNTOUCHED;
    void *ptr = call_allocate(step, size, alignment, &kind);
    check_eq(errno, ptr != NULL ? UNTOUCHED : ENOMEM);
    if (step.call == CALL_CALLOC) size -= size % (step.b % 8 + 1u);
    if (step.call == CALL_VALLOC || step.call == CALL_PVALLOC) alignment = 4096;
    if (kind == BLOCK_PLAIN || kind == BLOCK_NEW) alignment = 16;
    (void)adopt(slot, ptr, size, alignment, kind);
}

static void forget(block_t *slot)
{
    shadow_verify(slot, slot->usable);
    check_eq(malloc_usable_size(slot->start), slot->usable);
    shadow_remove(slot);
    live_bytes -= slot->usable;
}

/* The forms that the standards allow for a block of this kind. */
static void release_otherwise(const block_t *slot, unsigned form)
{
    if (slot->kind == BLOCK_PLAIN && free_sized != NULL) {
        free_sized(slot->start, slot->size);
    } else if (slot->kind == BLOCK_ALIGNED_ALLOC && free_aligned_sized != NULL) {
        free_aligned_sized(slot->start, slot->alignment, slot->size);
    } else if (slot->kind == BLOCK_NEW_ALIGNED && form % 2 == 0) {
        delete_aligned(slot->start, slot->alignment);
    } else if (slot->kind == BLOCK_NEW_ALIGNED) {
        delete_sized_aligned(slot->start, slot->size, slot->alignment);
    } else if (slot->kind == BLOCK_NEW && form % 4 == 0) {
        delete_array_sized(slot->start, slot->size);
    } else if (slot->kind == BLOCK_NEW && form % 4 == 1) {
        delete_sized(slot->start, slot->size);
    } else if (slot->kind == BLOCK_NEW && form % 4 == 2) {
        delete_nothrow(slot->start, "");
    } else if (slot->kind == BLOCK_NEW) {
        delete_array(slot->start);
    } else if (cfree != NULL) {
        cfree(slot->start);
    } else {
        free(slot->start);
    }
}

static void release(block_t *slot, bool otherwise, unsigned form)
{
    if (slot->start == NULL) return;
    forget(slot);
    errno = UNTOUCHED;
    if (otherwise) {
        release_otherwise(slot, form);
    } else if (slot->kind == BLOCK_NEW && delete_plain != NULL) {
        delete_plain(slot->start);
    } else {
        free(slot->start);
    }
    check_eq(errno, UNTOUCHED);
    slot->start = NULL;
}

static void *call_realloc(step_t step, void *ptr, size_t size)
{
    if (step.call == CALL_REALLOC) return hidden(realloc(ptr, hidden_size(size)));
    const size_t count = size % 3 == 0 ? 3 : 1;
    return hidden(reallocarray(ptr, count, hidden_size(size / count)));
}

static void resize(step_t step, block_t *slot)
{
    const bool is_near = (step.a & 0xc0) == 0xc0; /* a little more or less, as vectors grow */
    const size_t near = slot->size + step.b > 128 ? slot->size + step.b - 128 : 1;
    const size_t size = bounded(is_near ? near : decode_size(step.a, step.b));
    const block_t old = *slot;
    if (old.start != NULL) forget(slot);
    errno = UNTOUCHED;
    void *ptr = call_realloc(step, old.start, size);
    slot->start = NULL;
    if (ptr == NULL && size == 0 && old.start != NULL) {
        check_eq(errno, UNTOUCHED);
        return;
    }
    check_eq(errno, ptr != NULL ? UNTOUCHED : ENOMEM);
    if (ptr == NULL && old.start != NULL) { /* then the block is as it was */
        check(may_fail && size > old.usable);
        *slot = old;
        shadow_verify(slot, slot->usable);
        shadow_add(slot);
        live_bytes += slot->usable;
        return;
    }
    if (old.start != NULL) {
        block_t moved = old;
        moved.start = (unsigned char *)ptr;
        shadow_verify(&moved, size < old.size ? size : old.size);
    }
    (void)adopt(slot, ptr, size, 16, BLOCK_PLAIN);
}

/* ---- many at once: bins fill and empty, magazines change hands, slabs come and go ---- */

static void allocate_many(step_t step)
{
    const size_t size = bounded(decode_size(step.a, step.b));
    const size_t count = size <= 32768 ? 32u + (step.slot % 8) * 64u : 4u;
    for (size_t i = 0; i < count && live_bytes + size < LIVE_BYTES_MAX; i++) {
        block_t *slot = &slots[(step.slot + i) % SLOT_COUNT];
        if (slot->start == NULL) adopt(slot, hidden(malloc(size)), size, 16, BLOCK_PLAIN);
    }
}

static void free_many(step_t step)
{
    const size_t stride = step.a % 4u + 1;
    const size_t count = 8u * (step.b + 1u);
    for (size_t i = 0; i < count && i < SLOT_COUNT; i += stride) {
        const size_t at = step.a & 4 ? SLOT_COUNT - 1 - i : i; /* last first, or first first */
        release(&slots[(step.slot + at) % SLOT_COUNT], false, 0);
    }
}

/* ---- what must be refused, and what may be asked ---- */

static void ask_for_too_much(step_t step, block_t *slot)
{
    const size_t size = hidden_size(decode_absurd(step.a, step.b));
    void *unchanged = slot;
    errno = 0;
    switch (step.slot % 6) {
    case 0: check(hidden(malloc(size)) == NULL); break;
    case 1: check(hidden(calloc(step.b + 1u, size)) == NULL); break;
    case 2: check(hidden(memalign(decode_alignment(step.b), size)) == NULL); break;
    case 3: check(hidden(pvalloc(size)) == NULL); break;
    case 4:
        check_eq(posix_memalign(&unchanged, 64, size), ENOMEM);
        check(unchanged == slot);
        return;
    default: check(hidden(reallocarray(slot->start, step.b + 1u, size)) == NULL); break;
    }
    check_eq(errno, ENOMEM);
    if (slot->start != NULL) shadow_verify(slot, slot->usable);
}

static void ask_for_nonsense(step_t step, const block_t *slot)
{
    void *ptr = NULL;
    const size_t odd = hidden_size(step.a * 2u + 3u);
    errno = 0;
    if (step.b % 2 == 0) {
        check_eq(posix_memalign(&ptr, odd, 100), EINVAL);
        check(ptr == NULL);
    } else {
        check(hidden(aligned_alloc(odd, 100)) == NULL);
        check_eq(errno, EINVAL);
    }
    free(NULL);
    check_eq(malloc_usable_size(NULL), 0);
    if (slot->start != NULL) shadow_verify(slot, slot->usable);
}

static size_t used_bytes(void)
{
    hakmem_statistics_t statistics = {0};
    if (hakmem_get_statistics != NULL) check(hakmem_get_statistics(&statistics));
    return statistics.used;
}

static void ask_owns(step_t step, const block_t *slot)
{
    if (hakmem_owns == NULL) return;
    if (slot->start != NULL) check(hakmem_owns(slot->start + step.b % (slot->usable + 1) / 2));
    check(!hakmem_owns(&step));
    (void)hakmem_owns((void *)((uintptr_t)step.a << 40 | (uintptr_t)step.b << 20));
}

static void report(void)
{
    check(heap_used() >= live_bytes || hakmem_owns == NULL);
    hakmem_statistics_t statistics;
    if (hakmem_get_statistics == NULL) return;
    check(hakmem_get_statistics(&statistics));
    check(statistics.used >= live_bytes);
    check_adds_up(&statistics);
    if (fake_os_fail == NULL) return; /* in mode debug, less is usable than is used */
    check_eq(statistics.used, used_before + live_bytes);
}

static void ask_option(step_t step)
{
    static const char *const names[] = {"junk", "purge_delay_ms", "no_such_option", ""};
    int64_t value = 0;
    if (hakmem_option_get == NULL) return;
    const int result = hakmem_option_get(names[step.a % 4], &value);
    check_eq(result, step.a % 4 < 2 ? 0 : EINVAL);
    check_eq(hakmem_option_get(NULL, &value), EINVAL);
}

static void refuse(step_t step)
{
    if (fake_os_fail == NULL) return;
    may_fail = true;
    const size_t count = step.b >= 192 ? SIZE_MAX : 1u + step.b / 32;
    fake_os_fail((fake_call_t)(step.a % (FAKE_ANY + 1)), 1u + step.b % 8, count);
}

static void refuse_never(void)
{
    if (fake_os_fail_never != NULL) fake_os_fail_never();
    may_fail = false;
}

/* ---- one input ---- */

static void take_rare_step(step_t step, block_t *slot)
{
    switch (step.call) {
    case CALL_ABSURD: ask_for_too_much(step, slot); break;
    case CALL_INVALID: ask_for_nonsense(step, slot); break;
    case CALL_TRIM: (void)malloc_trim(step.b); break;
    case CALL_PURGE:
        if (hakmem_purge != NULL) (void)hakmem_purge();
        break;
    case CALL_IDLE:
        if (hakmem_idle != NULL) hakmem_idle();
        break;
    case CALL_OWNS: ask_owns(step, slot); break;
    case CALL_REPORT: report(); break;
    case CALL_OPTION: ask_option(step); break;
    case CALL_TIME:
        if (fake_os_advance != NULL) fake_os_advance((uint64_t)step.b << (step.a % 8));
        break;
    case CALL_REFUSE: refuse(step); break;
    case CALL_REFUSE_NEVER: refuse_never(); break;
    default: break;
    }
}

static void take_step(step_t step)
{
    block_t *slot = &slots[step.slot];
    switch (step.call) {
    case CALL_REALLOC:
    case CALL_REALLOCARRAY: resize(step, slot); break;
    case CALL_FREE: release(slot, false, 0); break;
    case CALL_FREE_OTHERWISE: release(slot, true, step.b); break;
    case CALL_VERIFY:
        if (slot->start != NULL) shadow_verify(slot, slot->usable);
        break;
    case CALL_ALLOCATE_MANY: allocate_many(step); break;
    case CALL_FREE_MANY: free_many(step); break;
    default:
        if (step.call > CALL_FREE_MANY) {
            take_rare_step(step, slot);
        } else if (slot->start == NULL) {
            allocate(step, slot);
        } else {
            release(slot, false, 0);
        }
    }
}

static void take_steps(const uint8_t *from, const uint8_t *to)
{
    for (; from != to; from += DECODE_BYTES) take_step(decode(from));
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) continue;
}

static void *own(void *argument)
{
    owner_t *owner = (owner_t *)argument;
    for (;;) {
        wait_for(&owner->go);
        if (owner->from == NULL) return NULL;
        take_steps(owner->from, owner->to);
        check_eq(sem_post(&owner->done), 0);
    }
}

static void start_owner(owner_t *owner)
{
    if (owner->runs) return;
    check_eq(sem_init(&owner->go, 0, 0), 0);
    check_eq(sem_init(&owner->done, 0, 0), 0);
    check_eq(pthread_create(&owner->thread, NULL, own, owner), 0);
    owner->runs = true;
}

static void end_owner(owner_t *owner)
{
    if (!owner->runs) return;
    owner->from = NULL;
    check_eq(sem_post(&owner->go), 0);
    check_eq(pthread_join(owner->thread, NULL), 0);
    owner->runs = false;
}

/* As many threads as there will ever be, once: the C library keeps something with their stacks. */
static void warm_up(void)
{
    static bool is_warm;
    if (is_warm) return;
    is_warm = true;
    const size_t before = used_bytes();
    for (size_t i = 1; i < OWNER_COUNT; i++) start_owner(&owners[i]);
    for (size_t i = 1; i < OWNER_COUNT; i++) end_owner(&owners[i]);
    used_before += used_bytes() - before;
}

static void let_take_steps(owner_t *owner, const uint8_t *from, const uint8_t *to)
{
    if (from == to) return;
    if (owner == &owners[0]) {
        take_steps(from, to);
        return;
    }
    warm_up();
    start_owner(owner);
    owner->from = from;
    owner->to = to;
    check_eq(sem_post(&owner->go), 0);
    wait_for(&owner->done);
}

static void live(const uint8_t *data, const uint8_t *end)
{
    owner_t *owner = &owners[0];
    const uint8_t *from = data;
    for (const uint8_t *at = data; at != end; at += DECODE_BYTES) {
        const step_t step = decode(at);
        if (step.call != CALL_SWITCH_OWNER && step.call != CALL_END_OWNER) continue;
        let_take_steps(owner, from, at);
        from = at + DECODE_BYTES;
        if (step.call == CALL_SWITCH_OWNER) owner = &owners[step.a % OWNER_COUNT];
        if (step.call == CALL_END_OWNER) end_owner(&owners[step.a % OWNER_COUNT]);
    }
    let_take_steps(owner, from, end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t step_count = size / DECODE_BYTES;
    if (step_count > STEPS_MAX) step_count = STEPS_MAX;
    shadow_whole_bytes = 65536;
    used_before = used_bytes();
    live(data, data + step_count * DECODE_BYTES);
    for (size_t i = 0; i < SLOT_COUNT; i++) release(&slots[i], i % 2 == 0, (unsigned)i);
    for (size_t i = 0; i < OWNER_COUNT; i++) end_owner(&owners[i]);
    refuse_never();
    check_eq(shadow_count(), 0);
    check_eq(used_bytes(), used_before);
    void *ptr = hidden(malloc(100)); /* Whatever was refused, now there is memory again. */
    check(ptr != NULL);
    free(ptr);
    if (hakmem_purge != NULL) (void)hakmem_purge();
    return 0;
}
