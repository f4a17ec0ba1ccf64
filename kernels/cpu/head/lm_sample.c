// lm_sample.c: samples the next token of each row by the inverse CDF, in the order of the
// vocabulary. Logits and statistics are computed as in lm_head (lm_logits.h), so the log-prob has
// the same bits.
#include "lm_logits.h"
#include "machine/split.h"
#include "machine/table.h"

#include <rlhf/rng.h>

#include <math.h>
#include <string.h>

static rlhf_status sample_read(struct rlhf__cpu *cpu, rlhf_lm_sample *a, rlhf_dist *dist,
                               rlhf_dist *logp_dist, const rlhf_lm_sample *from) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, "lm_sample", a, sizeof *a, from,
                               RLHF_SIZE_TO(rlhf_lm_sample, host_logp)));
    RLHF_TRY(rlhf__lm_dist_read(cpu, "lm_sample", dist, a->dist));
    RLHF_TRY(rlhf__lm_dist_read(cpu, "lm_sample", logp_dist, a->logp_dist));
    a->dist = dist;
    a->logp_dist = logp_dist;
    if (a->id) {
        if (!a->counter || !a->logp)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "lm_sample: %s is NULL; with id set, counter and logp are too",
                                  a->counter ? "logp" : "counter");
        a->host_counter = rlhf__cpu_mem(a->counter);
        a->host_id = rlhf__cpu_mem(a->id);
        a->host_logp = rlhf__cpu_mem(a->logp);
        a->host_support = rlhf__cpu_mem(a->support);
    }
    if (a->host_support && rlhf__lm_dist_cuts(a->logp_dist, a->vocab))
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "lm_sample: logp_dist's top_k, top_p and min_p must be off when the "
                              "support is requested");
    RLHF_TRY(rlhf__lm_map_check(cpu, "lm_sample", a->logit_scale, a->softcap));
    return rlhf__lm_weight_check(cpu, "lm_sample", a->weight, a->d, a->vocab, a->dtype);
}

// The scratch memory of a thread: the sums of a row (head_sums), a truncated copy of its logits,
// and memory for head_truncate.
struct scratch {
    double *sums;
    float *copy, *work;
};

static uint64_t scratch_bytes(const struct rlhf__cpu *cpu, int32_t vocab) {
    const uint64_t n = (uint64_t)vocab;
    const uint64_t one = rlhf__head_blocks(n) * sizeof(double) + 2 * n * sizeof(float);
    return (uint64_t)cpu->threads * one;
}

// The scratch memory with number `own`. In memory, the sums of all threads come before the other
// arrays.
static struct scratch scratch_of(const struct rlhf__cpu *cpu, int32_t vocab, void *place, int own) {
    const size_t n = (size_t)vocab, blocks = rlhf__head_blocks(n);
    const size_t threads = (size_t)cpu->threads, thread = (size_t)own;
    double *sums = place;
    float *rows = (float *)(void *)(sums + threads * blocks) + thread * 2 * n;
    return (struct scratch){sums + thread * blocks, rows, rows + n};
}

// Samples an id from the logits z, whose maximum is max, under the distribution d. d may exclude
// tokens, but never the token with the largest logit. z does not change. s->sums must have been
// computed from z at scale sums_scale. If `bits` is not NULL, sets *bits to the support: the ids
// that could have been sampled.
static int32_t draw(const struct rlhf__cpu *cpu, const float *z, size_t n, const rlhf_dist *d,
                    float max, double u, const struct scratch *s, float sums_scale,
                    uint32_t *bits) {
    const float scale = d->greedy ? 1.0f : (float)d->inv_temperature;
    int32_t id = 0;
    if (d->greedy) {
        cpu->hot.head_argmax(&id, z, n);
        if (!bits) return id;
        memset(bits, 0, rlhf_support_words((int32_t)n) * sizeof *bits);
        bits[id / 32] = 1u << id % 32;
        return id;
    }
    const int cuts = rlhf__lm_dist_cuts(d, (int32_t)n);
    if (cuts) {
        memcpy(s->copy, z, n * sizeof *z);
        rlhf__lm_truncate(cpu, s->copy, n, scale, d, s->work);
        z = s->copy;
    }
    if (bits) rlhf__lm_support_store(bits, z, n);
    if (cuts || scale != sums_scale) cpu->hot.head_sums(s->sums, z, n, scale, max);
    cpu->hot.head_draw(&id, z, n, scale, max, u, s->sums);
    return id;
}

// A block, whose first row is row `first` of the call.
struct sample {
    const struct rlhf__cpu *cpu;
    const rlhf_lm_sample *a;
    const struct rlhf__lm_block *b;
    uint32_t first;
    void *scratch;
};

