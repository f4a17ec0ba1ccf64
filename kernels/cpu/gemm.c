// gemm.c: see gemm.h. Cuts a product into row blocks, panels and steps of k. A "word" is what one
// column of a panel holds for one step: an f32, or a pair of bf16.
#include "gemm.h"

#include "hot/amx.h"
#include "hot/bf16.h"

#define K_WHOLE ((int64_t)RLHF__GEMM_SUM_K) // up to here k is not cut
#define K_STEP  ((int64_t)2048)

#define LEAST_ROWS  48 // of a block
#define PACK_PANELS 12 // of AMX
#define TURN_ROWS   24 // without AMX
#define TURN_PANELS 4

int rlhf__gemm_used(const struct rlhf__cpu *cpu, int32_t dtype) {
    return !cpu->library && (dtype != RLHF_BF16 || cpu->has_bf16);
}

// ---- geometry ----

static int64_t panel_width(const struct rlhf__cpu *cpu, int32_t dtype) {
    if (dtype == RLHF_BF16) return RLHF__BF16_NC;
    return cpu->isa >= RLHF__ISA_AVX512 ? 32 : cpu->isa == RLHF__ISA_AVX2 ? 16 : 8;
}

static int64_t tile_rows(const struct rlhf__cpu *cpu, int32_t dtype) {
    if (dtype == RLHF_BF16) return cpu->isa == RLHF__ISA_AMX ? RLHF__AMX_MR : RLHF__BF16_MR;
    return cpu->isa >= RLHF__ISA_AVX512 ? 12 : 6;
}

static int64_t words(int32_t dtype, int64_t k) { return dtype == RLHF_BF16 ? (k + 1) / 2 : k; }

// Of a packed row of A.
static int64_t a_row_words(const struct rlhf__cpu *cpu, int32_t dtype, int64_t k) {
    if (dtype == RLHF_BF16 && cpu->isa == RLHF__ISA_AMX)
        k = (k + RLHF__AMX_K - 1) / RLHF__AMX_K * RLHF__AMX_K;
    return words(dtype, k);
}

static int64_t panel_count(const struct rlhf__cpu *cpu, int32_t dtype, int64_t n) {
    return (n + panel_width(cpu, dtype) - 1) / panel_width(cpu, dtype);
}

uint64_t rlhf__gemm_packed_bytes(const struct rlhf__cpu *cpu, int32_t dtype, int64_t k, int64_t n) {
    return (uint64_t)(panel_count(cpu, dtype, n) * panel_width(cpu, dtype) * words(dtype, k)) * 4;
}

// ---- packing ----

static void pack_panel(const struct rlhf__cpu *cpu, uint32_t *dst, int32_t dtype, const void *src,
                       int32_t src_dtype, size_t k, size_t columns, size_t stride, int transposed,
                       int stream) {
    if (dtype == RLHF_F32 && transposed)
        cpu->hot.gemm_pack_cols(dst, src, k, columns, stride, stream);
    else if (dtype == RLHF_F32)
        cpu->hot.gemm_pack_rows(dst, src, k, columns, stride, stream);
    else if (src_dtype == RLHF_F32 && transposed)
        rlhf__bf16_pack_cols_f32(dst, src, k, columns, stride, stream);
    else if (src_dtype == RLHF_F32)
        rlhf__bf16_pack_rows_f32(dst, src, k, columns, stride, stream);
    else if (transposed)
        rlhf__bf16_pack_cols(dst, src, k, columns, stride);
    else
        rlhf__bf16_pack_rows(dst, src, k, columns, stride);
}

void rlhf__gemm_pack(const struct rlhf__cpu *cpu, void *dst, int32_t dtype, const void *src,
                     int32_t src_dtype, int64_t k, int64_t n, int transposed, int later) {
    const int64_t panels = panel_count(cpu, dtype, n), width = panel_width(cpu, dtype);
    const int64_t panel_words = words(dtype, k) * width;
    const int stream = later && panels * panel_words * 4 > cpu->half_l2;
#pragma omp parallel for schedule(static) num_threads(cpu->threads)
    for (int64_t p = 0; p < panels; p++) {
        const int64_t c = p * width, columns = n - c < width ? n - c : width;
        const uint64_t at = (uint64_t)(transposed ? c * k : c) * rlhf_dtype_size(src_dtype);
        pack_panel(cpu, (uint32_t *)dst + p * panel_words, dtype, (const char *)src + at, src_dtype,
                   (size_t)k, (size_t)columns, (size_t)(transposed ? k : n), transposed, stream);
    }
}

