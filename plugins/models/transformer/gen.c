// transformer/gen.c: generation sessions. Slots of a key/value cache; each step appends new tokens
// to some slots and draws their next token. A step runs the very operations of forward, so a drawn
// token's log-prob has the bits forward will give it.
#include "internal.h"

#include <string.h>

rlhf_status rlhf__tf_gen_open(void *self, uint32_t n_slots, uint32_t max_len, rlhf_gen **out) {
    struct rlhf__tf *m = self;
    m->failed = 0;
    *out = NULL;
    if (!m->arch.causal)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED, "this model is an encoder: it cannot generate");
    if (!n_slots || !max_len || max_len > (uint32_t)m->arch.n_ctx)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "generation: %u slots of %u tokens; a slot needs 1 .. %d tokens",
                             n_slots, max_len, m->arch.n_ctx);
    if ((uint64_t)n_slots * max_len > INT32_MAX)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "generation: %u slots of %u tokens are too many",
                             n_slots, max_len);
    rlhf_gen *g = m->host->alloc(m->host, sizeof *g);
    if (!g) return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for a generation session");
    const uint64_t bytes =
        (uint64_t)m->arch.n_layer * n_slots * max_len * (uint64_t)m->arch.d * rlhf__tf_esz(m);
    g->n_slots = n_slots;
    g->max_len = max_len;
    g->len = m->host->alloc(m->host, n_slots * sizeof *g->len);
    g->seen = m->host->alloc(m->host, n_slots * sizeof *g->seen);
    rlhf_status st = g->len && g->seen ? RLHF_OK : RLHF_E_NOMEM;
    if (st >= 0) st = rlhf__tf_reserve(m, &g->k, bytes);
    if (st >= 0) st = rlhf__tf_reserve(m, &g->v, bytes);
    if (st < 0) {
        rlhf__tf_gen_close(m, g);
        return rlhf__tf_done(m, st, "gen_open");
    }
    *out = g;
    return RLHF_OK;
}

void rlhf__tf_gen_close(void *self, rlhf_gen *g) {
    struct rlhf__tf *m = self;
    if (!g) return;
    rlhf__tf_buf_finish(m, &g->k);
    rlhf__tf_buf_finish(m, &g->v);
    m->host->free(m->host, g->len);
    m->host->free(m->host, g->seen);
    m->host->free(m->host, g);
}

static rlhf_status check_step(struct rlhf__tf *m, const rlhf_gen *g, const rlhf_gen_step *s) {
    const rlhf_batch b = {.n = s->n,
                          .total = s->n ? (uint32_t)s->offset[s->n] : 0,
                          .ids = s->ids,
                          .offset = s->offset};
    RLHF_TRY(rlhf__tf_batch_check(m, &b, 0));
    memset(g->seen, 0, g->n_slots * sizeof *g->seen);
    for (uint32_t i = 0; i < s->n; i++) {
        const int32_t slot = s->slot[i], start = s->start[i];
        const int64_t len = (int64_t)s->offset[i + 1] - s->offset[i];
        if (slot < 0 || (uint32_t)slot >= g->n_slots || g->seen[slot])
            return rlhf__tf_fail(m, RLHF_E_INVALID, "generation row %u: slot %d is %s", i, slot,
                                 slot < 0 || (uint32_t)slot >= g->n_slots ? "out of range"
                                                                          : "used twice");
        g->seen[slot] = 1;
        if (start && start != g->len[slot])
            return rlhf__tf_fail(m, RLHF_E_INVALID,
                                 "generation row %u: start %d, but slot %d holds %d tokens", i,
                                 start, slot, g->len[slot]);
        if (start + len > g->max_len)
            return rlhf__tf_fail(m, RLHF_E_INVALID,
                                 "generation row %u: %lld tokens do not fit a slot of %u", i,
                                 (long long)start + (long long)len, g->max_len);
    }
    return RLHF_OK;
}

static rlhf_status sample(struct rlhf__tf *m, const struct rlhf__tf_work *w,
                          const rlhf_gen_step *s) {
    const rlhf_lm_sample a = {.size = (uint32_t)sizeof a,
                              .rows = s->n,
                              .d = m->arch.d,
                              .vocab = m->arch.n_vocab,
                              .dtype = m->dtype,
                              .dist = rlhf__tf_dist(s->dist),
                              .logp_dist = s->logp_dist ? s->logp_dist : rlhf__tf_dist(s->dist),
                              .hidden = w->rh_p,
                              .weight = m->lm,
                              .seed = s->seed,
                              .stream = s->stream,
                              .host_counter = s->counter,
                              .host_id = s->next,
                              .host_logp = s->logp};
    return m->c->lm_sample(m->c->ctx, &a);
}

// s->kv_base is not part of the contract: row i's keys start at slot[i] * max_len.
static rlhf_status run(struct rlhf__tf *m, rlhf_gen *g, const rlhf_gen_step *s) {
    struct rlhf__tf_work *w = &m->infer;
    RLHF_TRY(check_step(m, g, s));
    RLHF_TRY(rlhf__tf_lm_ready(m));
    for (uint32_t i = 0; i < s->n; i++)
        g->seen[i] = s->slot[i] * (int32_t)g->max_len;
    const struct rlhf__tf_layout l = {.n = s->n,
                                      .total = (uint32_t)s->offset[s->n],
                                      .ids = s->ids,
                                      .offset = s->offset,
                                      .start = s->start,
                                      .kv_base = g->seen,
                                      .last = 1};
    RLHF_TRY(rlhf__tf_rows_upload(m, w, &l));
    RLHF_TRY(rlhf__tf_trunk(m, w, g));
    for (uint32_t i = 0; i < s->n; i++)
        g->len[s->slot[i]] = s->start[i] + s->offset[i + 1] - s->offset[i];
    RLHF_TRY(rlhf__tf_resp_state(m, w));
    return sample(m, w, s);
}

rlhf_status rlhf__tf_gen_step(void *self, rlhf_gen *g, const rlhf_gen_step *s) {
    struct rlhf__tf *m = self;
    m->failed = 0;
    if (s->size != sizeof *s)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "gen_step: arguments of %u bytes, expected %zu",
                             s->size, sizeof *s);
    return rlhf__tf_done(m, run(m, g, s), "gen_step");
}
