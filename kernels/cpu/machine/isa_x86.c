// isa_x86.c: the instruction sets of x86-64.
#define _DEFAULT_SOURCE // syscall
#include "machine/hot.h"
#include "machine/isa.h"
#include "product/amx.h"
#include "product/bf16.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

// The tables of the levels that this build includes (RLHF_CPU_LEVELS).
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

#define PACKS_B                                                                                    \
    .pack_rows_f32 = rlhf__bf16_pack_rows_f32, .pack_cols_f32 = rlhf__bf16_pack_cols_f32,          \
    .pack_rows = rlhf__bf16_pack_rows, .pack_cols = rlhf__bf16_pack_cols,                          \
    .turn_b = rlhf__bf16_turn_b, .unquantise = rlhf__bf16_unquantise,                              \
    .unquantise_f32 = rlhf__bf16_unquantise_f32

static const struct rlhf__bf16_gemms on_avx512 = {.rows = RLHF__BF16_MR,
                                                  .columns = RLHF__BF16_NC,
                                                  .k_step = 1,
                                                  .panel = rlhf__bf16_panel,
                                                  .pack_a = rlhf__bf16_pack_a,
                                                  .few = rlhf__bf16_few,
                                                  PACKS_B};
static const struct rlhf__bf16_gemms on_amx = {.rows = RLHF__AMX_MR,
                                               .columns = RLHF__BF16_NC,
                                               .k_step = RLHF__AMX_K,
                                               .begin = rlhf__amx_begin,
                                               .end = rlhf__amx_end,
                                               .panel = rlhf__amx_panel,
                                               .pack_a_rows = rlhf__amx_pack_rows,
                                               .pack_a = rlhf__amx_pack_a,
                                               PACKS_B};

static const struct rlhf__level levels[RLHF__ISA_COUNT] = {
    {"baseline", &rlhf__hot_table_baseline, "SSE2, 4 lanes", "own tiles", "as f32", NULL},
    {"avx2", AVX2, "AVX2 and FMA, 8 lanes", "own tiles", "as f32", NULL},
    {"avx512", AVX512, "AVX-512, 16 lanes", "own tiles", "as f32", NULL},
    {"avx512_bf16", AVX512_BF16, "AVX-512 with BF16, 16 lanes", "own tiles", "own tiles",
     &on_avx512},
    {"amx", AVX512_BF16, "AVX-512 with BF16, 16 lanes", "own tiles", "own tiles on AMX", &on_amx}};

const struct rlhf__level *rlhf__isa_level(int isa) { return &levels[isa]; }

const char *rlhf__isa_arithmetic(int isa) { return isa == RLHF__ISA_AMX ? "v1-amx" : "v1"; }

#ifdef RLHF_AMX_IN_C // a build for tests (tests/kernels/amx_in_c.h)
static const char *lacks_amx(void) { return NULL; }
#else
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
#endif

// The features of the CPU whose registers the kernel saves. (__builtin_cpu_supports reads a table
// that not every compiler's library fills.)
struct features {
    unsigned leaf_1_c, leaf_7_b, leaf_7_1_a;
    int avx, avx512; // the registers are saved
};

static struct features read_features(void) {
    struct features f = {0, 0, 0, 0, 0};
    unsigned a, b, c, d, low, high;
    const unsigned osxsave = 1u << 27, avx = 0x6, avx512 = 0xe6; // of XCR0
    if (!__get_cpuid(1, &a, &b, &f.leaf_1_c, &d) || !(f.leaf_1_c & osxsave)) return f;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    f.avx = (low & avx) == avx;
    f.avx512 = (low & avx512) == avx512;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return f;
    f.leaf_7_b = b;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) f.leaf_7_1_a = a;
    return f;
}

#define NEED(feature, has)                                                                         \
    if (!(has)) return feature

const char *rlhf__isa_lacks(int isa) {
    const struct features f = read_features();
    if (isa >= RLHF__ISA_AVX2) {
        NEED("avx2", f.avx && f.leaf_7_b >> 5 & 1);
        NEED("fma", f.leaf_1_c >> 12 & 1);
    }
    if (isa >= RLHF__ISA_AVX512) {
        NEED("avx512f", f.avx512 && f.leaf_7_b >> 16 & 1);
        NEED("avx512bw", f.leaf_7_b >> 30 & 1);
        NEED("avx512dq", f.leaf_7_b >> 17 & 1);
        NEED("avx512vl", f.leaf_7_b >> 31);
    }
    if (isa >= RLHF__ISA_AVX512_BF16) NEED("avx512bf16", f.leaf_7_1_a >> 5 & 1);
    return isa >= RLHF__ISA_AMX ? lacks_amx() : NULL;
}

// Intel's cores begin a VDPBF16PS, 64 operations, every second cycle, and two f32 FMAs, also 64
// operations, in each cycle (measured on an Emerald Rapids).
int rlhf__isa_is_slow(int isa) {
    unsigned a, b, c, d;
    return isa == RLHF__ISA_AVX512_BF16 && __get_cpuid(0, &a, &b, &c, &d) &&
           b == signature_INTEL_ebx && c == signature_INTEL_ecx && d == signature_INTEL_edx;
}