// ---- running ----

#define TURN_BLOCKS 16 // fewer are turned by one thread

// One product: s with the operands in place. Work is ordered by row block, then panel.
struct job {
    const struct rlhf__cpu *cpu;
    const struct rlhf__matmul *s;
    const char *src;
    const uint32_t *wei; // B packed; with s->wei_across its transpose
    uint32_t *turned;    // wei_across: B's panels of this pass, and those of the second product
    uint32_t *turned_second;
    const float *bias;
    char *dst;
    int64_t panels, width;                  // of B, columns of one
    int64_t block, blocks;                  // rows of a block, number of blocks
    int64_t k0, k1;                         // steps of k of this pass
    int64_t chain;                          // of struct rlhf__panel
    int first, last;                        // pass
    uint32_t *a_pack;                       // of one thread, where packs() says so
    const struct rlhf__gemm_second *second; // NULL: there is one product
    const float *add;                       // [m, n] what the result is on top of, NULL: C or none
    float *sum; // [block, width] of one thread: the first product's, when the result is bf16
};

// Whether a block's rows of A are packed: always from its transpose; also rows that many panels
// read (1024 x 768 by 768 x 2304: 10 % faster on AMX, 15 % in f32 on AVX-512; in bf16 on
// AVX512_BF16 2 to 5 %, and as much at 320 wide), unless pairs of bf16 would begin amid a word.
static int packs(const struct job *j, int64_t rows, int64_t panels) {
    if (j->s->src_transposed) return 1;
    if (j->s->in_dtype == RLHF_BF16 && j->cpu->isa == RLHF__ISA_AMX)
        return rows > RLHF__AMX_MR && panels >= PACK_PANELS;
    const int words_whole = j->s->in_dtype == RLHF_F32 || j->s->k % 2 == 0;
    return words_whole && rows >= TURN_ROWS && panels >= TURN_PANELS;
}

// Packs the block's rows of A, which lie in rows or as its transpose.
static void pack_a(const struct job *j, int64_t row, size_t rows, size_t k) {
    const size_t m = (size_t)j->s->m;
    const int64_t at = j->s->src_transposed ? j->k0 * j->s->m + row : row * j->s->k + j->k0;
    const char *from = j->src + (uint64_t)at * rlhf_dtype_size(j->s->in_dtype);
    const uint16_t *bf16 = (const uint16_t *)(const void *)from;
    const int amx = j->s->in_dtype == RLHF_BF16 && j->cpu->isa == RLHF__ISA_AMX;
    if (!j->s->src_transposed && amx)
        rlhf__amx_pack_rows((uint16_t *)j->a_pack, bf16, rows, k, (size_t)j->s->k);
    else if (!j->s->src_transposed) // a pair of bf16 moves as an f32 does
        j->cpu->hot.gemm_turn_a(j->a_pack, (const float *)(const void *)from, rows,
                                (size_t)words(j->s->in_dtype, (int64_t)k),
                                (size_t)words(j->s->in_dtype, j->s->k));
    else if (j->s->in_dtype != RLHF_BF16)
        j->cpu->hot.gemm_pack_a(j->a_pack, (const float *)(const void *)from, rows, k, m);
    else if (amx)
        rlhf__amx_pack_a((uint16_t *)j->a_pack, bf16, rows, k, m);
    else
        rlhf__bf16_pack_a(j->a_pack, bf16, rows, k, m);
}

static void run_panel(const struct job *j, const struct rlhf__panel *p) {
    if (j->s->in_dtype != RLHF_BF16)
        j->cpu->hot.gemm_panel(p);
    else if (j->cpu->isa == RLHF__ISA_AMX)
        rlhf__amx_panel(p);
    else
        rlhf__bf16_panel(p);
}

