/* The seam to the kernel and the C library: everything that knows Linux stands behind these
 * functions, and tests replace them by a fake kernel (tests/fake_os.c).
 *
 * All sizes are bytes and all addresses and sizes are multiples of os_page_size() unless a contract
 * says otherwise. Every function may be called from any thread, never allocates from the heap, and
 * leaves errno alone: a lock may wait in any entry point, and most of them must preserve it. */
#ifndef HAKMEM_OS_OS_H
#define HAKMEM_OS_OS_H

#include "base/types.h"

typedef enum os_result {
    OS_DONE,
    OS_OCCUPIED,  /* other mappings are in part of the range */
    OS_NO_MEMORY, /* the kernel or a limit refused */
} os_result_t;

/* System calls of a kind since the start; read by statistics. */
typedef struct os_call {
    uint64_t count;
    uint64_t bytes; /* of those that were not refused */
    uint64_t ns;    /* that they took, of the threads that made them */
} os_call_t;

typedef struct os_calls {
    os_call_t map;
    os_call_t unmap;
    os_call_t protect;
    os_call_t advise; /* but for purge */
    os_call_t purge;
    os_call_t remap; /* `bytes`: of the new lengths */
    os_call_t wait;  /* for a lock */
} os_calls_t;

/* Size of a page of the running kernel: 4, 16 or 64 KiB. */
size_t os_page_size(void);

/* Bytes of physical memory; 0 when unknown. */
size_t os_physical_memory(void);

/* Limit of the address space (RLIMIT_AS) in bytes; SIZE_MAX when there is none. */
size_t os_address_space_limit(void);

/* May the process raise it, without any privilege? */
bool os_address_space_may_grow(void);

/* Limit of what the process may write to without a file behind it (RLIMIT_DATA), likewise. */
size_t os_data_limit(void);

/* Reads what one read gives of the regular file at `path`, up to `room` - 1 bytes, and ends it by a
 * NUL. Returns its length; 0: it is empty, cannot be read, or is no regular file. */
size_t os_read_file(const char *path, char *text, size_t room);

/* Is there a folder at `path`? */
bool os_is_folder(const char *path);

/* Maps zeroed, writable memory at exactly `address`. */
os_result_t os_map_at(void *address, size_t size);

/* Maps zeroed, writable memory over pages that are ours. A limit that has just been reached does
 * not forbid that. False: the kernel maps nothing for us now. */
bool os_map_over(void *address, size_t size);

/* Maps zeroed, writable memory anywhere. NULL when refused. */
void *os_map(size_t size);

/* Reserves addresses without memory; they may not be touched before os_commit. NULL when refused.
 */
void *os_reserve(size_t size);

/* Makes part of a reservation readable and writable; it reads as zero. */
bool os_commit(void *address, size_t size);

/* Takes the contents away and keeps the mapping. True: the range now reads as zero and costs no
 * memory. False: nothing has changed. The caller holds no lock: the call goes through the C
 * library's madvise, where the program may have a hook, which may allocate. */
bool os_purge(void *address, size_t size);

/* Like os_purge, for our own structures, of which no hook needs to know. Any lock may be held. */
bool os_purge_own(void *address, size_t size);

/* Asks for, or refuses, transparent huge pages in the range. A hint: failure is of no consequence.
 */
void os_advise_huge_pages(void *address, size_t size, bool wanted);

/* Does the machine give free memory to a host (page reporting of a virtual machine), so that its
 * free huge pages may have no memory behind them? False where the kernel does not tell. */
bool os_host_takes_free_memory(void);

/* Bytes of a range of no more than OS_RESIDENT_MOST that memory stands behind; 0 when unknown. */
#define OS_RESIDENT_MOST (2 * MIB)
size_t os_resident_size(const void *address, size_t size);

/* Grows or shrinks a mapping made by os_map, moving it if need be. NULL: refused, nothing changed.
 * The caller holds no lock: the call goes through the C library's mremap. */
