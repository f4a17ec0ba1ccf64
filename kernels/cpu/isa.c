// isa.c: the instruction sets, and the choice among them at run time. No other file queries the
// CPU.
#define _DEFAULT_SOURCE // syscall
#include "hot/hot.h"

#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// The tables of the levels that the build includes (RLHF_CPU_LEVELS).
#ifdef RLHF_NO_AVX2
#define AVX2 NULL
#else
#define AVX2 &rlhf__hot_table_avx2
#endif
#ifdef RLHF_NO_AVX512
#define AVX512 NULL
#else
#define AVX512 &rlhf__hot_table_avx512
#endif
#ifdef RLHF_NO_AVX512_BF16
#define AVX512_BF16 NULL
#else
#define AVX512_BF16 &rlhf__hot_table_avx512_bf16
#endif

static const struct rlhf__level levels[RLHF__ISA_COUNT] = {
    {"baseline", &rlhf__hot_table_baseline, "SSE2, 4 lanes", "own tiles", "as f32"},
    {"avx2", AVX2, "AVX2 and FMA, 8 lanes", "own tiles", "as f32"},
    {"avx512", AVX512, "AVX-512, 16 lanes", "own tiles", "as f32"},
    {"avx512_bf16", AVX512_BF16, "AVX-512 with BF16, 16 lanes", "own tiles", "own tiles"},
    {"amx", AVX512_BF16, "AVX-512 with BF16, 16 lanes", "own tiles", "own tiles on AMX"}};

const struct rlhf__level *rlhf__isa_level(int isa) { return &levels[isa]; }

static const char *lacks_amx(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 }; // of <asm/prctl.h>, Linux 5.16
    unsigned a, b, c, d;
    const unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & amx_tile)) return "amx_tile";
    if (!(d & amx_bf16)) return "amx_bf16";
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0
               ? NULL
               : "the kernel's leave to use AMX";
}

#define NEED(feature)                                                                              \
    if (!__builtin_cpu_supports(feature)) return feature

const char *rlhf__isa_lacks(int isa) {
    __builtin_cpu_init();
    if (isa >= RLHF__ISA_AVX2) {
        NEED("avx2");
        NEED("fma");
    }
    if (isa >= RLHF__ISA_AVX512) {
        NEED("avx512f");
        NEED("avx512bw");
        NEED("avx512dq");
        NEED("avx512vl");
    }
    if (isa >= RLHF__ISA_AVX512_BF16) NEED("avx512bf16");
    return isa >= RLHF__ISA_AMX ? lacks_amx() : NULL;
}

int rlhf__isa_choose(const char *cap) {
    int isa = RLHF__ISA_COUNT - 1;
    if (cap && *cap)
        while (strcmp(cap, levels[isa].name) != 0)
            if (--isa < 0) return -1;
    while (isa > RLHF__ISA_BASELINE && (!levels[isa].hot || rlhf__isa_lacks(isa)))
        isa--;
    return isa;
}