// Words of a panel as this pass reads it, and from where it begins to the pass's first step of k.
static int64_t panel_words_of(const struct job *j) {
    return words(j->s->in_dtype, j->turned ? j->k1 - j->k0 : j->s->k) * j->width;
}

static int64_t first_word_of(const struct job *j) {
    return j->turned ? 0 : words(j->s->in_dtype, j->k0) * j->width;
}

// Steps k0 .. k1 - 1 of B's panels from the panels of its transpose [n, k], block by block: as
// rlhf__gemm_pack makes them of the dense matrix.
static void turn_b(const struct job *j, uint32_t *to, const uint32_t *from, int64_t k0,
                   int64_t k1) {
    const int32_t in = j->s->in_dtype;
    const int64_t n = j->s->n, width = j->width;
    const int64_t from_words = words(in, n) * width, to_words = words(in, k1 - k0) * width;
    const int64_t q0 = k0 / width, q1 = (k1 + width - 1) / width, blocks = (q1 - q0) * j->panels;
#pragma omp parallel for collapse(2) schedule(static)                                              \
    num_threads(j->cpu->threads) if (blocks >= TURN_BLOCKS)
    for (int64_t p = 0; p < j->panels; p++)
        for (int64_t q = q0; q < q1; q++) {
            const int64_t rows = k1 - q * width, columns = n - p * width;
            uint32_t *dst = to + p * to_words + words(in, q * width - k0) * width;
            const uint32_t *src = from + q * from_words + words(in, p * width) * width;
            const size_t r = (size_t)(rows < width ? rows : width);
            const size_t c = (size_t)(columns < width ? columns : width);
            if (in == RLHF_BF16)
                rlhf__bf16_turn_b(dst, src, r, c, (size_t)from_words);
            else
                j->cpu->hot.gemm_turn_b(dst, src, r, c, (size_t)from_words);
        }
}

// Room for the panels of one pass, and behind it for those of the second product.
static rlhf_status turned_place(struct rlhf__cpu *cpu, struct job *j, int64_t step) {
    const int64_t k2 = j->second ? j->second->k : 0, most = step < j->s->k ? step : j->s->k;
    const int64_t all = words(j->s->in_dtype, most) + words(j->s->in_dtype, k2);
    void *p = NULL;
    RLHF_TRY(
        rlhf__cpu_workspace(cpu, RLHF__WS_PRODUCT, (uint64_t)(j->panels * j->width * all) * 4, &p));
    j->turned = p;
    if (!j->second) return RLHF_OK;
    j->turned_second = j->turned + words(j->s->in_dtype, most) * j->panels * j->width;
    turn_b(j, j->turned_second, j->second->wei, 0, k2);
    return RLHF_OK;
}

// What run_panel does with panel i of the first product, p, and then with that of the second.
static void run_both(const struct job *j, const struct rlhf__panel *p, int64_t row, int64_t i) {
    const struct rlhf__gemm_second *o = j->second;
    const int64_t panel_words = words(RLHF_BF16, o->k) * j->width;
    const uint32_t *wei = j->turned ? j->turned_second : o->wei;
    struct rlhf__panel first = *p, last = *p;
    if (p->c_bf16) {
        first.c = j->sum;
        first.ldc = (size_t)j->width;
        first.c_bf16 = 0;
        last.addend = j->sum;
    }
    run_panel(j, &first);
    last.a_packed = 0;
    last.a = (const char *)o->src + (uint64_t)(row * o->k) * sizeof(uint16_t);
    last.a_stride = last.k = (size_t)o->k;
    last.b = wei + i * panel_words;
    last.b_next = (size_t)panel_words;
    last.bias = NULL;
    last.accumulate = !p->c_bf16;
    run_panel(j, &last);
}

