/* What this processor offers beyond C. Same names for every architecture. */
#ifndef HAKMEM_BASE_ARCH_CPU_H
#define HAKMEM_BASE_ARCH_CPU_H

#include <stdint.h>
#include <sys/syscall.h>

/* Tells the core that it is spinning on a lock held by another. */
static inline void cpu_pause(void)
{
    __builtin_ia32_pause();
}

/* A thread that the C library does not know, by clone(2) with these flags. It calls `run` on a
 * stack that ends at `stack_end` (16-byte aligned), and ends. The kernel writes its number to *id,
 * and 0 when it has ended. Returns the number, or minus the error. The wrappers of the C libraries
 * are no help: that of musl 1.2.5 refuses these flags. */
static inline long cpu_start_thread(unsigned long flags, void *stack_end, uint32_t *id,
                                    void *thread_pointer, void (*run)(void))
{
    long result = SYS_clone;
    register uint32_t *cleared __asm__("r10") = id;
    register void *pointer __asm__("r8") = thread_pointer;
    register void (*entry)(void) __asm__("r9") = run;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t" /* the last frame */
                     "call *%[entry]\n\t"
                     "mov %[exit], %%eax\n\t"
                     "xor %%edi, %%edi\n\t"
                     "syscall\n"
                     "1:"
                     : "+a"(result)
                     : "D"(flags), "S"(stack_end), "d"(id), "r"(cleared), "r"(pointer),
                       [entry] "r"(entry), [exit] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    return result;
}

#endif
