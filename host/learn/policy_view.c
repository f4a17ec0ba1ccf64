// policy_view.c: see policy_view.h.
#include "learn/policy_view.h"

#include "batch/policy_rows.h"
#include "batch/row_columns.h"
#include "learn/algo_call.h"

#include <stddef.h>
#include <string.h>

enum { HEADS = 4 };

// Offsets of the per-token heads, for loops over them.
static const size_t value_at[HEADS] = {
    offsetof(rlhf_head_values, logp), offsetof(rlhf_head_values, entropy),
    offsetof(rlhf_head_values, kl), offsetof(rlhf_head_values, value)};
static const size_t gradient_at[HEADS] = {
    offsetof(rlhf_head_gradients, logp), offsetof(rlhf_head_gradients, entropy),
    offsetof(rlhf_head_gradients, kl), offsetof(rlhf_head_gradients, value)};

// The pointer at `at` in a struct.
static void *get(const void *of, size_t at) {
    void *p;
    memcpy(&p, (const char *)of + at, sizeof p);
    return p;
}
static void set(void *of, size_t at, const void *p) { memcpy((char *)of + at, &p, sizeof p); }

// Bytes for each token of all columns of the rows.
static size_t token_bytes(const struct rlhf__rows *e) {
    size_t sum = 0;
    for (size_t i = 0; i < rlhf__n_row_columns; i++) {
        const struct rlhf__row_column *c = &rlhf__row_columns[i];
        if (c->per_token && c->repeat == 1) sum += rlhf__row_column_bytes(e, c);
    }
    return sum + e->n_named * sizeof(float);
}

// In the struct `of`, replace each column with an entry per token by a copy for the policy's
// tokens. `at` is the offset of the member of struct rlhf__row_column that says where.
static void take_columns(struct rlhf__policy_rows *p, const struct rlhf__rows *e, size_t at,
                         void *of) {
    for (size_t i = 0; i < rlhf__n_row_columns; i++) {
        const struct rlhf__row_column *c = &rlhf__row_columns[i];
        uint16_t to;
        memcpy(&to, (const char *)c + at, sizeof to);
        if (!to || !c->per_token) continue;
        set(of, to, rlhf__policy_rows_take(p, get(of, to), rlhf__row_column_bytes(e, c)));
    }
}

// Returns `to`, and sets to[k] to the log-probs of the policy's tokens under named model k. Returns
// NULL if the plan names no models.
static const float *const *take_named(struct rlhf__policy_rows *p, const struct rlhf__rows *e,
                                      const float *const *named, const float **to) {
    for (uint32_t k = 0; named && k < e->n_named; k++)
        to[k] = rlhf__policy_rows_take(p, named[k], sizeof(float));
    return named ? to : NULL;
}

// Copy the results of the policy's tokens back.
static void put_results(const struct rlhf__policy_rows *p, const struct rlhf__rows *e,
                        const rlhf_advantages *out, const rlhf_advantages *own) {
    for (size_t i = 0; i < rlhf__n_row_columns; i++) {
        const struct rlhf__row_column *c = &rlhf__row_columns[i];
        if (c->result_at && c->per_token)
            rlhf__policy_rows_put(p, get(out, c->result_at), get(own, c->result_at),
                                  rlhf__row_column_bytes(e, c));
    }
}

rlhf_status rlhf__view_advantages(const struct rlhf__instance *algo, const struct rlhf__rows *e,
                                  const rlhf_rollout *r, rlhf_advantages *out,
                                  struct rlhf__error *err) {
    struct rlhf__policy_rows p = {0};
    const float *named[RLHF_NAMED_MAX];
    rlhf_rollout own = *r;
    rlhf_advantages results = *out;
    if (!e->turn) return rlhf__algo_advantages(algo, e, r, out, err);
    RLHF_TRY(rlhf__policy_rows_fill(&p, e, 0, e->n, token_bytes(e), err));
    own.total = p.total;
    own.offset = p.offset;
    take_columns(&p, e, offsetof(struct rlhf__row_column, rollout_at), &own);
    take_columns(&p, e, offsetof(struct rlhf__row_column, result_at), &results);
    own.logp_named = take_named(&p, e, r->logp_named, named);
    const rlhf_status st = rlhf__algo_advantages(algo, e, &own, &results, err);
    put_results(&p, e, out, &results);
    rlhf__policy_rows_finish(&p);
    return st;
}

rlhf_status rlhf__view_loss(const struct rlhf__objective *o, const struct rlhf__rows *e,
                            uint32_t from, uint32_t to, const rlhf_loss_in *in, rlhf_loss_out *out,
                            struct rlhf__error *err) {
    struct rlhf__policy_rows p = {0};
    const float *named[RLHF_NAMED_MAX];
    rlhf_loss_in own = *in;
    rlhf_head_values heads = *in->heads;
    rlhf_head_gradients d = *out->d_heads;
    rlhf_loss_out result = {.d_heads = &d};
    const size_t number = sizeof(float);
    if (!e->turn) return o->loss(o->self, in, out, err);
    RLHF_TRY(rlhf__policy_rows_fill(&p, e, from, to, token_bytes(e) + 2 * HEADS * number, err));
    own.total = p.total;
    own.offset = p.offset;
    own.heads = &heads;
    take_columns(&p, e, offsetof(struct rlhf__row_column, loss_at), &own);
    own.logp_named = take_named(&p, e, in->logp_named, named);
    for (int k = 0; k < HEADS; k++) {
        set(&heads, value_at[k], rlhf__policy_rows_take(&p, get(in->heads, value_at[k]), number));
        set(&d, gradient_at[k],
            rlhf__policy_rows_take(&p, get(out->d_heads, gradient_at[k]), number));
    }
    const rlhf_status st = o->loss(o->self, &own, &result, err);
    out->loss = result.loss;
    for (int k = 0; k < HEADS; k++)
        rlhf__policy_rows_put(&p, get(out->d_heads, gradient_at[k]), get(&d, gradient_at[k]),
                              number);
    rlhf__policy_rows_finish(&p);
    return st;
}
