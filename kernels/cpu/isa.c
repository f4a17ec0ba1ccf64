// isa.c: choice of the instruction set at run time, by CPUID. The only file that asks the CPU.
#define _DEFAULT_SOURCE // syscall
#include "hot/hot.h"

#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const names[RLHF__ISA_COUNT] = {"baseline", "avx2", "avx512"};

const char *rlhf__isa_name(int isa) {
    return isa >= 0 && isa < RLHF__ISA_COUNT ? names[isa] : "unknown";
}

// AVX-512 without BF16 (Skylake to Ice Lake) runs the AVX2 level: one level fewer to test.
static int detect(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bf16"))
        return RLHF__ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return RLHF__ISA_AVX2;
    return RLHF__ISA_BASELINE;
}

int rlhf__isa_has_amx(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 }; // of <asm/prctl.h>, Linux 5.16
    unsigned a, b, c, d;
    const unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & amx_bf16) || !(d & amx_tile)) return 0;
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

int rlhf__hot_select(struct rlhf__hot *hot, const char *cap) {
    static const struct rlhf__hot *const tables[RLHF__ISA_COUNT] = {
        &rlhf__hot_table_baseline, &rlhf__hot_table_avx2, &rlhf__hot_table_avx512};
    int isa = detect();
    if (cap && *cap) {
        int want = 0;
        while (want < RLHF__ISA_COUNT && strcmp(cap, names[want]) != 0)
            want++;
        if (want == RLHF__ISA_COUNT) return -1;
        if (want < isa) isa = want;
    }
    *hot = *tables[isa];
    return isa;
}
