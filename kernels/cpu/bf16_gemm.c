// bf16_gemm.c: see bf16_gemm.h. Cuts a product into row blocks, panels and steps of k.
#include "bf16_gemm.h"

#include "hot/bf16.h"
#include "rows.h"

#include <string.h>

#define NC       ((int64_t)RLHF__BF16_NC)
#define MR       ((int64_t)RLHF__BF16_MR)
#define ROWS_MAX (20 * MR)       // rows of A that stay in the second-level cache beside a panel
#define K_WHOLE  ((int64_t)4096) // up to here k is not cut
#define K_STEP   ((int64_t)2048)

static int64_t panel_count(int64_t n) { return (n + NC - 1) / NC; }

static int64_t panel_words(int64_t k) { return (int64_t)rlhf__bf16_panel_words((size_t)k); }

uint64_t rlhf__bf16_packed_bytes(int64_t k, int64_t n) {
    return (uint64_t)(panel_count(n) * panel_words(k)) * sizeof(uint32_t);
}

static void pack_panel(uint32_t *dst, const void *src, int32_t dtype, int64_t k, int64_t n,
                       int transposed, int64_t p) {
    const int64_t c = p * NC;
    const size_t cols = (size_t)(n - c < NC ? n - c : NC), ks = (size_t)k;
    const size_t stride = (size_t)(transposed ? k : n), at = (size_t)(transposed ? c * k : c);
    if (dtype == RLHF_F32 && transposed)
        rlhf__bf16_pack_cols_f32(dst, (const float *)src + at, ks, cols, stride);
    else if (dtype == RLHF_F32)
        rlhf__bf16_pack_rows_f32(dst, (const float *)src + at, ks, cols, stride);
    else if (transposed)
        rlhf__bf16_pack_cols(dst, (const uint16_t *)src + at, ks, cols, stride);
    else
        rlhf__bf16_pack_rows(dst, (const uint16_t *)src + at, ks, cols, stride);
}

void rlhf__bf16_pack(const struct rlhf__cpu *cpu, void *dst, const void *src, int32_t src_dtype,
                     int64_t k, int64_t n, int transposed) {
    const int64_t panels = panel_count(n);
#pragma omp parallel for schedule(static) num_threads(cpu->threads)
    for (int64_t p = 0; p < panels; p++)
        pack_panel((uint32_t *)dst + p * panel_words(k), src, src_dtype, k, n, transposed, p);
}

// One product: s with the operands in place. Work is ordered by row block, then panel.
struct job {
    const struct rlhf__matmul *s;
    const uint16_t *src;
    const uint32_t *wei;
    const float *bias;
    char *dst;
    int64_t panels, block, blocks; // rows of a block, number of blocks
    int64_t k0, k1;                // steps of k of this pass
    int first, last;               // pass
    uint32_t *a_pack;              // of one thread, when src is transposed
};

// Rows row .. row + rows - 1 by panels p0 .. p1 - 1.
static void run_block(const struct job *j, int64_t row, int64_t rows, int64_t p0, int64_t p1) {
    const struct rlhf__matmul *s = j->s;
    struct rlhf__bf16_panel p = {.a = j->src + row * s->k + j->k0,
                                 .a_stride = (size_t)s->k,
                                 .m = (size_t)rows,
                                 .k = (size_t)(j->k1 - j->k0),
                                 .b_next = (size_t)panel_words(s->k),
                                 .ldc = (size_t)s->n,
                                 .c_bf16 = s->out_dtype == RLHF_BF16,
                                 .accumulate = s->accumulate || !j->first};
    if (s->src_transposed) {
        rlhf__bf16_pack_a(j->a_pack, j->src + j->k0 * s->m + row, p.m, p.k, (size_t)s->m);
        p.a = (const uint16_t *)(const void *)j->a_pack;
        p.a_packed = 1;
    }
    const int64_t out_size = (int64_t)rlhf_dtype_size(s->out_dtype);
    for (int64_t i = p0; i < p1; i++) {
        const int64_t c = i * NC;
        p.b = j->wei + i * panel_words(s->k) + j->k0 / 2 * NC;
        p.bias = j->bias && j->last ? j->bias + c : NULL;
        p.c = j->dst + (row * s->n + c) * out_size;
        p.columns = (size_t)(s->n - c < NC ? s->n - c : NC);
        rlhf__bf16_panel_run(&p);
    }
}

