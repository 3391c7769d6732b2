/* Picks the header of the processor we are built for. */
#ifndef HAKMEM_BASE_ARCH_CPU_H
#define HAKMEM_BASE_ARCH_CPU_H

#if defined(__x86_64__)
#include "base/arch/x86_64/cpu.h"
#elif defined(__aarch64__)
#include "base/arch/aarch64/cpu.h"
#else
#error "HAKMEM runs on x86-64 and AArch64; add a folder under src/base/arch/ for another one"
#endif

#endif
