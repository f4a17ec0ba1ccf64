// quantised.c: weights whose rows stay quantised (rlhf_quantised), and embed_weight. weight_put
// rearranges the blocks of the rows to panels (quantised_put.h). gemm.c unpacks a panel where it
// multiplies with it, so every product is that of the dequantised weight.
#include "gemm_job.h"
#include "machine/split.h"
#include "machine/table.h"
#include "product.h"
#include "quantised_put.h"

#include <stdlib.h>

enum { STEPS = 64 }; // of k that embed_weight unpacks at a time

// The columns of a panel. They are as many for f32 and for bf16 GEMMs.
static int64_t width_of(const struct rlhf__cpu *cpu) { return (int64_t)cpu->hot.gemm_columns; }

static int is_in_pairs(const rlhf_weight *w) { return w->exec_dtype == RLHF_BF16; }

// ---- weights ----

static rlhf_status check(struct rlhf__cpu *cpu, const char *op, const rlhf_quantised *a) {
    int64_t rows = 0;
    if (!a->n_parts) return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: a weight without parts", op);
    for (uint32_t p = 0; p < a->n_parts; p++) {
        const int32_t elements = rlhf_format_elements(a->format[p]);
        if (elements < 2)
            return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                                  "%s: part %u has format %d, known are 1 to %d", op, p,
                                  a->format[p], RLHF_FORMAT_Q5_1);
        if (a->k % elements)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "%s: k is %d, but the blocks of part %u have %d elements", op,
                                  a->k, p, elements);
        if (a->count[p] < 1)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "%s: part %u has %d rows, must be at least 1", op, p,
                                  a->count[p]);
        rows += a->count[p];
    }
    if (rows == a->n) return RLHF_OK;
    return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: the parts have %lld rows, the weight has %d",
                          op, (long long)rows, a->n);
}

static rlhf_status read_arguments(struct rlhf__cpu *cpu, const char *op, rlhf_quantised *a,
                                  const rlhf_quantised *from) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_quantised, count)));
    RLHF_TRY(rlhf__cpu_weight_check(cpu, a->k, a->n, a->dtype, a->flags));
    return check(cpu, op, a);
}

struct rlhf__quantised rlhf__quantised_shape(const struct rlhf__cpu *cpu, const rlhf_quantised *a) {
    const int64_t width = width_of(cpu);
    struct rlhf__quantised q = {.regular = 1};
    for (uint32_t p = 0; a && p < a->n_parts; p++) {
        q.panels += (a->count[p] + width - 1) / width;
        if (p + 1 < a->n_parts && a->count[p] % width) q.regular = 0;
    }
    return q;
}

// The bytes of all panels. A panel has whole units, also at the end of a part.
static uint64_t panel_bytes(const struct rlhf__cpu *cpu, const rlhf_quantised *a) {
    const int64_t width = width_of(cpu);
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < a->n_parts; p++)
        bytes += (uint64_t)((a->count[p] + width - 1) / width * width) *
                 rlhf_format_row_bytes(a->format[p], a->k);
    return bytes;
}

static uint64_t weight_quantised_bytes(void *ctx, const rlhf_quantised *from) {
    rlhf_quantised a;
    if (read_arguments(ctx, "weight_quantised_bytes", &a, from) < 0) return 0;
    return panel_bytes(ctx, &a);
}

// The table of panels, NULL if memory runs out.
static struct rlhf__quantised_panel *panels_of(const struct rlhf__cpu *cpu, const rlhf_quantised *a,
                                               int64_t panels) {
    const int64_t width = width_of(cpu);
    struct rlhf__quantised_panel *panel = calloc((size_t)panels, sizeof *panel), *at = panel;
    int32_t first = 0;
    uint64_t bytes = 0;
    for (uint32_t p = 0; panel && p < a->n_parts; first += a->count[p], p++)
        for (int64_t c = 0; c < a->count[p]; c += width) {
            const int64_t left = a->count[p] - c;
            *at++ =
                (struct rlhf__quantised_panel){.column = first + (int32_t)c,
                                               .columns = (int32_t)(left < width ? left : width),
                                               .format = a->format[p],
                                               .part = (int32_t)p,
                                               .at = bytes};
            bytes += (uint64_t)width * rlhf_format_row_bytes(a->format[p], a->k);
        }
    return panel;
}

static rlhf_status weight_create_quantised(void *ctx, const rlhf_quantised *from,
                                           rlhf_weight **out) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_quantised a;
    RLHF_TRY(read_arguments(cpu, "weight_create_quantised", &a, from));
    rlhf_weight *w = calloc(1, sizeof *w);
    if (!w) return rlhf__cpu_fail(cpu, RLHF_E_NOMEM, "out of memory for a weight");
    if (a.dtype == RLHF_BF16) cpu->bf16_weights = 1;
    w->k = a.k;
    w->n = a.n;
    w->dtype = a.dtype;
    w->exec_dtype = rlhf__cpu_exec_dtype(cpu, a.dtype);
    w->flags = a.flags | RLHF_WEIGHT_OUT_IN;
    w->quantised = rlhf__quantised_shape(cpu, &a);
    w->quantised.panel = panels_of(cpu, &a, w->quantised.panels);
    rlhf_status st = w->quantised.panel
                         ? rlhf__cpu_mem_alloc(cpu, panel_bytes(cpu, &a), &w->fwd)
                         : rlhf__cpu_fail(cpu, RLHF_E_NOMEM, "out of memory for a weight");
    if (st < 0)
        cpu->table.weight_destroy(cpu, w);
    else
        *out = w;
    return st;
}

