// gemm.c: see gemm.h. Divides a GEMM into row blocks, panels and steps of k, and runs it.
#include "product/gemm.h"

#include "machine/split.h"
#include "product/gemm_pack.h"

#define K_WHOLE ((int64_t)RLHF__GEMM_SUM_K) // up to this size, k is not divided
#define K_STEP  ((int64_t)2048)

#define LEAST_ROWS 48 // least number of rows in a block

int rlhf__gemm_used(const struct rlhf__cpu *cpu, int32_t dtype) {
    return dtype != RLHF_BF16 || cpu->bf16;
}

static void run_panel(const struct rlhf__gemm_job *j, const struct rlhf__panel *p) {
    if (j->s->in_dtype == RLHF_BF16)
        j->cpu->bf16->panel(p);
    else
        j->cpu->hot.gemm_panel(p);
}

// panel_words_of returns the number of words of a panel of B. A converted panel (j->turned) has
// only the steps of k that belong to this pass. Any other panel has all steps. first_word_of
// returns the offset of this pass's first step in such a panel.
static int64_t panel_words_of(const struct rlhf__gemm_job *j) {
    return rlhf__gemm_words(j->s->in_dtype, j->turned ? j->k1 - j->k0 : j->s->k) * j->width;
}

static int64_t first_word_of(const struct rlhf__gemm_job *j) {
    return j->turned ? 0 : rlhf__gemm_words(j->s->in_dtype, j->k0) * j->width;
}

// ---- quantised B ----

// True if B is quantised and panels are unpacked one by one. With wei_across they are converted.
static int unpacks(const struct rlhf__matmul *s) { return s->quantised.panels && !s->wei_across; }

// The first column of panel i, and its number of columns.
static int64_t column_of(const struct rlhf__gemm_job *j, int64_t i) {
    return j->unpacked ? j->s->quantised.panel[i].column : i * j->width;
}

static size_t columns_of(const struct rlhf__gemm_job *j, int64_t i) {
    const int64_t left = j->s->n - i * j->width;
    if (j->unpacked) return (size_t)j->s->quantised.panel[i].columns;
    return (size_t)(left < j->width ? left : j->width);
}

// Multiplies with panel i of a quantised B. *p describes the panel except for b.
static void run_quantised(const struct rlhf__gemm_job *j, struct rlhf__panel *p, int64_t i) {
    const struct rlhf__quantised_panel *q = &j->s->quantised.panel[i];
    const uint8_t *from = (const uint8_t *)j->wei + q->at;
    const size_t k0 = (size_t)j->k0;
    const int is_few = p->m <= RLHF__GEMM_FEW && !p->a_packed;
    p->b = j->unpacked;
    p->b_next = 0;
    if (j->s->in_dtype == RLHF_BF16) {
        if (is_few && j->cpu->bf16->few) {
            j->cpu->bf16->few(p, from, q->format, k0);
            return;
        }
        j->cpu->bf16->unquantise(j->unpacked, from, q->format, k0, p->k);
    } else {
        if (is_few) {
            j->cpu->hot.gemm_few(p, from, q->format, k0);
            return;
        }
        j->cpu->hot.unquantise((float *)(void *)j->unpacked, from, q->format, k0, p->k,
                               p->pairs ? RLHF__UNQUANTISE_PAIRS : RLHF__UNQUANTISE_F32);
    }
    run_panel(j, p);
}

// Multiplies with panel i of the first GEMM.
static void run_first(const struct rlhf__gemm_job *j, struct rlhf__panel *p, int64_t i) {
    if (j->unpacked)
        run_quantised(j, p, i);
    else
        run_panel(j, p);
}

// ---- panels of a thread ----

// Multiplies with panel i of the first GEMM, which *p describes, and then with panel i of the
// second GEMM.
static void run_both(const struct rlhf__gemm_job *j, const struct rlhf__panel *p, int64_t row,
                     int64_t i) {
    const struct rlhf__gemm_second *o = j->second;
    const int64_t panel_words = rlhf__gemm_words(RLHF_BF16, o->k) * j->width;
    const uint32_t *wei = j->turned ? j->turned_second : o->wei;
    struct rlhf__panel first = *p, last = *p;
    if (p->c_bf16) {
        first.c = j->sum;
        first.ldc = (size_t)j->width;
        first.c_bf16 = 0;
        last.addend = j->sum;
    }
    run_first(j, &first, i);
    last.a_packed = 0;
    last.a = (const char *)o->src + (uint64_t)(row * o->k) * sizeof(uint16_t);
    last.a_stride = last.k = (size_t)o->k;
    last.b = wei + i * panel_words;
    last.b_next = (size_t)panel_words;
    last.bias = NULL;
    last.accumulate = !p->c_bf16;
    run_panel(j, &last);
}