void *os_remap(void *address, size_t old_size, size_t new_size);

/* Gives a mapping back in which blocks lay. False (the table of mappings is full): it is still
 * there. The caller holds no lock: the call goes through the C library's munmap. */
bool os_unmap(void *address, size_t size);

/* Like os_unmap, for a mapping in which no block ever lay, or whose whole range has been through
 * os_purge, so that hooks know of it. Any lock may be held. */
bool os_release(void *address, size_t size);

/* Could the word at `address` (any value) be read? */
bool os_is_readable(const void *address);

/* Milliseconds of a clock that never goes back; coarse (some 4 ms) and cheap. */
uint64_t os_clock_ms(void);

/* Nanoseconds since 1970. */
uint64_t os_calendar_ns(void);

/* Nanoseconds of processor time that the calling thread has had; a system call. */
uint64_t os_processor_ns(void);

/* Nanoseconds of the kernel's fine clock (CLOCK_MONOTONIC): for short spans of time. */
uint64_t os_clock_ns(void);

/* Nanoseconds of processor time that the process has had, all threads together; a system call. 0
 * where only calls are made that glibc makes (plain_syscalls). */
uint64_t os_process_ns(void);

/* A number that an attacker outside the process cannot know: one for each copy of the allocator. */
uint64_t os_random(void);

/* The environment as NAME=value texts ending in NULL, or NULL when it is not to be trusted
 * (AT_SECURE: setuid and the like) or not there yet. */
char *const *os_environment(void);

/* Sleeps for `ms` milliseconds. */
void os_sleep(uint64_t ms);

/* Sleeps until *word differs from `expected` or another thread wakes us; may return early. */
void os_wait(const uint32_t *word, uint32_t expected);
void os_wake_one(const uint32_t *word);

/* Names the function that os_call_at_thread_exit arranges; called once, before any other thread can
 * be in here. False: the C library has no room for it. */
bool os_prepare_thread_exit(void (*at_exit)(void *value));

/* Has that function called with `value` (not NULL) when the calling thread ends; NULL cancels. May
 * allocate. False: nothing will be called. */
bool os_call_at_thread_exit(void *value);

/* The lock of the C library's list of streams (stdio). Its fork takes it after every handler has
 * run, ours too, while a thread that holds a stream may wait for us, and one that holds the list
 * for that stream. Therefore our handler takes the lock before our locks, and fork takes it again:
 * the lock is recursive. */
void os_lock_streams(void);
void os_unlock_streams(void);

/* Instead of os_unlock_streams in the child of a fork, whose one thread must not wait:
 * the C library may have reset the lock already. */
void os_reset_streams(void);

/* Has the three functions called around every fork, even while another thread is in `exit`. The
 * library must therefore never be unloaded (-z nodelete). May allocate. */
void os_handle_forks(void (*before)(void), void (*in_parent)(void), void (*in_child)(void));

/* The name of the program's file, without folders; "?" when unknown. Works before the C library is
 * initialised. */
const char *os_program_name(void);

/* The number of the calling process. */
uint64_t os_process_id(void);

/* Calls `visit` with every buffer that the C library has allocated for a stream. Takes the lock of
 * the streams meanwhile. */
void os_visit_stream_buffers(void (*visit)(const void *buffer, void *context), void *context);

/* Puts the return addresses of the calling thread into `frames`, `most` at most, innermost first,
 * without those of this library, and returns how many. An address is that of the call's last byte.
 * `caller`, a return address, tells where a static program begins; NULL: unknown. `slots`, if not
 * NULL, gets where the return addresses behind the first one stand, of SITE_FRAMES_MOST frames: in
 * bytes above the stack pointer with which the allocator was called; 0: unknown. */
unsigned os_call_stack(uintptr_t *frames, unsigned most, const void *caller, uint16_t *slots);