// The work from `from` to `to`, counted in row-panels (a block of r rows by one panel counts r).
static void run_range(const struct job *j, int64_t from, int64_t to) {
    for (int64_t b = from / (j->block * j->panels); b < j->blocks; b++) {
        const int64_t row = b * j->block, start = row * j->panels;
        const int64_t rows = j->s->m - row < j->block ? j->s->m - row : j->block;
        if (start >= to) return;
        const int64_t p0 = from <= start ? 0 : (from - start + rows - 1) / rows;
        const int64_t end = (to - start + rows - 1) / rows;
        const int64_t p1 = end < j->panels ? end : j->panels;
        if (p0 < p1) run_block(j, row, rows, p0, p1);
    }
}

static void run_pass(const struct rlhf__cpu *cpu, const struct job *whole, uint64_t a_words) {
    const int64_t total = whole->s->m * whole->panels, threads = cpu->threads;
#pragma omp parallel for schedule(static, 1) num_threads(cpu->threads)
    for (int64_t t = 0; t < threads; t++) {
        struct job j = *whole;
        if (j.a_pack) j.a_pack += (uint64_t)t * a_words;
        run_range(&j, total * t / threads, total * (t + 1) / threads);
    }
}

// All of k in one pass, or in steps that keep the tiles' operands in cache. How it is cut depends
// on k alone.
static rlhf_status run(struct rlhf__cpu *cpu, struct job *j) {
    const int64_t k = j->s->k, step = k <= K_WHOLE ? k : K_STEP;
    const uint64_t a_words = rlhf__bf16_a_words((size_t)j->block, (size_t)step);
    if (j->s->src_transposed) {
        void *p = NULL;
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_SCRATCH,
                                     (uint64_t)cpu->threads * a_words * sizeof(uint32_t), &p));
        j->a_pack = p;
    }
    for (j->k0 = 0; j->k0 < k; j->k0 = j->k1) {
        j->k1 = k - j->k0 < step ? k : j->k0 + step;
        j->first = j->k0 == 0;
        j->last = j->k1 == k;
        run_pass(cpu, j, a_words);
    }
    return RLHF_OK;
}

rlhf_status rlhf__bf16_product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                               const struct rlhf__packed *wei, const void *plain_wei,
                               const float *bias, void *dst) {
    struct job j = {.s = s, .src = src, .bias = bias, .dst = dst, .panels = panel_count(s->n)};
    j.blocks = (s->m + ROWS_MAX - 1) / ROWS_MAX;
    j.block = ((s->m + j.blocks - 1) / j.blocks + MR - 1) / MR * MR;
    j.blocks = (s->m + j.block - 1) / j.block;
    j.wei = wei ? wei->ptr : NULL;
    if (!s->wei_packed) {
        void *p = NULL;
        RLHF_TRY(
            rlhf__cpu_workspace(cpu, RLHF__WS_PRODUCT, rlhf__bf16_packed_bytes(s->k, s->n), &p));
        rlhf__bf16_pack(cpu, p, plain_wei, RLHF_BF16, s->k, s->n, s->wei_transposed);
        j.wei = p;
    }
    if (s->k <= K_WHOLE || s->out_dtype == RLHF_F32) return run(cpu, &j);
    // A bf16 result is summed in f32 first.
    struct rlhf__matmul f = *s;
    void *sum = NULL;
    const uint64_t mn = (uint64_t)(s->m * s->n);
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_WIDEN, mn * sizeof(float), &sum));
    f.out_dtype = RLHF_F32;
    j.s = &f;
    j.dst = sum;
    RLHF_TRY(run(cpu, &j));
    return rlhf__cpu_convert(cpu, dst, RLHF_BF16, sum, RLHF_F32, mn);
}