// A position among the results of a block: a row of a panel. The results are ordered by panel, then
// by row.
struct place {
    int64_t panel, row;
};

// Computes the results of a block from `from` up to, but not including, `to`. The block begins at
// row `first` and has `rows` rows.
static void run_block(const struct rlhf__gemm_job *j, int64_t first, int64_t rows,
                      struct place from, struct place to) {
    const struct rlhf__matmul *s = j->s;
    const int32_t in = s->in_dtype;
    const int64_t panel_words = panel_words_of(j), ldc = s->ldc ? s->ldc : s->n;
    const int64_t end = to.panel + (to.row > 0), k = j->k1 - j->k0;
    const uint32_t *wei = j->unpacked ? NULL : (j->turned ? j->turned : j->wei) + first_word_of(j);
    const int64_t low = end - from.panel == 1 ? from.row : 0; // the first row that is needed
    const int64_t high = end - from.panel == 1 && to.row ? to.row : rows;
    const char *a = j->src + (uint64_t)((first + low) * s->k + j->k0) * rlhf_dtype_size(in);
    uint64_t a_row = (uint64_t)s->k * rlhf_dtype_size(in);
    struct rlhf__panel p = {.a_stride = (size_t)s->k,
                            .k = (size_t)k,
                            .b_next = (size_t)panel_words,
                            .ldc = (size_t)ldc,
                            .chain = (size_t)j->chain,
                            .pairs = s->pairs,
                            .c_bf16 = s->out_dtype == RLHF_BF16,
                            .accumulate = !s->goes_on && (s->accumulate || !j->first),
                            .goes_on = s->goes_on};
    if (rlhf__gemm_packs_a(j, high - low, end - from.panel)) {
        rlhf__gemm_pack_a(j, first + low, (size_t)(high - low), p.k);
        a = (const char *)j->a_pack;
        a_row = (uint64_t)rlhf__gemm_a_row_words(j->cpu, in, k) * sizeof *j->a_pack;
        p.a_packed = 1;
    }
    for (int64_t i = from.panel; i < end; i++) {
        const int64_t c = column_of(j, i), r = i == from.panel ? from.row : 0, row = first + r;
        p.m = (size_t)((i == to.panel ? to.row : rows) - r);
        p.a = a + (uint64_t)(r - low) * a_row;
        p.b = j->unpacked ? NULL : wei + i * panel_words;
        p.bias = j->bias && j->last ? j->bias + c : NULL;
        p.c = j->dst + (uint64_t)(row * ldc + c) * rlhf_dtype_size(s->out_dtype);
        p.from = j->add && j->first ? j->add + row * s->n + c : NULL;
        p.columns = columns_of(j, i);
        if (j->second)
            run_both(j, &p, row, i);
        else
            run_first(j, &p, i);
    }
}

#define SPLIT_TILES 8 // least number of tiles in a panel that is divided between two threads

// The place of a block's result number `at`, rounded up to whole tiles or, if the block has few
// rows, to whole panels. Two threads that share a panel both read its part of B, which takes long
// if few rows are multiplied with it.
static struct place place_of(const struct rlhf__gemm_job *j, int64_t rows, int64_t at) {
    const int64_t tile = rlhf__gemm_tile_rows(j->cpu, j->s->in_dtype);
    const int64_t grain = rows < SPLIT_TILES * tile ? rows : tile;
    const int64_t row = (at % rows + grain - 1) / grain * grain;
    return row < rows ? (struct place){at / rows, row} : (struct place){at / rows + 1, 0};
}

// Run the work items `from` .. `to` - 1. An item is one row of the result in one panel, so a block
// of r rows has r items for each panel.
static void run_range(const struct rlhf__gemm_job *j, int64_t from, int64_t to) {
    for (int64_t b = from / (j->block * j->panels); b < j->blocks; b++) {
        const int64_t row = b * j->block, start = row * j->panels;
        const int64_t rows = j->s->m - row < j->block ? j->s->m - row : j->block;
        const int64_t items = rows * j->panels;
        if (start >= to) return;
        const struct place p = place_of(j, rows, from <= start ? 0 : from - start);
        const struct place q = place_of(j, rows, to - start < items ? to - start : items);
        if (p.panel < q.panel || (p.panel == q.panel && p.row < q.row))
            run_block(j, row, rows, p, q);
    }
}

int64_t rlhf__gemm_pass(int64_t k) { return k <= K_WHOLE ? k : K_STEP; }

// The number of words of a panel of quantised B that one thread unpacks.
static int64_t unpacked_words(const struct rlhf__gemm_job *j) {
    return rlhf__gemm_words(j->s->in_dtype, rlhf__gemm_pass(j->s->k)) * j->width;
}

