/* The fake kernel: settings, failures, records, and the functions of src/os/os.h on top of them.
 * See fake_os.h. One mutex guards everything; nobody sleeps while holding it. (Clocks:
 * fake_clock.c.) */
#include "fake_os.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/lock.h"

#define RECORDS 4096
#define RANGES 16

typedef struct range {
    uintptr_t start;
    size_t size;
} range_t;

static pthread_mutex_t kernel = PTHREAD_MUTEX_INITIALIZER;
static size_t page_size = 4096;
static size_t physical_memory = (size_t)16 << 30;
static size_t address_space_limit = SIZE_MAX;
static char *const *environment_texts;
static uint64_t random_number = 0x0123456789abcdef;
static bool refuses_thread_exit;

static range_t occupied[RANGES];
static size_t occupied_count;
/* Calls [from, to) of a kind fail, counted from the arming; the last entry is FAKE_ANY. */
static size_t made[FAKE_CALL_COUNT + 1];
static size_t fails_from[FAKE_CALL_COUNT + 1];
static size_t fails_to[FAKE_CALL_COUNT + 1];

static fake_record_t records[RECORDS];
static size_t record_count;
static size_t counts[FAKE_CALL_COUNT + 1];
static size_t wait_count;
static size_t mapped_bytes;
static size_t purged_bytes;

static _Noreturn void give_up(const char *reason)
{
    (void)fprintf(stderr, "fake_os: %s\n", reason);
    abort();
}

static void expect(bool condition, const char *reason)
{
    if (!condition)
        give_up(reason);
}

static void enter(void)
{
    expect(pthread_mutex_lock(&kernel) == 0, "the mutex is broken");
}

static void leave(void)
{
    expect(pthread_mutex_unlock(&kernel) == 0, "the mutex is broken");
}

/* ---- settings ---- */

void fake_os_set_page_size(size_t size)
{
    page_size = size;
}

void fake_os_set_physical_memory(size_t size)
{
    physical_memory = size;
}

void fake_os_set_environment(char *const *environment)
{
    environment_texts = environment;
}

void fake_os_set_random(uint64_t number)
{
    random_number = number;
}

void fake_os_refuse_thread_exit(bool refuse)
{
    refuses_thread_exit = refuse;
}

void fake_os_set_address_space_limit(size_t size)
{
    address_space_limit = size;
}

void fake_os_fail(fake_call_t kind, size_t nth, size_t count)
{
    enter();
    fails_from[kind] = made[kind] + nth - 1;
    fails_to[kind] = count > SIZE_MAX - fails_from[kind] ? SIZE_MAX : fails_from[kind] + count;
    leave();
}

void fake_os_fail_always(fake_call_t kind)
{
    fake_os_fail(kind, 1, SIZE_MAX);
}

void fake_os_fail_never(void)
{
    enter();
    for (unsigned kind = 0; kind <= FAKE_ANY; kind++)
        fails_from[kind] = fails_to[kind] = 0;
    leave();
}

void fake_os_occupy(const void *address, size_t size)
{
    expect(occupied_count < RANGES, "too many occupied ranges");
    occupied[occupied_count++] = (range_t){(uintptr_t)address, size};
}

/* ---- records ---- */

size_t fake_os_count(fake_call_t kind)
{
    enter();
    size_t count = counts[kind];
    leave();
    return count;
}

void fake_os_forget_calls(void)
{
    enter();
    for (unsigned kind = 0; kind <= FAKE_ANY; kind++)
        counts[kind] = 0;
    record_count = 0;
    leave();
}

const fake_record_t *fake_os_last(fake_call_t kind, size_t nth)
{
    size_t oldest = record_count > RECORDS ? record_count - RECORDS : 0;
    for (size_t index = record_count; index > oldest; index--) {
        const fake_record_t *record = &records[(index - 1) % RECORDS];
        if ((kind == FAKE_ANY || record->kind == kind) && nth-- == 0)
            return record;
    }
    return NULL;
}

size_t fake_os_mapped_bytes(void)
{
    enter();
    size_t bytes = mapped_bytes;
    leave();
    return bytes;
}

size_t fake_os_purged_bytes(void)
{
    enter();
    size_t bytes = purged_bytes;
    leave();
    return bytes;
}

