/* A fake kernel behind src/os/os.h, for unit tests: time stands still until the test moves it,
 * calls fail when the test says so, and every call is counted and remembered.
 *
 * The memory itself is real, so that pointers can be used; sizes and addresses are checked against
 * the page size that the test chose. Settings are for the one thread that runs the test; the
 * functions of os.h are for any. */
#ifndef HAKMEM_TESTS_FAKE_OS_H
#define HAKMEM_TESTS_FAKE_OS_H

#include "os/os.h"

typedef enum fake_call {
    FAKE_MAP_AT,
    FAKE_MAP,
    FAKE_RESERVE,
    FAKE_COMMIT,
    FAKE_PURGE,
    FAKE_ADVISE,
    FAKE_REMAP,
    FAKE_RELEASE,
    FAKE_CALL_COUNT,
    FAKE_ANY = FAKE_CALL_COUNT, /* in fake_os_fail: the n-th call of whatever kind */
} fake_call_t;

typedef struct fake_record {
    fake_call_t kind;
    bool worked;
    bool wanted; /* ADVISE: for huge pages, or against */
    char *address;
    size_t size;
    int saved_errno; /* as the library's own calls do, these leave errno as it was */
} fake_record_t;

/* Status of a process that os_abort has ended. */
enum { FAKE_ABORT_STATUS = 134 };

/* ---- the machine; before initialisation ---- */

void fake_os_set_page_size(size_t size);       /* 4, 16 or 64 KiB; 4 at first */
void fake_os_set_physical_memory(size_t size); /* 16 GiB at first */
void fake_os_set_environment(char *const *environment);
void fake_os_set_random(uint64_t number);
void fake_os_refuse_thread_exit(bool refuse); /* no room for a hook at thread exit */

/* Limit of the address space: told to those who ask, and enforced. SIZE_MAX at first. */
void fake_os_set_address_space_limit(size_t size);
void fake_os_set_address_space_may_grow(bool may_grow); /* it may at first */

/* Likewise of data. It is told, and not enforced. */
void fake_os_set_data_limit(size_t size);

/* ---- files ---- */

/* From here on the file at `path` reads as `text`; NULL: it cannot be read. So it is with every
 * file at first. Both are kept as they are. */
void fake_os_set_file(const char *path, const char *text);

/* How many files somebody has tried to read, and how often the one at `path`. */
size_t fake_os_file_reads(void);
size_t fake_os_reads_of(const char *path);

/* ---- time ---- */

void fake_os_set_clock(uint64_t now_ms);
void fake_os_advance(uint64_t more_ms);

/* As fake_os_advance, and the process works meanwhile. */
void fake_os_spend(uint64_t ms);

/* What passes between two looks at the fine clock. */
void fake_os_set_piece_cost(uint64_t ns);

/* What passes of a thread's processor time between two looks at it. */
void fake_os_set_touch_cost(uint64_t ns);

/* ---- failure ---- */

/* Fails `count` calls of the kind, beginning with the n-th from now (1: the next one). */
void fake_os_fail(fake_call_t kind, size_t nth, size_t count);
void fake_os_fail_always(fake_call_t kind);
void fake_os_fail_never(void);

/* These addresses are taken: mapping there is refused with OS_OCCUPIED. */
void fake_os_occupy(const void *address, size_t size);

/* From here on a remapped block stays where it is, or is refused; else it always moves. */
void fake_os_remap_in_place(void);

/* ---- what happened ---- */

/* Calls of the kind (FAKE_ANY: of all) since the last fake_os_forget_calls, failed ones too. */
size_t fake_os_count(fake_call_t kind);
void fake_os_forget_calls(void);

/* The n-th last call of the kind (0: the last), of the latest 4096 of all kinds; NULL: none. */
const fake_record_t *fake_os_last(fake_call_t kind, size_t nth);

/* Bytes of mappings and reservations now, and bytes purged since the start. */
size_t fake_os_mapped_bytes(void);
size_t fake_os_purged_bytes(void);

#endif
