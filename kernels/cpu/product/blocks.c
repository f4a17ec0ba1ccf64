// blocks.c: block-structured weights (rlhf_blocks). Such a weight is a dense matrix, but its source
// and its gradient contain only the blocks. The GEMM is dense: it multiplies the zeros like all
// other numbers.
#include "machine/split.h"
#include "product/product.h"

#include <stdlib.h>
#include <string.h>

void rlhf__weight_blocks_close(struct rlhf__weight_blocks *b) {
    if (!b) return;
    free(b->source);
    free(b->first);
    free(b);
}

static rlhf_status check(struct rlhf__cpu *cpu, const rlhf_blocks *a) {
    int64_t end = 0;
    if (a->rank < 1 || !a->n_blocks || a->n_blocks > (uint32_t)(INT32_MAX / a->rank))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "a weight of %u blocks of rank %d: both must be "
                              "at least 1",
                              a->n_blocks, a->rank);
    if (a->flags & ~(uint32_t)RLHF_WEIGHT_BACKWARD)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "a weight in blocks with flags 0x%x: allowed is 0x%x", a->flags,
                              (unsigned)RLHF_WEIGHT_BACKWARD);
    for (uint32_t i = 0; i < a->n_blocks; i++) {
        if (a->from[i] < end || a->count[i] < 1 || (int64_t)a->from[i] + a->count[i] > a->n)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "a weight in blocks: block %u, outputs %d and %d more, overlaps "
                                  "or is outside %d",
                                  i, a->from[i], a->count[i], a->n);
        end = (int64_t)a->from[i] + a->count[i];
    }
    return RLHF_OK;
}

static struct rlhf__weight_blocks *blocks_of(const rlhf_blocks *a) {
    struct rlhf__weight_blocks *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->rank = a->rank;
    b->scale = (float)a->scale;
    b->source = malloc((size_t)a->n * sizeof *b->source);
    b->first = calloc((size_t)a->n, sizeof *b->first);
    if (!b->source || !b->first) {
        rlhf__weight_blocks_close(b);
        return NULL;
    }
    memset(b->source, 0xff, (size_t)a->n * sizeof *b->source); // -1
    for (uint32_t i = 0; i < a->n_blocks; i++)
        for (int32_t j = a->from[i]; j < a->from[i] + a->count[i]; j++) {
            b->source[j] = b->rows++;
            b->first[j] = (int32_t)i * a->rank;
        }
    return b;
}

rlhf_status rlhf__cpu_weight_create_blocks(void *ctx, const rlhf_blocks *from, rlhf_weight **out) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_blocks a;
    RLHF_TRY(rlhf__cpu_copy_in(cpu, "weight_create_blocks", &a, sizeof a, from,
                               RLHF_SIZE_TO(rlhf_blocks, scale)));
    RLHF_TRY(check(cpu, &a));
    const int32_t k = (int32_t)a.n_blocks * a.rank;
    rlhf_weight *w;
    RLHF_TRY(cpu->table.weight_create(cpu, k, a.n, a.dtype, a.flags | RLHF_WEIGHT_OUT_IN, &w));
    w->blocks = blocks_of(&a);
    if (!w->blocks) {
        cpu->table.weight_destroy(cpu, w);
        return rlhf__cpu_fail(cpu, RLHF_E_NOMEM, "out of memory for a weight in blocks");
    }
    *out = w;
    return RLHF_OK;
}

// A weight in blocks, and matrices between which numbers are moved.
struct move {
    const rlhf_weight *w;
    float *to;
    const float *from;
};

static void expand_row(const void *job, int64_t j) {
    const struct move *m = job;
    const struct rlhf__weight_blocks *b = m->w->blocks;
    const size_t k = (size_t)m->w->k, rank = (size_t)b->rank;
    float *row = m->to + (size_t)j * k;
    memset(row, 0, k * sizeof *row);
    if (b->source[j] < 0) return;
    const float *s = m->from + (size_t)b->source[j] * rank;
    for (size_t c = 0; c < rank; c++)
        row[(size_t)b->first[j] + c] = b->scale * s[c];
}

rlhf_status rlhf__blocks_expand(struct rlhf__cpu *cpu, const rlhf_weight *w, void **src) {
    void *to = NULL;
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_SUM, rlhf__blocks_dense_bytes(w), &to));
    rlhf__split_run(cpu, cpu->threads, w->n, expand_row, &(const struct move){w, to, *src});
    *src = to;
    return RLHF_OK;
}

static void add_row(const void *job, int64_t j) {
    const struct move *m = job;
    const struct rlhf__weight_blocks *b = m->w->blocks;
    const size_t k = (size_t)m->w->k, rank = (size_t)b->rank;
    if (b->source[j] < 0) return;
    const float *s = m->from + (size_t)j * k + (size_t)b->first[j];
    float *d = m->to + (size_t)b->source[j] * rank;
    for (size_t c = 0; c < rank; c++)
        d[c] += b->scale * s[c];
}

void rlhf__blocks_add(struct rlhf__cpu *cpu, const rlhf_weight *w, float *dw, const float *dense) {
    rlhf__split_run(cpu, cpu->threads, w->n, add_row, &(const struct move){w, dw, dense});
}
