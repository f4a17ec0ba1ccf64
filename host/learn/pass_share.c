// pass_share.c: see pass_share.h.
#include "learn/pass_share.h"

#include "batch/deal.h"
#include "model/compute.h"
#include "team/agree.h"

#include <stdlib.h>
#include <string.h>

// An output array of a pass. Its elements are in the order of the rows.
struct array {
    char *at;
    size_t each; // bytes of an element
};

// The data that is exchanged after a pass.
struct share {
    struct rlhf__team *team;
    const struct rlhf__model *m;
    const struct rlhf__rows *e;
    const struct rlhf__pass_out *out;
    uint32_t *first;       // [ranks + 1] the rows of each rank
    rlhf_block *block;     // [2 * ranks]
    char *hidden;          // a copy of out->dev_hidden in host memory
    uint64_t hidden_bytes; // of one response token
};

static size_t token_at(const struct share *s, int32_t rank) {
    return (size_t)s->e->offset[s->first[rank]];
}

static size_t row_at(const struct share *s, int32_t rank) { return s->first[rank]; }

static size_t response_at(const struct share *s, int32_t rank) {
    return (size_t)rlhf__rows_response_tokens(s->e, 0, s->first[rank]);
}

// Send this rank's elements of an array to all others, and receive theirs.
static rlhf_status exchange(struct share *s, struct array a,
                            size_t (*place)(const struct share *, int32_t rank),
                            struct rlhf__error *err) {
    struct rlhf__team *t = s->team;
    uint64_t ticket = 0;
    if (!a.at) return RLHF_OK;
    for (int32_t k = 0; k < t->ranks; k++) {
        const size_t from = place(s, k), to = place(s, k + 1);
        s->block[t->ranks + k] = (rlhf_block){a.at + from * a.each, (to - from) * a.each};
    }
    for (int32_t k = 0; k < t->ranks; k++)
        s->block[k] = s->block[t->ranks + t->rank];
    RLHF_TRY(rlhf__team_exchange(t, s->block, s->block + t->ranks, &ticket, err));
    return rlhf__team_wait(t, ticket, err);
}

// ---- hidden states in the device's memory ----

static rlhf_status copy_hidden(struct share *s, int upload, struct rlhf__error *err) {
    const rlhf_compute *c = s->m->compute;
    rlhf_status st = RLHF_OK;
    for (int32_t k = 0; s->hidden && st == RLHF_OK && k < s->team->ranks; k++) {
        const uint64_t from = response_at(s, k) * s->hidden_bytes,
                       n = response_at(s, k + 1) * s->hidden_bytes - from;
        if (n == 0 || upload == (k == s->team->rank)) continue;
        const rlhf_dev at = rlhf_dev_at(s->out->dev_hidden, from);
        st = upload ? c->upload(c->ctx, at, s->hidden + from, n)
                    : c->download(c->ctx, s->hidden + from, at, n);
    }
    if (st != RLHF_OK)
        return rlhf__compute_fail(rlhf__model_kernels(s->m), st, "hidden states of other ranks",
                                  err);
    return RLHF_OK;
}

static rlhf_status make_hidden(struct share *s, struct rlhf__error *err) {
    const size_t tokens = (size_t)rlhf__rows_response_tokens(s->e, 0, s->e->n);
    if (!s->out->dev_hidden) return RLHF_OK;
    s->hidden_bytes = rlhf__state_bytes(s->m);
    s->hidden = malloc(tokens * s->hidden_bytes + 1);
    if (!s->hidden) return RLHF__NOMEM(err, "out of memory for hidden states");
    return RLHF_OK;
}

// ---- the divided pass ----

static rlhf_status pass_own(const struct share *s, const rlhf_dist *dist, int64_t tokens,
                            struct rlhf__error *err) {
    const uint32_t from = s->first[s->team->rank], to = s->first[s->team->rank + 1];
    return rlhf__pass_range(s->m, s->e, from, to, dist, tokens, s->out, err);
}

static rlhf_status exchange_all(struct share *s, struct rlhf__error *err) {
    const struct rlhf__pass_out *o = s->out;
    const size_t d = (size_t)s->m->info.d_model * sizeof(float);
    const size_t labels = (size_t)(s->m->n_labels > 0 ? s->m->n_labels : 1) * sizeof(float);
    RLHF_TRY(exchange(s, (struct array){(char *)o->logp, sizeof(float)}, token_at, err));
    RLHF_TRY(exchange(s, (struct array){(char *)o->value, sizeof(float)}, token_at, err));
    RLHF_TRY(exchange(s, (struct array){(char *)o->hidden, d}, token_at, err));
    RLHF_TRY(exchange(s, (struct array){(char *)o->score, labels}, row_at, err));
    RLHF_TRY(exchange(s, (struct array){s->hidden, s->hidden_bytes}, response_at, err));
    return copy_hidden(s, 1, err);
}

rlhf_status rlhf__pass_share(struct rlhf__team *team, const struct rlhf__model *m,
                             const struct rlhf__rows *e, const rlhf_dist *dist,
                             int64_t microbatch_tokens, const struct rlhf__pass_out *out,
                             struct rlhf__error *err) {
    if (!rlhf__team_shares(team)) return rlhf__pass(m, e, dist, microbatch_tokens, out, err);
    struct share s = {.team = team, .m = m, .e = e, .out = out};
    const struct rlhf__wish wish = {.same = e->total};
    s.first = calloc((size_t)team->ranks + 1, sizeof *s.first);
    s.block = calloc(2 * (size_t)team->ranks, sizeof *s.block);
    rlhf_status st = RLHF_OK;
    if (!s.first || !s.block) st = RLHF__NOMEM(err, "out of memory for %d ranks", team->ranks);
    if (st == RLHF_OK)
        rlhf__deal(e, (uint32_t)team->ranks, rlhf__can_share_prompts(m, e) && !out->score, s.first);
    if (st == RLHF_OK) st = make_hidden(&s, err);
    if (st == RLHF_OK) st = pass_own(&s, dist, microbatch_tokens, err);
    if (st == RLHF_OK) st = copy_hidden(&s, 0, err);
    st = rlhf__team_agree(team, RLHF__BARRIER_PASS, &wish, st, err);
    if (st == RLHF_OK) st = exchange_all(&s, err);
    free(s.first);
    free(s.block);
    free(s.hidden);
    return st;
}
