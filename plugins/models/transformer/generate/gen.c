// transformer/generate/gen.c: generation sessions. A session has a key/value cache with slots, and
// the states of layers that have one. A step appends new tokens to some slots, and samples the next
// token of these slots unless their rows are silent. A step runs the same operations as forward, so
// a sampled token's log-prob has the same bits as in forward.
#include "transformer/internal.h"

#include <string.h>

rlhf_status rlhf__tf_gen_open(void *self, uint32_t n_slots, uint32_t max_len, rlhf_gen **out) {
    struct rlhf__tf *m = self;
    *out = NULL;
    if (!m->arch.causal)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED, "this model is an encoder: it cannot generate");
    if (!rlhf__tf_has_lm(m))
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED,
                             "this model is a classifier without an LM head: it cannot generate");
    if (!n_slots || !max_len || max_len > (uint32_t)m->arch.n_ctx)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "generation: %u slots of %u tokens; a slot needs 1 .. %d tokens",
                             n_slots, max_len, m->arch.n_ctx);
    if (((uint64_t)n_slots + 1) * max_len > INT32_MAX)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "generation: %u slots of %u tokens are too many",
                             n_slots, max_len);
    rlhf_gen *g = m->host->alloc(m->host, sizeof *g);
    if (!g) return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for a generation session");
    g->n_slots = n_slots;
    g->max_len = max_len;
    rlhf_status st = rlhf__tf_ring_open(m, g);
    if (st >= 0) st = rlhf__tf_kept_open(m, g);
    if (st >= 0) st = rlhf__tf_recorded_open(m, g);
    g->cache_slots = n_slots + (g->recorded ? 1 : 0);
    const uint64_t bytes = rlhf__tf_cache_at(m, g, m->arch.n_layer);
    g->slots = m->host->alloc(m->host, n_slots * sizeof *g->slots);
    if (st >= 0 && !g->slots)
        st = rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for %u slots", n_slots);
    for (uint32_t i = 0; g->slots && i < n_slots; i++)
        g->slots[i].prefix = -1;
    if (st >= 0) st = rlhf__tf_reserve(m, &g->k, bytes);
    if (st >= 0) st = rlhf__tf_reserve(m, &g->v, bytes);
    if (st < 0) {
        rlhf__tf_gen_close(m, g);
        return st;
    }
    *out = g;
    return RLHF_OK;
}

void rlhf__tf_gen_close(void *self, rlhf_gen *g) {
    struct rlhf__tf *m = self;
    if (!g) return;
    rlhf__tf_buf_finish(m, &g->k);
    rlhf__tf_buf_finish(m, &g->v);
    rlhf__tf_recorded_close(m, g->recorded);
    rlhf__tf_ring_close(m, g->ring);
    rlhf__tf_kept_close(m, g->kept);
    m->host->free(m->host, g->slots);
    m->host->free(m->host, g);
}

// Arrays with entries for only the rows that sample, in the order on the device. Used in steps that
// also have silent rows, or whose rows have another order there.
struct drawing {
    uint64_t *counter;
    int32_t *id;
    float *logp;
    uint32_t *support; // NULL: not requested
};

// The row of the step that is row i on the device, or -1 if it is silent.
static int64_t drawn_row(const rlhf_gen_step *s, const int32_t *order, uint32_t i) {
    const uint32_t row = order ? (uint32_t)order[i] : i;
    return s->silent && s->silent[row] ? -1 : (int64_t)row;
}

static rlhf_status drawing_open(struct rlhf__tf *m, const rlhf_gen_step *s, const int32_t *order,
                                struct drawing *d) {
    void *tmp;
    uint32_t n = 0;
    const uint64_t words = s->support ? rlhf_support_words(rlhf__tf_outputs(m)) : 0;
    const uint64_t row = sizeof *d->counter + sizeof *d->id + sizeof *d->logp;
    RLHF_TRY(rlhf__tf_host_tmp(m, s->n * (row + words * sizeof *d->support), &tmp));
    d->counter = tmp;
    d->id = (int32_t *)(d->counter + s->n);
    d->logp = (float *)(d->id + s->n);
    d->support = words ? (uint32_t *)(d->logp + s->n) : NULL;
    for (uint32_t i = 0; i < s->n; i++) {
        const int64_t drawn = drawn_row(s, order, i);
        if (drawn >= 0) d->counter[n++] = s->counter[drawn];
    }
    return RLHF_OK;
}

