/* System calls that fail: built with the call and the error, -DCALL=SYS_mmap -DERROR=ENOMEM. One
   thread forbids itself the call (seccomp filters are per thread) and goes on allocating: NULL with
   ENOMEM is allowed, anything else wrong is not. The main thread, for which the call still works,
   then finds the heap whole. faults PROGRAM … forbids it to a program from its start. */
#include "filter.h"
#include "stress/payload.h"

#include <errno.h>
#include <pthread.h>

static const int forbidden_call = CALL;
static size_t refused_count;

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
    forbid(&forbidden_call, 1, ERROR);
    churn(20000);
    (void)printf("refused under the fault: %zu\n", refused_count);
    return unused;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        forbid(&forbidden_call, 1, ERROR);
        (void)execv(argv[1], argv + 1);
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
