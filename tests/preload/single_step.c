/* Counts atomic instructions: single_step LIBRARY. Starts itself with the library preloaded, steps
   (on x86-64) from the first int3 to the second and looks at every instruction: a lock prefix, or
   xchg with memory, which locks by itself. Prints the places of the first few, then "STEPS ATOMIC".
   */
#include "stress/payload.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

static pid_t child;

/* ---- what is stepped through: one thread that allocates and frees ---- */

static void churn(size_t count)
{
    static void *blocks[64];
    uint64_t random = 7;
    for (size_t i = 0; i < count; i++) {
        void **slot = &blocks[random_step(&random) % 64];
        free(*slot);
        *slot = malloc(random_size(&random, i % 128 == 0 ? 18 : 12));
    }
    for (size_t i = 0; i < 200; i++) free(malloc(i * 16));
    for (size_t i = 0; i < 64; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

static int be_stepped(void)
{
    churn(2000); /* The first calls of a process may do more. */
    __asm__ volatile("int3");
    churn(1000);
    __asm__ volatile("int3");
    return 0;
}

/* ---- what steps ---- */

static bool is_prefix(unsigned char byte)
{
    return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e ||
           byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 || byte == 0x65;
}

static bool is_atomic(uint64_t address)
{
    unsigned char bytes[16];
    for (size_t i = 0; i < 2; i++) {
        const long word = ptrace(PTRACE_PEEKTEXT, child, (void *)(address + i * 8), NULL);
        memcpy(bytes + i * 8, &word, 8);
    }
    size_t at = 0;
    while (at < 8 && is_prefix(bytes[at])) at++;
    if (bytes[at] == 0xf0) return true;
    if ((bytes[at] & 0xf0) == 0x40) at++; /* REX */
    return (bytes[at] == 0x86 || bytes[at] == 0x87) && bytes[at + 1] < 0xc0;
}

static void tell_place(uint64_t address)
{
    char path[64];
    char line[512];
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)child);
    FILE *maps = fopen(path, "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end, offset;
        if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) != 3) continue;
        const char *name = strrchr(line, '/');
        if (address < start || address >= end || name == NULL) continue;
        (void)printf("at %.*s+0x%lx\n", (int)strcspn(name + 1, "\n"), name + 1,
                     (unsigned long)address - start + offset);
    }
    if (maps != NULL) (void)fclose(maps);
}

/* False when the program has ended. */
static bool stopped_by(int wanted)
{
    int status = 0;
    check_eq(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) || WIFSIGNALED(status)) return false;
    check_eq(WSTOPSIG(status), wanted);
    return true;
}

static uint64_t program_counter(void)
{
    struct user_regs_struct registers;
    check_eq(ptrace(PTRACE_GETREGS, child, NULL, &registers), 0);
    return registers.rip;
}

int main(int argc, char **argv)
{
    if (argc == 1) return be_stepped();
    child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(CHECK_SKIPPED);
        (void)setenv("LD_PRELOAD", argv[1], 1);
        (void)execl(argv[0], argv[0], (char *)NULL);
        _exit(1);
    }
    if (!stopped_by(SIGTRAP)) check_skip("no ptrace here"); /* The exec. */
    check_eq(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
    check(stopped_by(SIGTRAP)); /* The first int3. */
    size_t steps = 0;
    size_t atomic_count = 0;
    for (;;) {
        const uint64_t address = program_counter();
        if ((ptrace(PTRACE_PEEKTEXT, child, (void *)address, NULL) & 0xff) == 0xcc) break;
        if (is_atomic(address) && atomic_count++ < 8) tell_place(address);
        check_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        check(stopped_by(SIGTRAP));
        steps++;
    }
    (void)printf("%zu %zu\n", steps, atomic_count);
    (void)kill(child, SIGKILL);
    return 0;
}
