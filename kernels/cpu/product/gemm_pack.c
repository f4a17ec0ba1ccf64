// gemm_pack.c: see gemm_pack.h.
#include "product/gemm_pack.h"

#include "machine/split.h"

#include <string.h>

#define PACK_PANELS 12 // with pack_a_rows (AMX)
#define TURN_ROWS   24 // with gemm_turn_a
#define TURN_PANELS 4
#define TURN_BLOCKS 16 // with fewer blocks, one thread converts them

uint64_t rlhf__gemm_packed_bytes(const struct rlhf__cpu *cpu, int32_t dtype, int64_t k, int64_t n) {
    return (uint64_t)(rlhf__gemm_panel_count(cpu, dtype, n) * rlhf__gemm_panel_width(cpu, dtype) *
                      rlhf__gemm_words(dtype, k)) *
           4;
}

static void pack_panel(const struct rlhf__cpu *cpu, uint32_t *dst, int32_t dtype, const void *src,
                       int32_t src_dtype, size_t k, size_t columns, size_t stride, int transposed,
                       int stream) {
    if (dtype == RLHF_F32 && transposed)
        cpu->hot.gemm_pack_cols(dst, src, k, columns, stride, stream);
    else if (dtype == RLHF_F32)
        cpu->hot.gemm_pack_rows(dst, src, k, columns, stride, stream);
    else if (src_dtype == RLHF_F32 && transposed)
        cpu->bf16->pack_cols_f32(dst, src, k, columns, stride, stream);
    else if (src_dtype == RLHF_F32)
        cpu->bf16->pack_rows_f32(dst, src, k, columns, stride, stream);
    else if (transposed)
        cpu->bf16->pack_cols(dst, src, k, columns, stride);
    else
        cpu->bf16->pack_rows(dst, src, k, columns, stride);
}

struct pack {
    const struct rlhf__cpu *cpu;
    uint32_t *dst;
    const char *src;
    int32_t dtype, src_dtype;
    int64_t k, n, width, panel_words; // width: columns of a panel
    int transposed, stream;
};

static void pack_panel_of(const void *job, int64_t panel) {
    const struct pack *p = job;
    const int64_t c = panel * p->width, columns = p->n - c < p->width ? p->n - c : p->width;
    const uint64_t at = (uint64_t)(p->transposed ? c * p->k : c) * rlhf_dtype_size(p->src_dtype);
    pack_panel(p->cpu, p->dst + panel * p->panel_words, p->dtype, p->src + at, p->src_dtype,
               (size_t)p->k, (size_t)columns, (size_t)(p->transposed ? p->k : p->n), p->transposed,
               p->stream);
}

void rlhf__gemm_pack(const struct rlhf__cpu *cpu, void *dst, int32_t dtype, const void *src,
                     int32_t src_dtype, int64_t k, int64_t n, int transposed, int later) {
    const int64_t panels = rlhf__gemm_panel_count(cpu, dtype, n);
    const int64_t width = rlhf__gemm_panel_width(cpu, dtype);
    const int64_t panel_words = rlhf__gemm_words(dtype, k) * width;
    const int stream = later && panels * panel_words * 4 > cpu->half_l2;
    rlhf__split_run(cpu, cpu->threads, panels, pack_panel_of,
                    &(const struct pack){cpu, dst, src, dtype, src_dtype, k, n, width, panel_words,
                                         transposed, stream});
}

// ---- A ----

// True if A is packed. A transposed A is always packed. Any other A is packed if many panels read
// its rows, with one exception: on AVX512_BF16, bf16 rows are not packed if k is odd, because they
// would start in the middle of a word. Packing makes 1024 x 768 by 768 x 2304 faster: by 10 % on
// AMX, by 15 % in f32 on AVX-512, and by 2 to 5 % in bf16 on AVX512_BF16. The gains are the same if
// B has 320 instead of 2304 columns.
int rlhf__gemm_packs_a(const struct rlhf__gemm_job *j, int64_t rows, int64_t panels) {
    if (j->s->src_transposed) return 1;
    if (j->s->in_dtype == RLHF_BF16 && j->cpu->bf16->pack_a_rows)
        return rows > j->cpu->bf16->rows && panels >= PACK_PANELS;
    const int words_whole = j->s->in_dtype == RLHF_F32 || j->s->k % 2 == 0;
    return words_whole && rows >= TURN_ROWS && panels >= TURN_PANELS;
}