// Rows row .. row + rows - 1 by panels p0 .. p1 - 1.
static void run_block(const struct job *j, int64_t row, int64_t rows, int64_t p0, int64_t p1) {
    const struct rlhf__matmul *s = j->s;
    const int32_t in = s->in_dtype;
    const int64_t panel_words = panel_words_of(j), ldc = s->ldc ? s->ldc : s->n;
    const uint32_t *wei = (j->turned ? j->turned : j->wei) + first_word_of(j);
    struct rlhf__panel p = {.a = j->src + (uint64_t)(row * s->k + j->k0) * rlhf_dtype_size(in),
                            .a_stride = (size_t)s->k,
                            .m = (size_t)rows,
                            .k = (size_t)(j->k1 - j->k0),
                            .b_next = (size_t)panel_words,
                            .ldc = (size_t)ldc,
                            .chain = (size_t)j->chain,
                            .c_bf16 = s->out_dtype == RLHF_BF16,
                            .accumulate = !s->goes_on && (s->accumulate || !j->first),
                            .goes_on = s->goes_on};
    if (packs(j, rows, p1 - p0)) {
        pack_a(j, row, p.m, p.k);
        p.a = j->a_pack;
        p.a_packed = 1;
    }
    for (int64_t i = p0; i < p1; i++) {
        const int64_t c = i * j->width;
        p.b = wei + i * panel_words;
        p.bias = j->bias && j->last ? j->bias + c : NULL;
        p.c = j->dst + (uint64_t)(row * ldc + c) * rlhf_dtype_size(s->out_dtype);
        p.from = j->add && j->first ? j->add + row * s->n + c : NULL;
        p.columns = (size_t)(s->n - c < j->width ? s->n - c : j->width);
        if (j->second)
            run_both(j, &p, row, i);
        else
            run_panel(j, &p);
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

static void run_pass(const struct job *whole, uint64_t a_words) {
    const int64_t total = whole->s->m * whole->panels, threads = whole->cpu->threads;
    const int amx = whole->cpu->isa == RLHF__ISA_AMX && whole->s->in_dtype == RLHF_BF16;
#pragma omp parallel for schedule(static, 1) num_threads(whole->cpu->threads)
    for (int64_t t = 0; t < threads; t++) {
        struct job j = *whole;
        if (j.a_pack) j.a_pack += (uint64_t)t * a_words;
        if (j.sum) j.sum += t * j.block * j.width;
        if (amx) rlhf__amx_begin();
        run_range(&j, total * t / threads, total * (t + 1) / threads);
        if (amx) rlhf__amx_end();
    }
}

int64_t rlhf__gemm_chain(int64_t k) { return k <= K_WHOLE ? k : K_STEP; }

// Steps of k in one pass. A chain may be a pass, whose sums are added to C, where C holds nothing
// else.
static int64_t step_of(const struct job *j) {
    const struct rlhf__matmul *s = j->s;
    if (!j->chain || s->k <= K_WHOLE) return rlhf__gemm_chain(s->k);
    return s->accumulate || s->bias ? s->k : j->chain;
}

// All of k in one pass, or in steps that keep the tiles' operands in cache. How it is cut depends
// on k alone.
static rlhf_status run(struct rlhf__cpu *cpu, struct job *j) {
    const int64_t k = j->s->k, step = step_of(j);
    const uint64_t a_words = (uint64_t)(j->block * a_row_words(cpu, j->s->in_dtype, step));
    if (packs(j, j->block, j->panels)) {
        void *p = NULL;
        RLHF_TRY(
            rlhf__cpu_workspace(cpu, RLHF__WS_SCRATCH, (uint64_t)cpu->threads * a_words * 4, &p));
        j->a_pack = p;
    }
    if (j->s->wei_across) RLHF_TRY(turned_place(cpu, j, step));
    for (j->k0 = 0; j->k0 < k; j->k0 = j->k1) {
        j->k1 = k - j->k0 < step ? k : j->k0 + step;
        j->first = j->k0 == 0;
        j->last = j->k1 == k;
        if (j->turned) turn_b(j, j->turned, j->wei, j->k0, j->k1);
        run_pass(j, a_words);
    }
    return RLHF_OK;
}

// On AVX-512 an f32 sum with a packed right operand is one of chains, cut by k as oneDNN 2.6 cuts
// it, which multiplied there before: the bits are the same.
static int64_t chain_of(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s) {
    if (s->in_dtype != RLHF_F32 || !s->wei_packed || cpu->isa < RLHF__ISA_AVX512) return 0;
    return s->k <= 512 ? s->k : s->k <= 1024 ? 512 : 1024;
}

// Row blocks of about the same size, whole tiles, whose rows of A fit half of the second-level
// cache (1024 x 896 by 896 x 9728 in bf16: 6 % faster than in blocks of 240 rows; 1024 x 3072 by
// 3072 x 768, where 240 are too many, 2 %): B is read once for each of them. No bit depends on the
// cut.
static void cut_rows(struct job *j, int64_t m, int64_t tile) {
    const int64_t step = step_of(j), k = step > 0 ? step : 1;
    const int64_t fit = j->cpu->half_l2 / (k * (int64_t)rlhf_dtype_size(j->s->in_dtype));
    const int64_t least = tile < LEAST_ROWS / 4 ? LEAST_ROWS : 4 * tile;
    const int64_t most = (fit < least ? least : fit > 720 ? 720 : fit) / tile * tile;
    j->blocks = (m + most - 1) / most;
    j->block = ((m + j->blocks - 1) / j->blocks + tile - 1) / tile * tile;
    j->blocks = (m + j->block - 1) / j->block;
}

rlhf_status rlhf__gemm_product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                               const void *packed_wei, const void *plain_wei, const float *bias,
                               void *dst) {
    struct job j = {.cpu = cpu, .s = s, .src = src, .bias = bias, .dst = dst};
    j.panels = panel_count(cpu, s->in_dtype, s->n);
    j.width = panel_width(cpu, s->in_dtype);
    j.wei = packed_wei;
    j.chain = chain_of(cpu, s);
    cut_rows(&j, s->m, tile_rows(cpu, s->in_dtype));
    if (!s->wei_packed) {
        void *p = NULL;
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_PRODUCT,
                                     rlhf__gemm_packed_bytes(cpu, s->in_dtype, s->k, s->n), &p));
        rlhf__gemm_pack(cpu, p, s->in_dtype, plain_wei, s->in_dtype, s->k, s->n, s->wei_transposed,
                        0);
        j.wei = p;
    }
    if (s->k <= K_WHOLE || j.chain || s->out_dtype == RLHF_F32) return run(cpu, &j);
    // A bf16 result is summed in f32 first.
    struct rlhf__matmul f = *s;
    void *sum = NULL;
    const uint64_t mn = (uint64_t)(s->m * s->n);
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_WIDEN, mn * sizeof(float), &sum));
    f.out_dtype = RLHF_F32;
    j.s = &f;
    j.dst = sum;
    RLHF_TRY(run(cpu, &j));
    return cpu->table.convert(cpu, dst, RLHF_BF16, sum, RLHF_F32, mn);
}

