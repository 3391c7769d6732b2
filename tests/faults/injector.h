/* Makes chosen system calls of the allocator fail, in the process that includes this.

   A seccomp filter turns the five calls that hand out memory into SIGSYS where they come from
   syscall(2), munmap, madvise or mremap, which are the allocator's ways into the kernel and seldom
   the C library's. The handler counts each call, then refuses it or makes it. No privilege, tracer
   or second process is needed, and a forked child keeps it all. Threads must not block SIGSYS. */
#ifndef HAKMEM_TESTS_INJECTOR_H
#define HAKMEM_TESTS_INJECTOR_H

#include "check.h"

#include <errno.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* FAULT_PLACE: an mmap that names the place it wants. FAULT_OWN: one of less than 1 MiB anywhere,
   which only the allocator's own structures ask for. FAULT_ANY: all of them, counted together. */
enum { FAULT_MMAP, FAULT_MUNMAP, FAULT_MADVISE, FAULT_MREMAP, FAULT_MPROTECT, FAULT_PLACE,
       FAULT_OWN, FAULT_ANY, FAULT_KINDS };
static const char *const fault_names[FAULT_KINDS] = {
    "mmap", "munmap", "madvise", "mremap", "mprotect", "place", "own", "any"};
static const long fault_numbers[] = {SYS_mmap, SYS_munmap, SYS_madvise, SYS_mremap, SYS_mprotect};

/* Calls [first, first + count) of the kind fail, counted from 1 while faults are armed. With a seed
   other than 0 one call in four fails instead, which ones depends on the seed. */
typedef struct fault {
    unsigned kind;
    int error;
    uint64_t first;
    uint64_t count;
    uint64_t seed;
} fault_t;

typedef struct injection {
    fault_t fault;
    bool is_armed;
    uint64_t calls[FAULT_KINDS]; /* While armed. */
    uint64_t refused;
    uint64_t mapped_bytes; /* Always: what the allocator has from the kernel. */
} injection_t;

static injection_t *injection; /* Shared with whoever forked this process. */

#if defined(__x86_64__)
#define INJECTOR_ARCHITECTURE AUDIT_ARCH_X86_64
static const int injector_registers[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
#define injector_register(context, i) ((context)->uc_mcontext.gregs[injector_registers[i]])
#define injector_result(context) ((context)->uc_mcontext.gregs[REG_RAX])
/* Of a function that has no frame yet. */
#define injector_caller(context) (*(const uintptr_t *)(context)->uc_mcontext.gregs[REG_RSP])

static long injector_call(long number, const long *a)
{
    long result;
    register long d __asm__("r10") = a[3];
    register long e __asm__("r8") = a[4];
    register long f __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(d), "r"(e), "r"(f)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
#define INJECTOR_ARCHITECTURE AUDIT_ARCH_AARCH64
#define injector_register(context, i) ((long)(context)->uc_mcontext.regs[i])
#define injector_result(context) ((context)->uc_mcontext.regs[0])
#define injector_caller(context) ((uintptr_t)(context)->uc_mcontext.regs[30])

static long injector_call(long number, const long *arguments)
{
    register long n __asm__("x8") = number;
    register long a __asm__("x0") = arguments[0];
    register long b __asm__("x1") = arguments[1];
    register long c __asm__("x2") = arguments[2];
    register long d __asm__("x3") = arguments[3];
    register long e __asm__("x4") = arguments[4];
    register long f __asm__("x5") = arguments[5];
    __asm__ volatile("svc 0"
                     : "+r"(a)
                     : "r"(n), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f)
                     : "memory");
    return a;
}
#endif

/* Where the code of the C library lies: it gives stacks of threads back by munmap and madvise. */
static uintptr_t injector_libc_start, injector_libc_size;

static int injector_find_libc(struct dl_phdr_info *object, size_t size, void *nothing)
{
    (void)size, (void)nothing;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const uintptr_t start = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        if ((uintptr_t)munmap - start >= object->dlpi_phdr[i].p_memsz) continue;
        injector_libc_start = start;
        injector_libc_size = object->dlpi_phdr[i].p_memsz;
        return 1;
    }
    return 0;
}

static bool injector_hits(unsigned kind, uint64_t number)
{
    const fault_t *fault = &injection->fault;
    if (kind != fault->kind) return false;
    if (fault->seed == 0) return number - fault->first < fault->count;
    uint64_t x = (number + fault->seed) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 31)) * 0x94d049bb133111ebu;
    return x >> 62 == 0;
}