void rlhf__gemm_pack_a(const struct rlhf__gemm_job *j, int64_t row, size_t rows, size_t k) {
    const size_t m = (size_t)j->s->m;
    const int64_t at = j->s->src_transposed ? j->k0 * j->s->m + row : row * j->s->k + j->k0;
    const char *from = j->src + (uint64_t)at * rlhf_dtype_size(j->s->in_dtype);
    const uint16_t *bf16 = (const uint16_t *)(const void *)from;
    const int own = j->s->in_dtype == RLHF_BF16 && j->cpu->bf16->pack_a_rows;
    if (!j->s->src_transposed && own)
        j->cpu->bf16->pack_a_rows(j->a_pack, bf16, rows, k, (size_t)j->s->k);
    else if (!j->s->src_transposed) // a bf16 pair is moved like an f32 number
        j->cpu->hot.gemm_turn_a(j->a_pack, (const float *)(const void *)from, rows,
                                (size_t)rlhf__gemm_words(j->s->in_dtype, (int64_t)k),
                                (size_t)rlhf__gemm_words(j->s->in_dtype, j->s->k));
    else if (j->s->in_dtype != RLHF_BF16)
        j->cpu->hot.gemm_pack_a(j->a_pack, (const float *)(const void *)from, rows, k, m);
    else
        j->cpu->bf16->pack_a(j->a_pack, bf16, rows, k, m);
}

// ---- B from its transpose ----

struct turn {
    const struct rlhf__gemm_job *j;
    uint32_t *to;
    const uint32_t *from;
    int64_t from_words, to_words; // of a panel
    int64_t k0, k1, q0, q;        // panels of the transpose: the first one, and their number
};

// Fills in block i: the part of a panel of B that comes from one panel of the transpose.
static void turn_block(const void *job, int64_t i) {
    const struct turn *t = job;
    const struct rlhf__gemm_job *j = t->j;
    const int32_t in = j->s->in_dtype;
    const int64_t width = j->width, p = i / t->q, q = t->q0 + i % t->q;
    const int64_t rows = t->k1 - q * width, columns = j->s->n - p * width;
    uint32_t *dst = t->to + p * t->to_words + rlhf__gemm_words(in, q * width - t->k0) * width;
    const uint32_t *src = t->from + q * t->from_words + rlhf__gemm_words(in, p * width) * width;
    const size_t r = (size_t)(rows < width ? rows : width);
    const size_t c = (size_t)(columns < width ? columns : width);
    if (in == RLHF_BF16)
        j->cpu->bf16->turn_b(dst, src, r, c, (size_t)t->from_words);
    else
        j->cpu->hot.gemm_turn_b(dst, src, r, c, (size_t)t->from_words, j->s->pairs);
}

// Fill in B's panels for the steps k0 .. k1 - 1 of k, block by block, from the panels of its
// transpose [n, k]. The result equals the panels that rlhf__gemm_pack makes from the dense matrix.
static void turn_b(const struct rlhf__gemm_job *j, uint32_t *to, const uint32_t *from, int64_t k0,
                   int64_t k1) {
    const int32_t in = j->s->in_dtype;
    const int64_t n = j->s->n, width = j->width, q0 = k0 / width;
    const int64_t from_k = j->s->pairs ? rlhf__pairs_k(n) : n; // steps of k of the transpose
    const struct turn t = {.j = j,
                           .to = to,
                           .from = from,
                           .from_words = rlhf__gemm_words(in, from_k) * width,
                           .to_words = rlhf__gemm_words(in, k1 - k0) * width,
                           .k0 = k0,
                           .k1 = k1,
                           .q0 = q0,
                           .q = (k1 + width - 1) / width - q0};
    const int64_t blocks = t.q * j->panels;
    rlhf__split_run(j->cpu, blocks < TURN_BLOCKS ? 1 : j->cpu->threads, blocks, turn_block, &t);
}

// The number of words of the first GEMM's converted panels.
static int64_t turned_words(const struct rlhf__gemm_job *j, int64_t step) {
    const int64_t most = step < j->s->k ? step : j->s->k;
    return rlhf__gemm_words(j->s->in_dtype, most) * j->panels * j->width;
}

uint64_t rlhf__gemm_turned_bytes(const struct rlhf__gemm_job *j, int64_t step) {
    const int64_t k2 = j->second ? j->second->k : 0;
    const int64_t second = rlhf__gemm_words(j->s->in_dtype, k2) * j->panels * j->width;
    return (uint64_t)(turned_words(j, step) + second) * 4;
}

rlhf_status rlhf__gemm_turned_place(struct rlhf__cpu *cpu, struct rlhf__gemm_job *j, int64_t step) {
    void *p = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_PRODUCT, rlhf__gemm_turned_bytes(j, step), &p));
    j->turned = p;
    if (!j->second) return RLHF_OK;
    j->turned_second = j->turned + turned_words(j, step);
    turn_b(j, j->turned_second, j->second->wei, 0, j->second->k);
    return RLHF_OK;
}

