// reference.c: see reference.h.
#include "run/reference.h"
#include "learn/pass.h"

#include "model/parameters.h"

#include <stdlib.h>

// The full KL hands the reference's instance to the policy's plugin, which knows its own kind only.
static rlhf_status check_family(const struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__model *p = t->cast.policy, *r = t->cast.reference;
    const struct rlhf__plugin *own = p->instance->plugin, *other = r->instance->plugin;
    if (own != other)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the full KL needs a reference of the policy's family: '%s' is of %s, "
                          "'%s' of %s",
                          r->dir, other->file, p->dir, own->file);
    if (p->info.d_model != r->info.d_model)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the full KL needs a reference of the policy's width: '%s' has %d, '%s' "
                          "has %d",
                          r->dir, r->info.d_model, p->dir, p->info.d_model);
    return RLHF_OK;
}

rlhf_status rlhf__reference_open(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    // A reward model that is trained is fitted on samples of the reference.
    if (!rlhf__plan_compares(&t->cast.plan) && !(t->cast.plan.flags & RLHF_PLAN_REWARD_MODEL))
        return RLHF_OK;
    char dir[2048];
    rlhf__default_model(t->req->env->dirs, "policy", dir);
    struct rlhf__model_spec spec = {
        .dir = c->policy.path[0] ? c->policy.path : dir,
        .role = "reference",
        .start = c->policy.init == RLHF__INIT_RANDOM ? RLHF__START_RANDOM : RLHF__START_WEIGHTS,
        .frozen = !(t->cast.plan.flags & RLHF_PLAN_MOVES_REFERENCE)};
    if (c->reference.path[0]) {
        spec.dir = c->reference.path;
        spec.start = RLHF__START_WEIGHTS;
    } else if (!t->req->resume) {
        spec.start = RLHF__START_EMPTY; // copied below: cheaper than reading the file again
    }
    rlhf__progress_note(t->report.progress, "loading the reference");
    rlhf_status st = rlhf__model_open(&t->session.models, &spec, &t->cast.reference, err);
    if (st != RLHF_OK) return st;
    if (!rlhf__tokenizer_equal(t->cast.reference->tok, t->cast.policy->tok))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the vocabulary of the reference '%s' is not the policy's ('%s')",
                          t->cast.reference->dir, t->cast.policy->dir);
    if (!(t->cast.reference->info.heads & RLHF_HEAD_LOGP))
        return rlhf__fail(err, RLHF_E_INVALID, "the reference '%s' (%s) gives no log-probs",
                          t->cast.reference->dir, t->cast.reference->instance->plugin->file);
    if (t->cast.plan.heads & RLHF_HEAD_KL) st = check_family(t, err);
    if (st != RLHF_OK || spec.start != RLHF__START_EMPTY) return st;
    return rlhf__params_copy(t->cast.reference, t->cast.policy, err);
}

rlhf_status rlhf__reference_pass(struct rlhf__run *t, struct rlhf__episodes *e,
                                 struct rlhf__error *err) {
    if (!rlhf__plan_compares(&t->cast.plan)) return RLHF_OK;
    struct rlhf__pass_out out = {.logp = e->token[RLHF__LOGP_REF],
                                 .watch = rlhf__progress_watch(t->report.progress),
                                 .doing = "reference"};
    if (t->cast.plan.heads & RLHF_HEAD_KL) {
        e->d_hidden = t->cast.reference->info.d_model;
        size_t cells = (size_t)e->total * (size_t)e->d_hidden;
        out.hidden = e->ref_hidden = calloc(cells ? cells : 1, sizeof(float));
        if (!out.hidden) return RLHF__NOMEM(err, "out of memory for hidden states");
    }
    return rlhf__pass(t->cast.reference, e, &t->learner.dist, t->config->batch.microbatch_tokens,
                      &out, err);
}
