/* What this processor offers beyond C. Same names for every architecture. */
#ifndef HAKMEM_BASE_ARCH_CPU_H
#define HAKMEM_BASE_ARCH_CPU_H

#include <stdint.h>
#include <sys/syscall.h>

/* Tells the core that it is spinning on a lock held by another. */
static inline void cpu_pause(void)
{
    __asm__ volatile("yield");
}

/* A thread that the C library does not know, by clone(2) with these flags. It calls `run` on a
 * stack that ends at `stack_end` (16-byte aligned), and ends. The kernel writes its number to *id,
 * and 0 when it has ended. Returns the number, or minus the error. The wrappers of the C libraries
 * are no help: that of musl 1.2.5 refuses these flags. */
static inline long cpu_start_thread(unsigned long flags, void *stack_end, uint32_t *id,
                                    void *thread_pointer, void (*run)(void))
{
    register long number __asm__("x8") = SYS_clone;
    register unsigned long result __asm__("x0") = flags;
    register void *stack __asm__("x1") = stack_end;
    register uint32_t *written __asm__("x2") = id;
    register void *pointer __asm__("x3") = thread_pointer;
    register uint32_t *cleared __asm__("x4") = id;
    register void (*entry)(void) __asm__("x5") = run;
    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t" /* the last frame */
                     "blr %[entry]\n\t"
                     "mov x8, %[exit]\n\t"
                     "mov x0, xzr\n\t"
                     "svc 0\n"
                     "1:"
                     : "+r"(result)
                     : "r"(number), "r"(stack), "r"(written), "r"(pointer), "r"(cleared),
                       [entry] "r"(entry), [exit] "i"(SYS_exit)
                     : "memory");
    return (long)result;
}

#endif
