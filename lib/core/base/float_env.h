// float_env.h: the floating-point environment of a thread: rounding, flushing of denormals, masks
// of exceptions.
//
// Foreign code may change the environment and with it the bits of all later results. An object that
// gcc links with -ffast-math turns on flush-to-zero when it is loaded. running.h calls these
// functions around every call of foreign code, so that the host and the next plugin always compute
// in the standard environment.
#ifndef RLHF_CORE_BASE_FLOAT_ENV_H
#define RLHF_CORE_BASE_FLOAT_ENV_H

#include <stdint.h>

// The control bits, without the flags of exceptions that have occurred.
struct rlhf__float_env {
    uint32_t control; // x86-64: MXCSR; aarch64: FPCR
    uint32_t x87;     // x86-64: the control word of the x87
};

#if defined(__x86_64__)
#define RLHF__FLOAT_ENV_STANDARD ((struct rlhf__float_env){0x1f80, 0x37f})
#else
#define RLHF__FLOAT_ENV_STANDARD ((struct rlhf__float_env){0, 0})
#endif

// Returns the environment of this thread. [any]
static inline struct rlhf__float_env rlhf__float_env_get(void) {
    struct rlhf__float_env e = RLHF__FLOAT_ENV_STANDARD;
#if defined(__x86_64__)
    uint16_t word;
    __asm__ volatile("stmxcsr %0" : "=m"(e.control));
    __asm__ volatile("fnstcw %0" : "=m"(word));
    e.control &= 0xffc0;
    e.x87 = word;
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    e.control = (uint32_t)control;
#endif
    return e;
}

// Sets the environment of this thread. [any]
static inline void rlhf__float_env_set(struct rlhf__float_env e) {
#if defined(__x86_64__)
    const uint16_t word = (uint16_t)e.x87;
    __asm__ volatile("ldmxcsr %0" ::"m"(e.control));
    __asm__ volatile("fldcw %0" ::"m"(word));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)e.control));
#else
    (void)e;
#endif
}

// Returns what of `e` differs from the standard environment, as text: "flush-to-zero", "the
// rounding mode" or "its exception masks"; NULL if nothing differs. [any]
static inline const char *rlhf__float_env_odd(struct rlhf__float_env e) {
    const struct rlhf__float_env s = RLHF__FLOAT_ENV_STANDARD;
    const uint32_t odd = e.control ^ s.control, odd_x87 = e.x87 ^ s.x87;
#if defined(__x86_64__)
    const uint32_t flush = 0x8040, rounding = 0x6000, x87_rounding = 0x0f00;
#else
    const uint32_t flush = 1u << 24 | 1u << 19 | 1u, rounding = 3u << 22, x87_rounding = 0;
#endif
    if (odd & flush) return "flush-to-zero";
    if (odd & rounding || odd_x87 & x87_rounding) return "the rounding mode";
    return odd || odd_x87 ? "the masks of exceptions" : (const char *)0;
}

#endif