// ---- B from the quantised panels of its transpose ----

// Stores steps `done` .. `done` + n - 1 of a panel of B, which are in rows[n][width]. n is even,
// except for the last steps.
static void put_steps(const struct rlhf__gemm_job *j, uint32_t *to, const float *rows, int64_t done,
                      int64_t n) {
    const int64_t w = j->width;
    if (j->s->in_dtype == RLHF_BF16) {
        j->cpu->bf16->pack_rows_f32(to + done / 2 * w, rows, (size_t)n, (size_t)w, (size_t)w, 0);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + ((done + i) ^ j->s->pairs) * w, rows + i * w, (size_t)w * sizeof *rows);
    if (j->s->pairs && n % 2) memset(to + (done + n - 1) * w, 0, (size_t)w * sizeof *rows);
}

// Converts columns first .. stop - 1 of a quantised panel to steps of panel p of B in bf16. Both
// numbers are even.
static void turn_words(const struct rlhf__gemm_job *j, uint32_t *to,
                       const struct rlhf__quantised_panel *from, int64_t p, int64_t first,
                       int64_t stop) {
    const int64_t w = j->width;
    uint32_t words[(RLHF__GEMM_WIDEST / 2 + 1) * RLHF__GEMM_WIDEST]; // one row more than is needed
    j->cpu->bf16->unquantise(words, (const uint8_t *)j->wei + from->at, from->format,
                             (size_t)(p * w), (size_t)w);
    j->cpu->bf16->turn_b(to, words + first, (size_t)(stop - first), (size_t)w, 0);
}

// Fills in panel p of B for the steps of this pass. A step is a column of the quantised panels, and
// the panel's columns are as many of their steps. The steps of a quantised panel may begin at an
// odd step of B, so a step may have to wait for the second one of its pair.
static void turn_quantised(const void *job, int64_t p) {
    const struct rlhf__gemm_job *j = job;
    const struct rlhf__quantised *q = &j->s->quantised;
    const int64_t w = j->width;
    uint32_t *to = j->turned + p * rlhf__gemm_words(j->s->in_dtype, j->k1 - j->k0) * w;
    float block[(RLHF__GEMM_WIDEST + 1) * RLHF__GEMM_WIDEST]; // [steps of the panel][columns]
    float rows[(RLHF__GEMM_WIDEST + 1) * RLHF__GEMM_WIDEST];
    int64_t done = 0, have = 0; // steps that are stored; steps in `rows`
    int64_t i = rlhf__quantised_find(q, j->k0);
    for (; i < q->panels && q->panel[i].column < j->k1; i++) {
        const struct rlhf__quantised_panel *from = &q->panel[i];
        const int64_t end = from->column + from->columns;
        const int64_t first = from->column < j->k0 ? j->k0 : from->column;
        const int64_t stop = end < j->k1 ? end : j->k1;
        const uint8_t *panel = (const uint8_t *)j->wei + from->at;
        const int is_even = (first - from->column) % 2 == 0 && (stop - first) % 2 == 0;
        if (j->s->in_dtype == RLHF_BF16 && !have && is_even) {
            turn_words(j, to + done / 2 * w, from, p, first - from->column, stop - from->column);
            done += stop - first;
            continue;
        }
        if (j->s->in_dtype == RLHF_BF16)
            j->cpu->bf16->unquantise_f32(block, panel, from->format, (size_t)(p * w), (size_t)w);
        else
            j->cpu->hot.unquantise(block, panel, from->format, (size_t)(p * w), (size_t)w,
                                   j->s->pairs ? RLHF__UNQUANTISE_BF16 : RLHF__UNQUANTISE_F32);
        j->cpu->hot.gemm_turn_b((uint32_t *)(void *)(rows + have * w),
                                (const uint32_t *)(const void *)(block + first - from->column),
                                (size_t)(stop - first), (size_t)w, 0, 0);
        have += stop - first;
        const int64_t even = have / 2 * 2;
        put_steps(j, to, rows, done, even);
        if (even < have) memcpy(rows, rows + even * w, (size_t)w * sizeof *rows);
        done += even;
        have -= even;
    }
    if (have) put_steps(j, to, rows, done, have);
}

void rlhf__gemm_turn(const struct rlhf__gemm_job *j) {
    if (j->s->quantised.panels)
        rlhf__split_run(j->cpu, j->cpu->threads, j->panels, turn_quantised, j);
    else
        turn_b(j, j->turned, j->wei, j->k0, j->k1);
}
