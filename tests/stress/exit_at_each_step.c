/* A signal handler that calls exit may find the allocator between any two instructions. Here a
   child leaves at each of them, while bins are filled and emptied and while caches are trimmed;
   none of these children may hear of a wrong free. */
#include "api/heap.h"
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#if defined(__x86_64__)

enum { BLOCKS = 260, SIZE = 48, MOST_STEPS = 20000, TRIM_STEPS = 8000, TRAP_FLAG = 0x100 };

static volatile unsigned steps, most_steps;
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
    if (++steps == most_steps || bad_status != 0)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    errno = error;
}

/* From here each instruction ends in the handler, up to so many. */
static void step(unsigned most)
{
    const struct sigaction action = {.sa_sigaction = leave_in_a_child, .sa_flags = SA_SIGINFO};
    (void)fflush(stdout);
    steps = 0;
    most_steps = most;
    check_eq(sigaction(SIGTRAP, &action, NULL), 0);
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
}

static void step_no_more(void)
{
    __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
    check_eq(bad_status, 0);
}

static void *blocks[BLOCKS];

static void take_all(void)
{
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = hidden(malloc(SIZE));
}

/* In another order than they were taken in, so that what stood in a slot before is not what comes
   to stand there. */
static void free_all(void)
{
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i * 97 % BLOCKS]);
}

/* Afterwards slots that are not in use have the blocks of earlier rounds in them. */
static void warm_up(void)
{
    for (unsigned round = 0; round < 3; round++) {
        take_all();
        free_all();
    }
}

test(exit_between_two_instructions_of_free_finds_no_wrong_free)
{
    warm_up();
    take_all();
    step(MOST_STEPS);
    free_all();
    step_no_more();
    check(steps > BLOCKS && steps < MOST_STEPS);
}

test(nor_of_malloc)
{
    warm_up();
    step(MOST_STEPS);
    take_all();
    step_no_more();
    check(steps > BLOCKS && steps < MOST_STEPS);
    free_all();
}

/* The thread's own cache comes first; the rest takes too many steps. */
test(nor_while_the_cache_is_emptied)
{
    warm_up();
    step(TRIM_STEPS);
    (void)malloc_trim(0);
    step_no_more();
    check_eq(steps, TRIM_STEPS);
}

#else

test(exit_between_any_two_instructions_finds_no_wrong_free)
{
    check_skip("no single steps here");
}

#endif

check_main()
