/* What this processor offers beyond C. Same names for every architecture. */
#ifndef HAKMEM_BASE_ARCH_X86_64_CPU_H
#define HAKMEM_BASE_ARCH_X86_64_CPU_H

/* Tells the core that it is spinning on a lock held by another. */
static inline void cpu_pause(void)
{
    __builtin_ia32_pause();
}

#endif