/* Enters the kernel for a call. Returns its record, `worked` telling whether it may succeed. */
static fake_record_t *begin(fake_call_t kind, const void *address, size_t size)
{
    expect(((uintptr_t)address & (page_size - 1)) == 0, "an address that is no multiple of a page");
    expect((size & (page_size - 1)) == 0 && size != 0, "a size that is no multiple of a page");
    enter();
    bool fails = false;
    for (unsigned index = 0; index < 2; index++) {
        fake_call_t counted = index == 0 ? kind : FAKE_ANY;
        size_t call = made[counted]++;
        fails |= fails_from[counted] <= call && call < fails_to[counted];
        counts[counted]++;
    }
    fake_record_t *record = &records[record_count++ % RECORDS];
    *record = (fake_record_t){kind, !fails, false, (char *)(uintptr_t)address, size, errno};
    return record;
}

static bool end(fake_record_t *record, bool worked)
{
    record->worked = worked;
    leave();
    errno = record->saved_errno;
    return worked;
}

/* ---- mappings ---- */

static bool limit_allows(size_t more)
{
    return more <= address_space_limit && mapped_bytes <= address_space_limit - more;
}

static char *real_map(void *address, size_t size, int protection, int flags)
{
    long result = syscall(SYS_mmap, address, size, protection,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0L);
    return result == -1 ? NULL : (char *)result;
}

static void real_unmap(char *address, size_t size)
{
    expect(size == 0 || syscall(SYS_munmap, address, size) == 0, "munmap failed");
}

/* A real mapping whose start is a multiple of `alignment`. Where any page is one, it lies next to
 * others, as the kernel likes it. */
static char *real_map_aligned(size_t size, size_t alignment, int protection)
{
    if (alignment <= 4096)
        return real_map(NULL, size, protection, 0);
    size_t room = size + alignment;
    char *start = room < size ? NULL : real_map(NULL, room, protection, 0);
    if (start == NULL)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)start & (alignment - 1));
    real_unmap(start, before);
    real_unmap(start + before + size, alignment - before);
    return start + before;
}

static bool is_occupied(uintptr_t start, size_t size)
{
    for (size_t index = 0; index < occupied_count; index++)
        if (start < occupied[index].start + occupied[index].size &&
            occupied[index].start < start + size)
            return true;
    return false;
}

os_result_t os_map_at(void *address, size_t size)
{
    fake_record_t *record = begin(FAKE_MAP_AT, address, size);
    os_result_t result = record->worked && limit_allows(size) ? OS_DONE : OS_NO_MEMORY;
    if (result == OS_DONE && is_occupied((uintptr_t)address, size))
        result = OS_OCCUPIED;
    if (result == OS_DONE) {
        char *got = real_map(address, size, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);
        if (got != address)
            result = OS_OCCUPIED;
        if (got != NULL && got != address) /* an emulator may not know the flag */
            real_unmap(got, size);
    }
    if (result == OS_DONE)
        mapped_bytes += size;
    end(record, result == OS_DONE);
    return result;
}

bool os_map_over(void *address, size_t size)
{
    fake_record_t *record = begin(FAKE_MAP_AT, address, size);
    return end(record, record->worked &&
                           real_map(address, size, PROT_READ | PROT_WRITE, MAP_FIXED) == address);
}

void *os_map(size_t size)
{
    fake_record_t *record = begin(FAKE_MAP, NULL, size);
    if (record->worked && limit_allows(size))
        record->address = real_map_aligned(size, page_size, PROT_READ | PROT_WRITE);
    char *start = record->address;
    if (start != NULL)
        mapped_bytes += size;
    end(record, start != NULL);
    return start;
}

void *os_reserve(size_t size)
{
    fake_record_t *record = begin(FAKE_RESERVE, NULL, size);
    if (record->worked && limit_allows(size))
        record->address = real_map_aligned(size, page_size, PROT_NONE);
    char *start = record->address;
    if (start != NULL)
        mapped_bytes += size;
    end(record, start != NULL);
    return start;
}

bool os_commit(void *address, size_t size)
{
    fake_record_t *record = begin(FAKE_COMMIT, address, size);
    return end(record,
               record->worked && syscall(SYS_mprotect, address, size, PROT_READ | PROT_WRITE) == 0);
}

bool os_purge_own(void *address, size_t size)
{
    fake_record_t *record = begin(FAKE_PURGE, address, size);
    bool worked = record->worked && syscall(SYS_madvise, address, size, MADV_DONTNEED) == 0;
    purged_bytes += worked ? size : 0;
    return end(record, worked);
}

bool os_purge(void *address, size_t size)
{
    expect(lock_none_is_held(), "a lock is held while hooks may run");
    return os_purge_own(address, size);
}

