/* A signal handler that calls exit may find the allocator between any two instructions. Here a
   child leaves at each of them, while bins grow, are emptied and filled; none of these children
   may hear of a wrong free. */
#include "api/heap.h"
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#if defined(__x86_64__)

enum { BLOCKS = 260, SIZE = 48, MOST_STEPS = 9000, TRAP_FLAG = 0x100 };

static volatile unsigned steps;
static volatile int bad_status;

/* Without the handlers of fork, which would wait for locks that are held here. */
static void leave_in_a_child(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    (void)info;
    const int error = errno;
    const pid_t child = (pid_t)syscall(SYS_fork);
    if (child == 0) exit(0);
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) bad_status = status;
    if (++steps == MOST_STEPS || bad_status != 0)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    errno = error;
}

/* From here each instruction ends in the handler. */
static void step(void)
{
    const struct sigaction action = {.sa_sigaction = leave_in_a_child, .sa_flags = SA_SIGINFO};
    (void)fflush(stdout);
    steps = 0;
    check_eq(sigaction(SIGTRAP, &action, NULL), 0);
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
}

static void step_no_more(void)
{
    __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
    check(steps > BLOCKS);
    check_eq(bad_status, 0);
}

static void *blocks[BLOCKS];

static void take_all(void)
{
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = hidden(malloc(SIZE));
}

static void free_all(void)
{
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
}

test(exit_between_two_instructions_of_free_finds_no_wrong_free)
{
    take_all();
    step();
    free_all();
    step_no_more();
}

test(nor_of_malloc)
{
    step();
    take_all();
    step_no_more();
    free_all();
}

test(nor_while_caches_are_emptied)
{
    take_all();
    free_all();
    step();
    (void)malloc_trim(0);
    step_no_more();
}

#else

test(exit_between_any_two_instructions_finds_no_wrong_free)
{
    check_skip("no single steps here");
}

#endif

check_main()