// Sample row i of the block. Its id becomes -1 if the logits are not finite.
static void sample_row(const void *job, int64_t row, int own) {
    const struct sample *j = job;
    const struct rlhf__cpu *cpu = j->cpu;
    const rlhf_lm_sample *a = j->a;
    const struct rlhf__lm_block *b = j->b;
    const struct scratch mine = scratch_of(cpu, a->vocab, j->scratch, own), *s = &mine;
    const uint32_t i = (uint32_t)row, at = j->first + i;
    const size_t n = (size_t)a->vocab;
    float *z = b->logits + i * b->stride;
    const rlhf_rng rng = {a->seed, a->stream, a->host_counter[at]};
    uint32_t word[4];
    rlhf_rng_block(&rng, word);
    const double u = rlhf_rng_f64(word[0], word[1]);
    rlhf__lm_row_map(cpu, b, i);
    cpu->hot.head_stat(&b->stat[i], z, n, b->scale, 0, s->sums);
    a->host_id[at] = -1;
    if (!isfinite(b->stat[i].max) || !isfinite(b->stat[i].log_sum)) return;
    uint32_t *bits = a->host_support;
    if (bits) bits += at * (size_t)rlhf_support_words(a->vocab);
    const int32_t id = draw(cpu, z, n, a->dist, b->stat[i].max, u, s, b->scale, bits);
    const float chosen = z[id];
    int out = 0; // number of ids that were sampled outside of the kept set of logp_dist
    if (b->support || rlhf__lm_dist_cuts(b->dist, a->vocab)) {
        rlhf__lm_row_stat(cpu, b, i, s->work);
        out = z[id] == -INFINITY;
    }
    a->host_id[at] = id;
    a->host_logp[at] = out ? -INFINITY : rlhf__lm_logp(&b->stat[i], chosen, b->scale);
}

static rlhf_status lm_sample(void *ctx, const rlhf_lm_sample *from) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_lm_sample a;
    void *scratch = NULL;
    rlhf_dist dist, logp_dist;
    RLHF_TRY(sample_read(cpu, &a, &dist, &logp_dist, from));
    RLHF_TRY(rlhf__cpu_workspace(cpu, RLHF__WS_KEEP, scratch_bytes(cpu, a.vocab), &scratch));
    cpu->lm_kept.valid = 0;
    const uint32_t step = rlhf__lm_block_rows(cpu, a.weight, a.rows, 0);
    const uint64_t row_bytes = (uint64_t)a.d * rlhf_dtype_size(a.dtype);
    const size_t words = rlhf_support_words(a.vocab);
    for (uint32_t first = 0; first < a.rows; first += step) {
        struct rlhf__lm_block b = {
            .weight = a.weight,
            .dist = a.logp_dist,
            .support = a.host_support ? a.host_support + first * words : NULL,
            .hidden = rlhf__cpu_mem(rlhf_dev_at(a.hidden, first * row_bytes)),
            .rows = a.rows - first < step ? a.rows - first : step,
            .vocab = a.vocab,
            .map = rlhf__lm_map(a.logit_scale, a.softcap),
            .scale = a.logp_dist->greedy ? 1.0f : (float)a.logp_dist->inv_temperature,
        };
        RLHF_TRY(rlhf__lm_block_place(cpu, &b));
        RLHF_TRY(rlhf__lm_block_logits(cpu, &b));
        rlhf__split_run_own(cpu, cpu->threads, b.rows, sample_row,
                            &(const struct sample){cpu, &a, &b, first, scratch});
        for (uint32_t i = first; i < first + b.rows; i++)
            if (a.host_id[i] < 0)
                return rlhf__cpu_fail(cpu, RLHF_E_NUMERIC,
                                      "lm_sample: the logits of row %u are not finite", i);
    }
    return RLHF_OK;
}

void rlhf__cpu_needs_lm_sample(struct rlhf__cpu *cpu, const rlhf_call *c,
                               struct rlhf__cpu_needs *n) {
    const rlhf_weight w = rlhf__weight_shape(cpu, &c->weight);
    rlhf_lm_sample a;
    if (c->op != RLHF_COMPUTE_OP(lm_sample) || !c->sample) return;
    if (rlhf_copy_in(&a, sizeof a, c->sample, RLHF_SIZE_TO(rlhf_lm_sample, host_logp)) < 0) return;
    const uint32_t step = rlhf__lm_block_rows(cpu, &w, a.rows, 0);
    rlhf__cpu_need(n, RLHF__WS_KEEP, scratch_bytes(cpu, a.vocab));
    if (!a.rows) return;
    rlhf__lm_block_needs(cpu, &w, NULL, step, 0, n);
    if (a.rows % step) rlhf__lm_block_needs(cpu, &w, NULL, a.rows % step, 0, n);
}

void rlhf__cpu_fill_lm_sample(rlhf_compute *t) { t->lm_sample = lm_sample; }