/* Counts a call of the kind; should it fail? */
static bool injector_count(unsigned kind)
{
    const uint64_t number = __atomic_add_fetch(&injection->calls[kind], 1, __ATOMIC_RELAXED);
    return injector_hits(kind, number);
}

static bool injector_refuses(unsigned kind, const long *arguments)
{
    if (!__atomic_load_n(&injection->is_armed, __ATOMIC_RELAXED)) return false;
    bool refuses = injector_count(kind);
    if (kind == FAULT_MMAP && arguments[0] != 0) refuses |= injector_count(FAULT_PLACE);
    if (kind == FAULT_MMAP && arguments[0] == 0 && arguments[1] < 1 << 20)
        refuses |= injector_count(FAULT_OWN);
    refuses |= injector_count(FAULT_ANY);
    if (refuses) (void)__atomic_add_fetch(&injection->refused, 1, __ATOMIC_RELAXED);
    return refuses;
}

static void injector_account(unsigned kind, const long *arguments, long result)
{
    size_t change = 0;
    if (result < 0 && result >= -4095) return;
    /* A page that is mapped over one of the allocator's own adds nothing. */
    if (kind == FAULT_MMAP && !(arguments[3] & MAP_FIXED)) change = (size_t)arguments[1];
    if (kind == FAULT_MUNMAP) change = -(size_t)arguments[1];
    if (kind == FAULT_MREMAP) change = (size_t)arguments[2] - (size_t)arguments[1];
    (void)__atomic_add_fetch(&injection->mapped_bytes, change, __ATOMIC_RELAXED);
}

static void injector_handle(int signal_number, siginfo_t *info, void *machine_context)
{
    ucontext_t *context = (ucontext_t *)machine_context;
    long arguments[6];
    unsigned kind = 0;
    (void)signal_number;
    for (unsigned i = 0; i < 6; i++) arguments[i] = (long)injector_register(context, i);
    while (kind < FAULT_MPROTECT && fault_numbers[kind] != info->si_syscall) kind++;
    const bool may_be_libcs = kind == FAULT_MUNMAP || kind == FAULT_MADVISE;
    if (may_be_libcs && injector_caller(context) - injector_libc_start < injector_libc_size) {
        injector_result(context) = injector_call(info->si_syscall, arguments);
        return;
    }
    long result = -(long)injection->fault.error;
    if (!injector_refuses(kind, arguments)) result = injector_call(info->si_syscall, arguments);
    injector_account(kind, arguments, result);
    injector_result(context) = result;
}

/* From now on this process, and its children, are under the injector, which refuses nothing yet. */
static void injector_install(void)
{
    (void)dl_iterate_phdr(injector_find_libc, NULL);
    /* Bytes of each function up to its system call, at most; neighbours may follow. */
    const struct { uintptr_t place; unsigned length; } ways[] = {
        {(uintptr_t)syscall, 128}, {(uintptr_t)munmap, 24}, {(uintptr_t)madvise, 24},
        {(uintptr_t)mremap, 96}};
    enum { WAYS = sizeof ways / sizeof ways[0] };
    const unsigned pointer = offsetof(struct seccomp_data, instruction_pointer); /* little endian */
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, INJECTOR_ARCHITECTURE, 0, 3 + 2 * WAYS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, pointer + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(ways[0].place >> 32), 0, 1 + 2 * WAYS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, pointer),
        [5 + 2 * WAYS] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)};
    for (unsigned i = 0; i < WAYS; i++) {
        const unsigned low = (unsigned)ways[i].place;
        const unsigned char rest = (unsigned char)(2 * (WAYS - i) - 1); /* to the look at nr */
        check((ways[0].place >> 32) == ((ways[i].place + ways[i].length) >> 32));
        program[5 + 2 * i] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, low, 0, 1);
        program[6 + 2 * i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K,
                                                          low + ways[i].length, 0, rest);
    }
    const struct sock_fprog filter = {sizeof program / sizeof program[0], program};
    injection = (injection_t *)mmap(NULL, sizeof *injection, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(injection != MAP_FAILED);
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER};
    action.sa_sigaction = injector_handle;
    check_eq(sigaction(SIGSYS, &action, NULL), 0);
    check_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) check_skip("no seccomp here");
}

static void injector_arm(bool armed)
{
    __atomic_store_n(&injection->is_armed, armed, __ATOMIC_RELAXED);
}

#endif
