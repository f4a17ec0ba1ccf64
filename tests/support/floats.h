// support/floats.h: changes the floating-point environment of the thread, as foreign code may do.
#ifndef RLHF_TESTS_SUPPORT_FLOATS_H
#define RLHF_TESTS_SUPPORT_FLOATS_H

#include <stdint.h>

// Rounds toward zero and flushes denormals.
static inline void change_floats(void) {
#if defined(__x86_64__)
    const uint32_t control = 0x1f80 | 0x6000 | 0x8040;
    const uint16_t x87 = 0x0f7f;
    __asm__ volatile("ldmxcsr %0" ::"m"(control));
    __asm__ volatile("fldcw %0" ::"m"(x87));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)3 << 22 | (uint64_t)1 << 24));
#endif
}

#endif
