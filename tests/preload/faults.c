/* System calls that fail: faults CALL ERROR. One thread forbids itself the call (seccomp filters
   are per thread) and goes on allocating: NULL with ENOMEM is allowed, anything else wrong is not.
   The main thread, for which the call still works, then finds the heap whole. With "exec" in front
   (faults exec CALL ERROR PROGRAM …) the call is forbidden to a program from its start. */
#include "stress/payload.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

typedef struct named { const char *name; int number; } named_t;
static const named_t calls[] = {{"mmap", SYS_mmap},         {"munmap", SYS_munmap},
                                {"mremap", SYS_mremap},     {"mprotect", SYS_mprotect},
                                {"madvise", SYS_madvise},   {"getrandom", SYS_getrandom},
                                {"sysinfo", SYS_sysinfo},   {"membarrier", SYS_membarrier},
                                {"sched_yield", SYS_sched_yield}};
static const named_t errors[] = {{"ENOMEM", ENOMEM}, {"EINVAL", EINVAL}, {"ENOSYS", ENOSYS},
                                 {"EPERM", EPERM},   {"EAGAIN", EAGAIN}};
static int forbidden_call;
static int forbidden_error;
static size_t refused_count;

static int number_of(const named_t *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0) return table[i].number;
    }
    check_fail(__FILE__, __LINE__, name);
}

static void forbid(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)forbidden_call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)forbidden_error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog filter = {4, program};
    check_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) check_skip("no seccomp here");
}

static void take(payload_t **slot, size_t size, uint64_t *random)
{
    errno = 0;
    void *block = hidden(random_step(random) % 4 == 0 ? calloc(1, size) : malloc(size));
    if (block == NULL) {
        check_eq(errno, ENOMEM);
        refused_count++;
        return;
    }
    *slot = payload_put(block, size, random_step(random));
}

static void grow(payload_t **slot, size_t size, uint64_t *random)
{
    payload_verify(*slot);
    void *block = hidden(realloc(hidden(*slot), size));
    if (block == NULL) {
        check_eq(errno, ENOMEM);
        payload_verify(*slot); /* A failure leaves it alone. */
        refused_count++;
        return;
    }
    *slot = payload_put(block, size, random_step(random));
}

static void zeroed_where_served(size_t size)
{
    unsigned char *block = hidden(calloc(1, size));
    check(block == NULL || heap_is_zero(block, size));
    if (block != NULL) memset(block, 0xee, size);
    free(block);
}

static void churn(size_t count)
{
    static payload_t *slots[64];
    uint64_t random = 42;
    for (size_t i = 0; i < count; i++) {
        payload_t **slot = &slots[random_step(&random) % 64];
        const size_t size = random_size(&random, i % 16 == 0 ? 24 : 16);
        errno = 0;
        if (*slot == NULL) {
            take(slot, size, &random);
        } else if (i % 3 == 0) {
            grow(slot, size, &random);
        } else {
            payload_free(*slot);
            *slot = NULL;
        }
        if (i % 32 == 0) zeroed_where_served(size);
        if (i % 1000 == 0) (void)malloc_trim(0);
    }
    for (size_t i = 0; i < 64; i++) {
        payload_free(slots[i]);
        slots[i] = NULL;
    }
}

static void *suffer(void *unused)
{
    forbid();
    churn(20000);
    (void)printf("refused under the fault: %zu\n", refused_count);
    return unused;
}

int main(int argc, char **argv)
{
    const bool exec = argc > 4 && strcmp(argv[1], "exec") == 0;
    check(exec || argc == 3);
    const char *const *names = (const char *const *)argv + (exec ? 2 : 1);
    forbidden_call = number_of(calls, sizeof calls / sizeof calls[0], names[0]);
    forbidden_error = number_of(errors, sizeof errors / sizeof errors[0], names[1]);
    if (exec) {
        forbid();
        (void)execv(argv[4], argv + 4);
        check_fail(__FILE__, __LINE__, "execv");
    }
    churn(3000);
    pthread_t thread;
    check_eq(pthread_create(&thread, NULL, suffer, NULL), 0);
    check_eq(pthread_join(thread, NULL), 0);
    refused_count = 0;
    churn(20000);
    check_eq(refused_count, 0);
    (void)puts("ok");
    return 0;
}