rlhf_status rlhf__gemm_add(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias, const float *add, float *dst) {
    struct job j = {
        .cpu = cpu, .s = s, .src = src, .wei = wei, .bias = bias, .add = add, .dst = (char *)dst};
    if (s->m == 0) return RLHF_OK;
    j.chain = chain_of(cpu, s);
    j.panels = panel_count(cpu, s->in_dtype, s->n);
    j.width = panel_width(cpu, s->in_dtype);
    cut_rows(&j, s->m, tile_rows(cpu, s->in_dtype));
    return run(cpu, &j);
}

rlhf_status rlhf__gemm_sum(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias,
                           const struct rlhf__gemm_second *second, void *dst) {
    struct job j = {
        .cpu = cpu, .s = s, .src = src, .wei = wei, .bias = bias, .dst = dst, .second = second};
    if (s->m == 0) return RLHF_OK;
    j.panels = panel_count(cpu, s->in_dtype, s->n);
    j.width = panel_width(cpu, s->in_dtype);
    cut_rows(&j, s->m, tile_rows(cpu, s->in_dtype));
    if (s->out_dtype == RLHF_BF16) {
        void *p = NULL;
        const uint64_t one = (uint64_t)(j.block * j.width) * sizeof(float);
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_SUM, (uint64_t)cpu->threads * one, &p));
        j.sum = p;
    }
    return run(cpu, &j);
}
