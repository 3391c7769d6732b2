/* What is mapped serves when nothing can be mapped any more: denied SIZE. Fills 200 MiB with blocks
   of SIZE bytes, frees them all and forbids itself mmap and mremap. Then every size up to half of
   what is mapped still is asked for once, and each in turn until there is no more: what is served
   must be six tenths of what was freed, or of what the allocator had kept mapped of it. Huge blocks
   stay what they are; each serves one request up to its length. */
#include "api/heap.h"
#include "check.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

typedef struct link {
    struct link *next;
} link_t;

static const size_t limit_bytes = (size_t)200 << 20;

static size_t fill_and_free(size_t size)
{
    link_t *all = NULL;
    size_t count = 0;
    for (link_t *link; (link = hidden(malloc(size))) != NULL; count++) {
        memset(link, 0x5a, size);
        link->next = all;
        all = link;
    }
    check_eq(errno, ENOMEM);
    while (all != NULL) {
        link_t *next = all->next;
        check(size == sizeof *all || ((unsigned char *)all)[size - 1] == 0x5a);
        free(all);
        all = next;
    }
    return count * size;
}

static void forbid_mappings(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog filter = {5, program};
    check_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) check_skip("no seccomp here");
}

static size_t address_space_bytes(void)
{
    char line[64] = "";
    FILE *file = fopen("/proc/self/statm", "r");
    check(file != NULL && fgets(line, sizeof line, file) != NULL);
    (void)fclose(file);
    return strtoull(line, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {16,     100,     1000,    3000,    9000,    20000,
                                   100000, 1000000, 3000000, 5000000, 20000000};
    check_eq(argc, 2);
    const struct rlimit limit = {limit_bytes, limit_bytes};
    (void)address_space_bytes(); /* what stdio takes */
    free(hidden(malloc(100)));
    const size_t before = address_space_bytes();
    check_eq(setrlimit(RLIMIT_AS, &limit), 0);
    const size_t size = strtoull(argv[1], NULL, 10);
    const bool is_huge = size >= (size_t)4 << 20;
    const size_t freed = fill_and_free(size);
    const size_t mapped = address_space_bytes() - before;
    const size_t served = freed < mapped ? freed : mapped;
    (void)printf("%zu MiB freed, %zu MiB of that are mapped\n", freed >> 20, mapped >> 20);
    forbid_mappings();
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
        void *block = hidden(malloc(sizes[index]));
        check(block != NULL || sizes[index] > (is_huge ? size : served / 2));
        if (block != NULL) memset(block, 1, sizes[index]);
        free(block);
    }
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes && !is_huge; index++) {
        const size_t bytes = fill_and_free(sizes[index]);
        (void)printf("%zu MiB of %zu bytes\n", bytes >> 20, sizes[index]);
        check(bytes >= served / 10 * 6);
    }
    return 0;
}