struct pass {
    const struct rlhf__gemm_job *whole;
    uint64_t a_words; // of packed A for each thread
};

// The share of thread t.
static void run_share(const void *job, int64_t t) {
    const struct pass *p = job;
    struct rlhf__gemm_job j = *p->whole;
    const int64_t total = j.s->m * j.panels, threads = j.cpu->threads;
    const int mode = j.s->in_dtype == RLHF_BF16 && j.cpu->bf16->begin;
    if (j.a_pack) j.a_pack += (uint64_t)t * p->a_words;
    if (j.sum) j.sum += t * j.block * j.width;
    if (j.unpacked) j.unpacked += t * unpacked_words(&j);
    if (mode) j.cpu->bf16->begin();
    run_range(&j, total * t / threads, total * (t + 1) / threads);
    if (mode) j.cpu->bf16->end();
}

static void run_pass(const struct rlhf__gemm_job *whole, uint64_t a_words) {
    const int threads = whole->cpu->threads;
    rlhf__split_run(whole->cpu, threads, threads, run_share, &(const struct pass){whole, a_words});
}

// Returns the length of the chains of an f32 sum; 0 means a single chain. Short chains lose less
// precision: with chains of 64 steps, errors are smaller than PyTorch's (bench/README.md).
static int64_t chain_of(const struct rlhf__matmul *s) {
    return s->in_dtype != RLHF_F32 || s->pairs ? 0 : RLHF__GEMM_CHAIN;
}

// Divide the rows into blocks of about equal size, in whole tiles. B is read once per block, so
// blocks are large: up to 720 rows, if their rows of A fit in half of the L2 cache. The division
// does not change any bit. Compared with blocks of 240 rows, the GEMM of 1024 x 896 by 896 x 9728
// in bf16 is 6 % faster. For 1024 x 3072 by 3072 x 768, where 240 rows do not fit in the cache, the
// gain is 2 %.
static void cut_rows(struct rlhf__gemm_job *j, int64_t m, int64_t tile) {
    const int64_t pass = rlhf__gemm_pass(j->s->k), k = pass > 0 ? pass : 1;
    const int64_t fit = j->cpu->half_l2 / (k * (int64_t)rlhf_dtype_size(j->s->in_dtype));
    const int64_t least = tile < LEAST_ROWS / 4 ? LEAST_ROWS : 4 * tile;
    const int64_t most = (fit < least ? least : fit > 720 ? 720 : fit) / tile * tile;
    j->blocks = (m + most - 1) / most;
    j->block = ((m + j->blocks - 1) / j->blocks + tile - 1) / tile * tile;
    j->blocks = (m + j->block - 1) / j->block;
}

// The job of a GEMM with at least one row. The operands are not set.
static struct rlhf__gemm_job job_of(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                                    const struct rlhf__gemm_second *second) {
    struct rlhf__gemm_job j = {.cpu = cpu, .s = s, .second = second};
    j.panels = unpacks(s) ? s->quantised.panels : rlhf__gemm_panel_count(cpu, s->in_dtype, s->n);
    j.width = rlhf__gemm_panel_width(cpu, s->in_dtype);
    j.chain = chain_of(s);
    cut_rows(&j, s->m, rlhf__gemm_tile_rows(cpu, s->in_dtype));
    return j;
}

// ---- workspaces ----

// The number of words of A that one thread packs.
static uint64_t a_words_of(const struct rlhf__gemm_job *j) {
    const int64_t pass = rlhf__gemm_pass(j->s->k);
    return (uint64_t)(j->block * rlhf__gemm_a_row_words(j->cpu, j->s->in_dtype, pass));
}

static uint64_t a_bytes(const struct rlhf__gemm_job *j) {
    return (uint64_t)j->cpu->threads * a_words_of(j) * 4;
}

static uint64_t unpacked_bytes(const struct rlhf__gemm_job *j) {
    return (uint64_t)j->cpu->threads * (uint64_t)unpacked_words(j) * 4;
}

static uint64_t b_bytes(const struct rlhf__gemm_job *j) {
    return rlhf__gemm_packed_bytes(j->cpu, j->s->in_dtype, j->s->k, j->s->n);
}

// 1 if the sum must be computed in f32 first, because k is divided and the result is bf16.
static int is_summed_first(const struct rlhf__gemm_job *j) {
    return !j->second && j->s->k > K_WHOLE && !j->chain && j->s->out_dtype != RLHF_F32;
}

static uint64_t result_bytes(const struct rlhf__gemm_job *j) {
    return (uint64_t)(j->s->m * j->s->n) * sizeof(float);
}