static void drawing_spread(const rlhf_gen_step *s, const int32_t *order, const struct drawing *d,
                           uint64_t words) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const int64_t row = drawn_row(s, order, i);
        if (row < 0) continue;
        s->next[row] = d->id[n];
        s->logp[row] = d->logp[n];
        if (s->support && d->support)
            memcpy(s->support + (uint64_t)row * words, d->support + n * words,
                   words * sizeof *s->support);
        n++;
    }
}

static rlhf_status sample(struct rlhf__tf *m, const struct rlhf__tf_work *w, const rlhf_gen_step *s,
                          const int32_t *order) {
    struct drawing d = {NULL, s->next, s->logp, s->support};
    const int32_t some = order || w->rows.n_resp < s->n;
    if (some) RLHF_TRY(drawing_open(m, s, order, &d));
    const rlhf_lm_sample a = {.size = (uint32_t)sizeof a,
                              .rows = w->rows.n_resp,
                              .d = m->arch.d,
                              .vocab = rlhf__tf_outputs(m),
                              .dtype = m->dtype,
                              .dist = rlhf__tf_dist(s->dist),
                              .logp_dist = s->logp_dist ? s->logp_dist : rlhf__tf_dist(s->dist),
                              .hidden = w->rh_p,
                              .weight = m->lm,
                              .seed = s->seed,
                              .stream = s->stream,
                              .host_counter = some ? d.counter : s->counter,
                              .host_id = d.id,
                              .host_logp = d.logp,
                              .host_support = d.support,
                              .logit_scale = m->arch.logit_scale,
                              .softcap = m->arch.softcap};
    RLHF_TRY(m->c->lm_sample(m->c->ctx, &a));
    if (some) drawing_spread(s, order, &d, rlhf_support_words(rlhf__tf_outputs(m)));
    return RLHF_OK;
}

static rlhf_status run(struct rlhf__tf *m, rlhf_gen *g, const rlhf_gen_step *s) {
    struct rlhf__tf_work *w = &m->infer;
    w->keep = w->plain = 0;
    RLHF_TRY(rlhf__tf_step_check(m, g, s));
    if (g->ring) rlhf__tf_ring_plan(g, s);
    if (g->kept) rlhf__tf_kept_plan(g, s);
    if (rlhf__tf_is_recorded(g, s)) return rlhf__tf_gen_recorded(m, g, s);
    const int32_t *order = g->ring && !g->ring->sorted   ? g->ring->order
                           : g->kept && !g->kept->sorted ? g->kept->order
                                                         : NULL;
    const struct rlhf__tf_layout l = {.n = s->n,
                                      .total = (uint32_t)s->offset[s->n],
                                      .ids = s->ids,
                                      .offset = s->offset,
                                      .prefix = s->prefix,
                                      .gen = g,
                                      .slot = s->slot,
                                      .start = s->start,
                                      .silent = s->silent,
                                      .order = order};
    if (g->ring) RLHF_TRY(rlhf__tf_ring_reserve(m, g->ring));
    RLHF_TRY(rlhf__tf_rows_upload(m, w, &l));
    RLHF_TRY(rlhf__tf_trunk(m, w, g, NULL));
    rlhf__tf_step_commit(g, s);
    if (!w->rows.n_resp) return RLHF_OK;
    RLHF_TRY(rlhf__tf_lm_ready(m));
    RLHF_TRY(rlhf__tf_resp_state(m, w));
    return sample(m, w, s, order);
}

rlhf_status rlhf__tf_gen_step(void *self, rlhf_gen *g, const rlhf_gen_step *from) {
    struct rlhf__tf *m = self;
    rlhf_gen_step s;
    RLHF_TRY(rlhf__tf_copy_in(m, "rlhf_gen_step", &s, sizeof s, from,
                              RLHF_SIZE_TO(rlhf_gen_step, logp)));
    return run(m, g, &s);
}