/* A mapped segment of code of the program or a shared library. */
typedef struct os_code {
    uintptr_t start;
    uintptr_t end;
    uint64_t file_offset;
    uintptr_t linked_start;        /* the address that the linker gave to `start` */
    const char *path;              /* "" when unknown */
    const unsigned char *build_id; /* NULL: it has none */
    size_t build_id_length;
} os_code_t;

/* The content of the note in the program's file that has this owner and type; NULL: it has none,
 * *length is 0. Works before the C library is initialised. */
#define OS_NOTE_BUILD_ID 3 /* NT_GNU_BUILD_ID, of the owner GNU */
const char *os_program_note(const char *owner, uint32_t type, size_t *length);

typedef void (*os_code_visitor_t)(const os_code_t *code, void *context);

/* Calls `visitor` with each segment of code. Takes the lock of the dynamic loader, but not in the
 * child of a fork that has no other thread. */
void os_visit_code(os_code_visitor_t visitor, void *context);

/* Reads the path of the program, for os_visit_code, before a sandbox forbids it. */
void os_code_prepare(void);

/* The process is the child of a fork: another thread may have held the lock of the dynamic loader,
 * and nobody will release it: a child that writes a profile, or ends with call stacks, would wait
 * for ever. Hence what is mapped is read from /proc/self/maps, as long as the process has one
 * thread. */
void os_code_at_fork_in_child(void);

/* Does the code at the address belong to the dynamic loader? The loader keeps blocks for
 * threads and libraries to the end. False where C library and loader are one file (musl). */
bool os_is_loader(uintptr_t address);

#define OS_STANDARD_ERROR 2

/* An open file. */
typedef struct os_file {
    uint64_t device; /* with `inode`: which one it is, whatever its name and number */
    uint64_t inode;
    uint64_t created_ns; /* 0: unknown. The number of a deleted file may become another's */
    bool is_open;
    bool is_regular;
    bool is_stream; /* terminal, pipe or socket */
} os_file_t;

/* The file that has the number now. */
os_file_t os_look_at(int number);

static inline bool os_is_same_file(os_file_t file, os_file_t other)
{
    return file.is_open && other.is_open && file.device == other.device &&
           file.inode == other.inode && file.created_ns == other.created_ns;
}

/* Is all that is written to the file put behind its end? */
bool os_appends(int number);

/* Writes to an open file as it is; never fails visibly, nor raises a signal. */
void os_write(int file, const char *text, size_t length);

/* Creates the file or empties it, for writing. Never waits for a reader. The file, or minus the
 * number of the error. */
int os_create_file(const char *path);

/* Opens a regular file or /dev/null for writing, under a number that programs rarely use, and
 * creates it if need be. No link is followed, and what is in it stays. The number, or minus the
 * error. */
#define OS_NOT_REGULAR 4096 /* an error that the kernel has not */
int os_open_output(const char *path);

/* May the number be from os_open_output? Few programs open files to write in this way. */
bool os_is_output(int number);

/* Writes all bytes to a file that os_create_file or os_open_output has opened. False: some are
 * missing. */
bool os_write_file(int file, const void *bytes, size_t length);

/* Moves to the beginning: the next byte is written there. */
void os_rewind_file(int file);

/* Cuts the file off behind `length` bytes. */
void os_cut_file(int file, uint64_t length);

void os_close_file(int file);

/* The rights with which the calling thread opens names, and the folders where names begin. No byte
 * of the structure is padding. */
#define OS_GROUPS_MOST 32 /* of more, only the number counts */
typedef struct os_rights {
    uint64_t root_device;
    uint64_t root_inode;
    uint64_t folder_device; /* where a name begins that has no / in front */
    uint64_t folder_inode;
    uint32_t users[4];  /* real, effective, saved */
    uint32_t groups[4]; /* likewise */
    uint32_t capabilities[6];
    uint32_t more_groups[OS_GROUPS_MOST];
    int64_t group_count;
} os_rights_t;

os_rights_t os_rights(void);

_Noreturn void os_abort(void);

os_calls_t os_calls(void);

#endif