// The size in bytes of the sums of the first of two GEMMs. Each thread has sums for one panel of a
// block of rows.
static uint64_t panel_sum_bytes(const struct rlhf__gemm_job *j) {
    return (uint64_t)j->cpu->threads * (uint64_t)(j->block * j->width) * sizeof(float);
}

void rlhf__gemm_needs(const struct rlhf__cpu *cpu, const struct rlhf__matmul *s,
                      const struct rlhf__gemm_second *second, struct rlhf__cpu_needs *n) {
    if (s->m == 0) return;
    const struct rlhf__gemm_job j = job_of(cpu, s, second);
    if (rlhf__gemm_packs_a(&j, j.block, j.panels)) rlhf__cpu_need(n, RLHF__WS_SCRATCH, a_bytes(&j));
    if (s->wei_across)
        rlhf__cpu_need(n, RLHF__WS_PRODUCT, rlhf__gemm_turned_bytes(&j, rlhf__gemm_pass(j.s->k)));
    if (unpacks(s)) rlhf__cpu_need(n, RLHF__WS_PRODUCT, unpacked_bytes(&j));
    if (!s->wei_packed) rlhf__cpu_need(n, RLHF__WS_PRODUCT, b_bytes(&j));
    if (is_summed_first(&j)) rlhf__cpu_need(n, RLHF__WS_WIDEN, result_bytes(&j));
    if (second && s->out_dtype == RLHF_BF16) rlhf__cpu_need(n, RLHF__WS_SUM, panel_sum_bytes(&j));
}

// ---- GEMMs ----

// Run all of k in one pass, or in several passes, so that the operands of a tile stay in the cache.
// The division into passes does not depend on the number of rows.
static rlhf_status run(struct rlhf__cpu *cpu, struct rlhf__gemm_job *j) {
    const int64_t k = j->s->k, step = rlhf__gemm_pass(k);
    if (rlhf__gemm_packs_a(j, j->block, j->panels)) {
        void *p = NULL;
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_SCRATCH, a_bytes(j), &p));
        j->a_pack = p;
    }
    if (unpacks(j->s)) {
        void *p = NULL;
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_PRODUCT, unpacked_bytes(j), &p));
        j->unpacked = p;
    }
    if (j->s->wei_across) RLHF_TRY(rlhf__gemm_turned_place(cpu, j, step));
    for (j->k0 = 0; j->k0 < k; j->k0 = j->k1) {
        j->k1 = k - j->k0 < step ? k : j->k0 + step;
        j->first = j->k0 == 0;
        j->last = j->k1 == k;
        if (j->turned) rlhf__gemm_turn(j);
        run_pass(j, a_words_of(j));
    }
    return RLHF_OK;
}

rlhf_status rlhf__gemm_product(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                               const void *packed_wei, const void *plain_wei, const float *bias,
                               void *dst) {
    struct rlhf__gemm_job j = job_of(cpu, s, NULL);
    j.src = src;
    j.bias = bias;
    j.dst = dst;
    j.wei = packed_wei;
    if (!s->wei_packed) {
        void *p = NULL;
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_PRODUCT, b_bytes(&j), &p));
        rlhf__gemm_pack(cpu, p, s->in_dtype, plain_wei, s->in_dtype, s->k, s->n, s->wei_transposed,
                        0);
        j.wei = p;
    }
    if (!is_summed_first(&j)) return run(cpu, &j);
    struct rlhf__matmul f = *s;
    void *sum = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_WIDEN, result_bytes(&j), &sum));
    f.out_dtype = RLHF_F32;
    j.s = &f;
    j.dst = sum;
    RLHF_TRY(run(cpu, &j));
    return cpu->table.convert(cpu, dst, RLHF_BF16, sum, RLHF_F32, (uint64_t)(s->m * s->n));
}

rlhf_status rlhf__gemm_add(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias, const float *add, float *dst) {
    if (s->m == 0) return RLHF_OK;
    struct rlhf__gemm_job j = job_of(cpu, s, NULL);
    j.src = src;
    j.wei = wei;
    j.bias = bias;
    j.add = add;
    j.dst = (char *)dst;
    return run(cpu, &j);
}

rlhf_status rlhf__gemm_sum(struct rlhf__cpu *cpu, const struct rlhf__matmul *s, const void *src,
                           const void *wei, const float *bias,
                           const struct rlhf__gemm_second *second, void *dst) {
    if (s->m == 0) return RLHF_OK;
    struct rlhf__gemm_job j = job_of(cpu, s, second);
    j.src = src;
    j.wei = wei;
    j.bias = bias;
    j.dst = dst;
    if (s->out_dtype == RLHF_BF16) {
        void *p = NULL;
        RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_SUM, panel_sum_bytes(&j), &p));
        j.sum = p;
    }
    return run(cpu, &j);
}
