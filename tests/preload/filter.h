/* A filter of system calls, for programs that forbid themselves some. */
#ifndef HAKMEM_TESTS_FILTER_H
#define HAKMEM_TESTS_FILTER_H

#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* From now on this thread's calls that are listed get the one answer of seccomp, and all others the
   other. False: the machine has no such filters. */
static inline bool filter(const int *calls, unsigned short count, uint32_t listed, uint32_t others)
{
    struct sock_filter code[64];
    unsigned short at = 0;
    check(count < 60);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                              offsetof(struct seccomp_data, nr));
    for (unsigned short call = 0; call < count; call++)
        code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                  (uint32_t)calls[call],
                                                  (unsigned char)(count - call), 0);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
    struct sock_fprog program = {at, code};
    check_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

static inline void forbid(const int *calls, unsigned short count, int error)
{
    if (!filter(calls, count, SECCOMP_RET_ERRNO | (unsigned)error, SECCOMP_RET_ALLOW))
        check_skip("no seccomp here");
}
#endif