// Rows to put: from .. end - 1. The first panel of the job is panel `first`.
struct rows {
    const struct rlhf__cpu *cpu;
    const rlhf_weight *w;
    const uint8_t *blocks;
    int64_t first;
    int32_t from, end;
};

static void put_panel(const void *job, int64_t i) {
    const struct rows *r = job;
    const struct rlhf__quantised_panel *p = &r->w->quantised.panel[r->first + i];
    const size_t width = (size_t)width_of(r->cpu), size = (size_t)rlhf_format_bytes(p->format);
    const int32_t end = p->column + p->columns < r->end ? p->column + p->columns : r->end;
    const int32_t from = p->column < r->from ? r->from : p->column;
    const int32_t elements = rlhf_format_elements(p->format);
    const size_t units = elements ? (size_t)(r->w->k / elements) : 0;
    uint8_t *unit = (uint8_t *)r->w->fwd + p->at;
    for (size_t u = 0; u < units; u++, unit += width * size)
        for (int32_t row = from; row < end; row++)
            rlhf__quantised_put(unit, width, (size_t)(row - p->column), p->format,
                                r->blocks + ((size_t)(row - r->from) * units + u) * size,
                                is_in_pairs(r->w));
}

static rlhf_status weight_put(void *ctx, rlhf_weight *w, int32_t from, int32_t rows,
                              const void *host_blocks) {
    struct rlhf__cpu *cpu = ctx;
    const struct rlhf__quantised *q = &w->quantised;
    if (!q->panels)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "weight_put: the weight is not quantised");
    if (from < 0 || rows < 1 || from > w->n - rows)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "weight_put: rows %d and %d more, but the weight has %d", from, rows,
                              w->n);
    const int64_t first = rlhf__quantised_find(q, from),
                  last = rlhf__quantised_find(q, from + rows - 1);
    if (q->panel[first].part != q->panel[last].part)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "weight_put: row %d is of part %d and row %d of part %d", from,
                              q->panel[first].part, from + rows - 1, q->panel[last].part);
    rlhf__split_run(cpu, cpu->threads, last - first + 1, put_panel,
                    &(const struct rows){cpu, w, host_blocks, first, from, from + rows});
    w->rows_put = rows < w->n - w->rows_put ? w->rows_put + rows : w->n;
    w->packed = w->rows_put == w->n;
    cpu->weight_generation++; // the logits that lm_head kept are from the old rows
    return RLHF_OK;
}

// ---- embed_weight ----

struct lookup {
    const struct rlhf__cpu *cpu;
    float *out;
    const int32_t *id;
    const rlhf_weight *w;
    float scale;
};

// Row `t` of out: a row of the weight, times `scale`.
static void row_to_f32(const void *job, int64_t t) {
    const struct lookup *l = job;
    const rlhf_weight *w = l->w;
    const int32_t row = l->id[t];
    const struct rlhf__quantised_panel *p =
        &w->quantised.panel[rlhf__quantised_find(&w->quantised, row)];
    const size_t width = (size_t)width_of(l->cpu), c = (size_t)(row - p->column), k = (size_t)w->k;
    const uint8_t *panel = (const uint8_t *)w->fwd + p->at;
    float part[STEPS * RLHF__GEMM_WIDEST], *to = l->out + (size_t)t * k;
    for (size_t i = 0; i < k; i += STEPS) {
        const size_t steps = k - i < STEPS ? k - i : STEPS;
        if (is_in_pairs(w))
            l->cpu->bf16->unquantise_f32(part, panel, p->format, i, steps);
        else
            l->cpu->hot.unquantise(part, panel, p->format, i, steps, RLHF__UNQUANTISE_F32);
        for (size_t j = 0; j < steps; j++)
            to[i + j] = l->scale * part[j * width + c];
    }
}

static rlhf_status embed_weight(void *ctx, rlhf_dev out, rlhf_dev ids, const rlhf_weight *w,
                                double scale, uint32_t rows) {
    struct rlhf__cpu *cpu = ctx;
    const int32_t *id = rlhf__cpu_i32(ids);
    if (!w->quantised.panels)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "embed_weight: the weight is not quantised");
    RLHF_TRY(rlhf__cpu_weight_packed(cpu, "embed_weight", w));
    for (uint32_t t = 0; t < rows; t++)
        if (id[t] < 0 || id[t] >= w->n)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "embed_weight: ids[%u] is %d, allowed are 0 to %d", t, id[t],
                                  w->n - 1);
    rlhf__split_run(cpu, rlhf__split_threads(cpu, rows * (uint64_t)w->k), rows, row_to_f32,
                    &(const struct lookup){cpu, rlhf__cpu_f32(out), id, w, (float)scale});
    return RLHF_OK;
}

void rlhf__cpu_fill_quantised(rlhf_compute *t) {
    t->weight_create_quantised = weight_create_quantised;
    t->weight_put = weight_put;
    t->weight_quantised_bytes = weight_quantised_bytes;
    t->embed_weight = embed_weight;
}