void os_advise_huge_pages(void *address, size_t size, bool wanted)
{
    fake_record_t *record = begin(FAKE_ADVISE, address, size);
    record->wanted = wanted;
    end(record, record->worked);
}

static bool remaps_in_place;

void fake_os_remap_in_place(void)
{
    remaps_in_place = true;
}

/* To a whole page of this kernel, and else always to another place. */
static char *real_remap(char *address, size_t old_size, size_t new_size)
{
    if (remaps_in_place)
        return syscall(SYS_mremap, address, old_size, new_size, 0) == (long)address ? address
                                                                                    : NULL;
    char *moved = real_map_aligned(new_size, page_size, PROT_NONE);
    expect(moved == NULL || syscall(SYS_mremap, address, old_size, new_size,
                                    MREMAP_MAYMOVE | MREMAP_FIXED, moved) == (long)moved,
           "mremap failed");
    return moved;
}

void *os_remap(void *address, size_t old_size, size_t new_size)
{
    expect(lock_none_is_held(), "a lock is held while hooks may run");
    expect((old_size & (page_size - 1)) == 0, "an old size that is no multiple of a page");
    fake_record_t *record = begin(FAKE_REMAP, address, new_size);
    char *moved = NULL;
    if (record->worked && (new_size <= old_size || limit_allows(new_size - old_size))) {
        moved = real_remap(address, old_size, new_size);
        mapped_bytes += moved != NULL ? new_size - old_size : 0;
    }
    end(record, moved != NULL);
    return moved;
}

bool os_release(void *address, size_t size)
{
    fake_record_t *record = begin(FAKE_RELEASE, address, size);
    if (record->worked) {
        real_unmap(address, size);
        mapped_bytes -= size;
    }
    return end(record, record->worked);
}

bool os_unmap(void *address, size_t size)
{
    expect(lock_none_is_held(), "a lock is held while hooks may run");
    return os_release(address, size);
}

/* ---- everything else ---- */

size_t os_page_size(void)
{
    return page_size;
}

size_t os_physical_memory(void)
{
    return physical_memory;
}

size_t os_address_space_limit(void)
{
    return address_space_limit;
}

bool os_is_readable(const void *address)
{
    unsigned char in_core;
    uintptr_t page = (uintptr_t)address & ~(uintptr_t)4095;
    return syscall(SYS_mincore, page, 4096, &in_core) == 0;
}

size_t os_resident_size(const void *address, size_t size)
{
    unsigned char pages[OS_RESIDENT_MOST / 4096];
    size_t resident = 0;
    expect(size <= OS_RESIDENT_MOST, "more than may be asked for at once");
    if (syscall(SYS_mincore, address, size, pages) != 0)
        return 0;
    for (size_t page = 0; page < size / 4096; page++) resident += pages[page] & 1;
    return resident * 4096;
}

uint64_t os_random(void)
{
    return random_number;
}

char *const *os_environment(void)
{
    return environment_texts;
}

void os_wait(const uint32_t *word, uint32_t expected)
{
    __atomic_fetch_add(&wait_count, 1, __ATOMIC_RELAXED);
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void os_wake_one(const uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static pthread_key_t exit_key;

bool os_prepare_thread_exit(void (*at_exit)(void *value))
{
    return !refuses_thread_exit && pthread_key_create(&exit_key, at_exit) == 0;
}

bool os_call_at_thread_exit(void *value)
{
    return !refuses_thread_exit && pthread_setspecific(exit_key, value) == 0;
}

/* No test forks with streams in use. */
void os_lock_streams(void)
{
}

void os_unlock_streams(void)
{
}

void os_reset_streams(void)
{
}

void os_visit_stream_buffers(void (*visit)(const void *buffer, void *context), void *context)
{
    (void)visit;
    (void)context;
}

const char *os_program_name(void)
{
    return "program";
}

uint64_t os_process_id(void)
{
    return 1234;
}

_Noreturn void os_abort(void)
{
    _exit(FAKE_ABORT_STATUS);
}

os_calls_t os_calls(void)
{
    enter();
    os_calls_t calls = {
        .map.count = counts[FAKE_MAP_AT] + counts[FAKE_MAP] + counts[FAKE_RESERVE],
        .unmap.count = counts[FAKE_RELEASE],
        .protect.count = counts[FAKE_COMMIT],
        .advise.count = counts[FAKE_ADVISE],
        .purge.count = counts[FAKE_PURGE],
        .remap.count = counts[FAKE_REMAP],
        .wait.count = __atomic_load_n(&wait_count, __ATOMIC_RELAXED),
    };
    leave();
    return calls;
}
