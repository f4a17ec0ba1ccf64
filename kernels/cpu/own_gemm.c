// own_gemm.c: see own_gemm.h. The register tiles are in hot/gemm.c.
#include "own_gemm.h"

static int64_t panel_width(const struct rlhf__cpu *cpu) { return (int64_t)8 << cpu->isa; }

static int64_t panel_count(const struct rlhf__cpu *cpu, int64_t n) {
    return (n + panel_width(cpu) - 1) / panel_width(cpu);
}

uint64_t rlhf__own_packed_bytes(const struct rlhf__cpu *cpu, int64_t k, int64_t n) {
    return (uint64_t)(panel_count(cpu, n) * panel_width(cpu) * k) * sizeof(float);
}

void rlhf__own_pack(const struct rlhf__cpu *cpu, float *dst, const float *src, int64_t k, int64_t n,
                    int transposed) {
    int64_t width = panel_width(cpu), panels = panel_count(cpu, n);
    size_t row = transposed ? 1 : (size_t)n, col = transposed ? (size_t)k : 1;
#pragma omp parallel for schedule(static) num_threads(cpu->threads)
    for (int64_t p = 0; p < panels; p++) {
        int64_t cols = n - p * width < width ? n - p * width : width;
        cpu->hot.gemm_pack(dst + p * width * k, src + (size_t)(p * width) * col, (size_t)k,
                           (size_t)cols, row, col);
    }
}

// dst[rows, cols] = src, which lies as [cols, rows].
static void transpose(const struct rlhf__cpu *cpu, float *dst, const float *src, int64_t rows,
                      int64_t cols) {
#pragma omp parallel for schedule(static) num_threads(cpu->threads)
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            dst[i * cols + j] = src[j * rows + i];
}

static void run_panels(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const float *src,
                       const float *packed, const float *bias, float *dst) {
    int64_t width = panel_width(cpu), panels = panel_count(cpu, s->n);
#pragma omp parallel for schedule(static) num_threads(cpu->threads)
    for (int64_t p = 0; p < panels; p++) {
        int64_t c = p * width, cols = s->n - c < width ? s->n - c : width;
        cpu->hot.gemm_panel(dst + c, (size_t)s->n, src, (size_t)s->m, (size_t)s->k,
                            packed + c * s->k, (size_t)cols, bias ? bias + c : NULL, s->accumulate);
    }
}

rlhf_status rlhf__own_product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                              const struct rlhf__packed *wei, const void *plain_wei,
                              const float *bias, void *dst) {
    uint64_t mk = s->src_transposed ? (uint64_t)(s->m * s->k) : 0;
    uint64_t panels = s->wei_packed ? 0 : rlhf__own_packed_bytes(cpu, s->k, s->n) / sizeof(float);
    void *p = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_PRODUCT, (mk + panels) * sizeof(float), &p));
    float *rows = p, *packed = rows + mk;
    if (mk) transpose(cpu, rows, src, s->m, s->k);
    if (panels) rlhf__own_pack(cpu, packed, plain_wei, s->k, s->n, s->wei_transposed);
    run_panels(cpu, s, mk ? rows : src, s->wei_packed ? wei->ptr : packed, bias, dst);
    return RLHF_OK;
}
