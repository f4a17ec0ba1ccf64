// phase_passes.c: see phase_passes.h.
#include "run/phase_passes.h"

#include "base/clock.h"
#include "learn/pass_share.h"
#include "learn/plan.h"

#include <stdlib.h>
#include <string.h>

// Allocate memory for the hidden states of ref, which the KL head compares with the policy. Device
// memory is used if both models support it, otherwise host memory.
static rlhf_status allocate_hidden(const struct rlhf__phase *p, struct rlhf__experience *x,
                                   const struct rlhf__model *ref, struct rlhf__pass_out *out,
                                   struct rlhf__error *err) {
    struct rlhf__rows *e = &x->rows;
    e->d_hidden = ref->info.d_model;
    if (ref->info.caps & p->learner->model->info.caps & RLHF_CAP_DEV_HIDDEN) {
        uint64_t tokens = (uint64_t)rlhf__rows_response_tokens(e, 0, e->n);
        x->compute = ref->compute;
        rlhf_status st =
            ref->compute->alloc(ref->compute->ctx, tokens * rlhf__state_bytes(ref), &x->ref_hidden);
        if (st != RLHF_OK)
            return rlhf__compute_fail(rlhf__model_kernels(ref), st, "the reference's hidden states",
                                      err);
        out->dev_hidden = x->ref_hidden;
        return rlhf__rows_refer(e, x->ref_hidden, err);
    }
    size_t cells = (size_t)e->total * (size_t)e->d_hidden;
    out->hidden = e->ref_hidden = calloc(cells ? cells : 1, sizeof(float));
    if (!out->hidden) return RLHF__NOMEM(err, "out of memory for hidden states");
    return RLHF_OK;
}

// Compute a frozen model's log-probs for the rows of x and, if `hidden` is 1, also the model's
// hidden states for the KL head.
static rlhf_status pass_frozen(const struct rlhf__phase *p, struct rlhf__experience *x,
                               const struct rlhf__model *m, const char *name, float *logp,
                               int hidden, struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    rlhf__progress_note(p->report->progress, name);
    struct rlhf__pass_out out = {
        .logp = logp, .watch = rlhf__progress_watch(p->report->progress), .doing = name};
    if (hidden) RLHF_TRY(allocate_hidden(p, x, m, &out, err));
    RLHF_TRY(rlhf__pass_share(cast->share.team, m, &x->rows, &cast->logp_dist,
                              p->learner->microbatch_tokens, &out, err));
    if (rlhf__cast_samples(cast)) rlhf__model_trim(m);
    return RLHF_OK;
}

// Returns 1 if the KL head needs hidden states of m that the rows do not have yet.
static int lacks_hidden(const struct rlhf__phase *p, const struct rlhf__model *m) {
    const struct rlhf__rows *e = &p->x.rows;
    return m == rlhf__cast_kl_model(p->cast) && !e->ref_hidden && !e->ref_row;
}

static rlhf_status refer(const struct rlhf__phase *p, struct rlhf__experience *x, int hidden,
                         struct rlhf__error *err) {
    RLHF_TRY(pass_frozen(p, x, p->cast->reference, "reference", x->rows.token[RLHF__LOGP_REF],
                         hidden, err));
    x->referred = 1;
    return RLHF_OK;
}

// Compute the log-probs of the named models. A model that has several names runs once.
static rlhf_status pass_named(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    struct rlhf__rows *e = &p->x.rows;
    RLHF_TRY(rlhf__rows_add_named(e, cast->plan.n_named, err));
    for (uint32_t i = 0; i < cast->plan.n_named; i++) {
        const struct rlhf__model *m = cast->named[i];
        const float *same = p->x.referred && m == cast->reference ? e->token[RLHF__LOGP_REF] : NULL;
        for (uint32_t k = 0; k < i && !same; k++)
            if (cast->named[k] == m) same = e->named[k];
        if (same)
            memcpy(e->named[i], same, (size_t)e->total * sizeof *same);
        else
            RLHF_TRY(pass_frozen(p, &p->x, m, cast->plan.named[i], e->named[i], lacks_hidden(p, m),
                                 err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__phase_pass_reference(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    if (rlhf__cast_wants_reference(cast)) {
        const int hidden = lacks_hidden(p, cast->reference);
        if (!p->x.referred || hidden) RLHF_TRY(refer(p, &p->x, hidden, err));
    }
    return pass_named(p, err);
}

// If there may be further rounds of prompts, this function computes no hidden states, because rows
// that have hidden states cannot be joined with other rows. rlhf__phase_pass_reference computes the
// hidden states after the last round.
rlhf_status rlhf__phase_refer(const struct rlhf__phase *p, struct rlhf__experience *x,
                              struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    const double from = rlhf__seconds();
    if (!cast->rewards_refer) return RLHF_OK;
    RLHF_TRY(refer(p, x,
                   rlhf__cast_kl_model(cast) == cast->reference && cast->plan.resample_rounds == 0,
                   err));
    p->report->times.reference += rlhf__seconds() - from;
    return RLHF_OK;
}

void rlhf__phase_trim(const struct rlhf__phase *p) {
    if (!rlhf__cast_samples(p->cast)) return;
    rlhf__model_trim(p->cast->policy);
    rlhf__model_trim(p->cast->critic);
}

rlhf_status rlhf__phase_pass_policy(struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__cast *cast = p->cast;
    struct rlhf__rows *e = &p->x.rows;
    int recompute = (cast->plan.flags & RLHF_PLAN_RECOMPUTE_LOGP) != 0;
    int64_t tokens = p->learner->microbatch_tokens;
    struct rlhf__pass_out out = {.flops = &p->learner->flops,
                                 .watch = rlhf__progress_watch(p->report->progress),
                                 .doing = "values"};
    if (cast->plan.heads & RLHF_HEAD_VALUE) out.value = e->token[RLHF__VALUE_OLD];
    if (cast->critic) {
        rlhf_status st = rlhf__pass_share(cast->share.team, cast->critic, e, &cast->logp_dist,
                                          tokens, &out, err);
        if (st != RLHF_OK) return st;
        out.value = NULL;
    }
    if (recompute) out.logp = e->token[RLHF__LOGP_OLD];
    rlhf_status st = RLHF_OK;
    if (out.value || out.logp)
        st = rlhf__pass_share(cast->share.team, cast->policy, e, &cast->logp_dist, tokens, &out,
                              err);
    if (st == RLHF_OK && recompute && rlhf__cast_samples(cast))
        rlhf__learner_compare(p->learner, e, 0, e->n, e->token[RLHF__LOGP_SAMPLED],
                              e->token[RLHF__LOGP_OLD]);
    return st;
}

rlhf_status rlhf__phase_passes(struct rlhf__phase *p, struct rlhf__error *err) {
    RLHF_TRY(rlhf__phase_pass_reference(p, err));
    RLHF_TRY(rlhf__phase_pass_policy(p, err));
    rlhf__phase_trim(p);
    return RLHF_OK;
}
