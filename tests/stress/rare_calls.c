/* A program that rests makes few calls, all of which hit: what it has freed goes back all the same.
 * Threads built the structures, the main thread took them down, three times over; then somebody
 * makes pairs of malloc and free, so many in a tenth of a second. */
#include "api/heap.h"
#include "check.h"
#include "stress/resident.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 4, NODES = 150000, ROUNDS = 3, TENTHS = 200, SMALL_STACK = 64 * 1024 };
static void *nodes[WORKERS][NODES];

static void *build(void *argument)
{
    void **mine = nodes[(uintptr_t)argument];
    for (size_t i = 0; i < NODES; i++) {
        const size_t size = 32 + i * 37 % 400;
        check((mine[i] = hidden(malloc(size))) != NULL);
        memset(mine[i], 1, size);
    }
    return NULL;
}

static void build_and_take_down(void)
{
    pthread_t threads[WORKERS];
    for (uintptr_t i = 0; i < WORKERS; i++)
        check_eq(pthread_create(&threads[i], NULL, build, (void *)i), 0);
    for (size_t i = 0; i < WORKERS; i++) check_eq(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < NODES; i++)
        for (size_t worker = 0; worker < WORKERS; worker++) free(nodes[worker][i]);
}

static atomic_bool is_down, is_at_rest;
static size_t rest_kib;

/* Each tenth of a second so many calls that hit; `argument` says how many. */
static void *rest(void *argument)
{
    while (!is_at_rest) {
        (void)usleep(100000);
        for (uintptr_t call = 0; call < (uintptr_t)argument; call++) free(hidden(malloc(64)));
    }
    return NULL;
}

/* Little is held, or much time has passed: a busy machine gives a call less of its millisecond. */
static void *look(void *unused)
{
    while (!is_down) (void)usleep(10000);
    for (unsigned tenth = 0; tenth < TENTHS && resident_kib() > rest_kib; tenth++)
        (void)usleep(100000);
    is_at_rest = true;
    return unused;
}

/* In so many threads; 0: in the main thread. */
static void rest_in(unsigned callers, uintptr_t calls)
{
    pthread_t threads[64];
    pthread_attr_t small;
    check_eq(pthread_attr_init(&small), 0);
    check_eq(pthread_attr_setstacksize(&small, SMALL_STACK), 0);
    if (callers == 0) (void)rest((void *)calls);
    for (unsigned i = 0; i < callers; i++)
        check_eq(pthread_create(&threads[i], &small, rest, (void *)calls), 0);
    for (unsigned i = 0; i < callers; i++) check_eq(pthread_join(threads[i], NULL), 0);
}

static void must_rest_at(unsigned callers, uintptr_t calls, size_t most_kib)
{
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        memset(nodes, 1, sizeof nodes); /* Resident from here on. */
        const size_t before = resident_kib();
        rest_kib = before + most_kib;
        pthread_t looker; /* Before the rounds: to start a thread takes calls. */
        check_eq(pthread_create(&looker, NULL, look, NULL), 0);
        for (unsigned round = 0; round < ROUNDS; round++) build_and_take_down();
        is_down = true;
        rest_in(callers, calls);
        resident_must_not_exceed("of a program that rests", resident_kib() - before, most_kib);
        _exit(0);
    }
    int status = 1;
    check_eq(waitpid(child, &status, 0), child);
    check_eq(status, 0);
}

static void skip_elsewhere(void)
{
    if (!heap_is_hakmem()) check_skip("only hakmem promises this");
    if (!resident_is_ours) check_skip("a sanitizer's own memory counts");
}

enum { REST_KIB = 20 * 1024 };

test(a_pair_in_a_tenth_of_a_second_is_enough)
{
    skip_elsewhere();
    must_rest_at(0, 1, REST_KIB);
}

test(so_are_many_that_all_hit)
{
    skip_elsewhere();
    must_rest_at(0, 50, REST_KIB);
    must_rest_at(0, 200, REST_KIB);
    must_rest_at(0, 2000, REST_KIB);
}

test(the_caller_may_be_another_thread)
{
    skip_elsewhere();
    must_rest_at(1, 1, REST_KIB);
    must_rest_at(1, 2000, REST_KIB);
}

test(or_there_may_be_sixty_four)
{
    skip_elsewhere();
    must_rest_at(64, 1, REST_KIB + 64 * 64);
    must_rest_at(64, 200, REST_KIB + 64 * 64);
}

check_main()
