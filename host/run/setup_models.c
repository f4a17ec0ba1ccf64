// setup_models.c: see setup_models.h.
#include "run/setup_models.h"

#include "base/file.h"
#include "keep/run_dir.h"
#include "model/parameters.h"
#include "run/trainer.h"

#include <rlhf/draft/iteration.h>

#include <stdio.h>

static int wants_value(const struct rlhf__run *r) {
    return (r->cast.plan.heads & RLHF_HEAD_VALUE) != 0;
}

rlhf_status rlhf__setup_ask_plan(const struct rlhf__run *r, int64_t phases, int32_t n_labels,
                                 rlhf_plan *out, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    rlhf_run_info info = {.size = sizeof info,
                          .phases = (int32_t)(phases < INT32_MAX ? phases : INT32_MAX),
                          .batch_size = (int32_t)c->batch.size,
                          .max_new_tokens = (int32_t)c->sampling.max_new_tokens,
                          .n_labels = n_labels,
                          .temperature = c->sampling.temperature};
    return rlhf__plan_ask(r->cast.algo, &info, out, err);
}

void rlhf__setup_policy_dir(const struct rlhf__run *r, char out[4200]) {
    const char *path = r->config->policy.path;
    const struct rlhf__dirs *dirs = r->req->env->dirs;
    char room[RLHF__PATH_CAP];
    rlhf__default_model(dirs, "policy", room);
    path = path[0] ? rlhf__dirs_shared(dirs, path, room) : room;
    snprintf(out, 4200, "%s", r->req->resume ? r->req->dir->checkpoint : path);
}

// The planned heads that the policy lacks.
static rlhf_status check_heads(const struct rlhf__run *r, int value, struct rlhf__error *err) {
    const struct rlhf__model *policy = r->cast.policy;
    uint32_t lacking = r->cast.plan.heads & ~policy->info.heads;
    if (!value) lacking &= ~(uint32_t)RLHF_HEAD_VALUE;
    if (!lacking) return RLHF_OK;
    if (lacking & RLHF_HEAD_LOGP) RLHF_TRY(rlhf__model_writes(policy, err));
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s needs heads that the model '%s' (%s) does not have", r->req->algo->file,
                      policy->dir, policy->instance->plugin->file);
}

rlhf_status rlhf__setup_policy(struct rlhf__run *r, const struct rlhf__setup_head *head,
                               struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    char dir[4200];
    rlhf__setup_policy_dir(r, dir);
    int value = wants_value(r) && c->value.critic == RLHF__CRITIC_SHARED;
    struct rlhf__model_spec spec = {
        .dir = dir,
        .role = "policy",
        .start = c->policy.init == RLHF__INIT_RANDOM ? RLHF__START_RANDOM : RLHF__START_HEADS,
        .trainable = 1,
        .moments = rlhf__trainer_moments(r->config),
        .n_labels = head->n_labels,
        .pooling = head->pooling,
        .score_init = head->init,
        .tokens_only = head->draws,
        .value_kind = value ? c->value.kind : RLHF_VALUE_NONE,
        .value_init = c->value.init,
        .value_detach = c->value.detach};
    if (r->req->resume) spec.start = RLHF__START_EMPTY;
    rlhf__progress_note(r->report.progress, "loading the policy");
    rlhf_status st = rlhf__model_open(&r->session.models, &spec, &r->cast.policy, err);
    if (st != RLHF_OK) return rlhf__is_dir(dir) ? st : rlhf__error_context(err, "policy.path");
    rlhf__text_services_policy(r->session.text, r->cast.policy->tok);
    return check_heads(r, value, err);
}

// `what` reads the same tokens as the policy.
static rlhf_status check_vocabulary(const struct rlhf__cast *c, const struct rlhf__model *m,
                                    const char *what, struct rlhf__error *err) {
    if (rlhf__tokenizer_equal(m->tok, c->policy->tok)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the vocabulary of the %s '%s' is not the policy's ('%s')", what, m->dir,
                      c->policy->dir);
}

rlhf_status rlhf__setup_critic(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    struct rlhf__cast *cast = &r->cast;
    char room[RLHF__PATH_CAP];
    if (!wants_value(r) || c->value.critic == RLHF__CRITIC_SHARED) return RLHF_OK;
    // From value.path, or from where the policy starts.
    const char *own = rlhf__dirs_shared(r->req->env->dirs, c->value.path, room);
    struct rlhf__model_spec spec = {.dir = own[0] ? own : cast->policy->dir,
                                    .role = "critic",
                                    .start = RLHF__START_WEIGHTS,
                                    .trainable = 1,
                                    .moments = rlhf__trainer_moments(r->config),
                                    .value_kind = c->value.kind,
                                    .value_init = c->value.init,
                                    .value_detach = c->value.detach};
    if (c->policy.init == RLHF__INIT_RANDOM && !c->value.path[0]) spec.start = RLHF__START_RANDOM;
    if (r->req->resume) spec.start = RLHF__START_EMPTY;
    rlhf__progress_note(r->report.progress, "loading the critic");
    rlhf_status st = rlhf__model_open(&r->session.models, &spec, &cast->critic, err);
    return st == RLHF_OK ? check_vocabulary(cast, cast->critic, "critic", err) : st;
}

// The full KL hands the reference's instance to the policy's plugin, which knows its own kind only.
static rlhf_status check_family(const struct rlhf__cast *c, struct rlhf__error *err) {
    const struct rlhf__model *p = c->policy, *ref = c->reference;
    const struct rlhf__plugin *own = p->instance->plugin, *other = ref->instance->plugin;
    if (own != other)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the full KL needs a reference of the policy's family: '%s' is of %s, "
                          "'%s' of %s",
                          ref->dir, other->file, p->dir, own->file);
    if (p->info.d_model != ref->info.d_model)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the full KL needs a reference of the policy's width: '%s' has %d, '%s' "
                          "has %d",
                          ref->dir, ref->info.d_model, p->dir, p->info.d_model);
    return RLHF_OK;
}

static rlhf_status check_reference(const struct rlhf__cast *c, struct rlhf__error *err) {
    RLHF_TRY(check_vocabulary(c, c->reference, "reference", err));
    if (!(c->reference->info.heads & RLHF_HEAD_LOGP))
        return rlhf__fail(err, RLHF_E_INVALID, "the reference '%s' (%s) gives no log-probs",
                          c->reference->dir, c->reference->instance->plugin->file);
    return c->plan.heads & RLHF_HEAD_KL ? check_family(c, err) : RLHF_OK;
}

rlhf_status rlhf__setup_reference(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    struct rlhf__cast *cast = &r->cast;
    // A reward model that is trained is fitted on samples of the reference.
    if (!rlhf__plan_wants_reference(&cast->plan) && !(cast->plan.flags & RLHF_PLAN_REWARD_MODEL))
        return RLHF_OK;
    const int own = c->reference.path[0] != '\0';
    const char *path = own ? c->reference.path : c->policy.path;
    char room[RLHF__PATH_CAP];
    rlhf__default_model(r->req->env->dirs, "policy", room);
    struct rlhf__model_spec spec = {
        .dir = path[0] ? rlhf__dirs_shared(r->req->env->dirs, path, room) : room,
        .role = "reference",
        .start = c->policy.init == RLHF__INIT_RANDOM ? RLHF__START_RANDOM : RLHF__START_WEIGHTS,
        .tokens_only = cast->policy->spec.tokens_only,
        .frozen = !(cast->plan.flags & RLHF_PLAN_MOVES_REFERENCE)};
    if (own) {
        spec.start = RLHF__START_WEIGHTS;
    } else if (!r->req->resume) {
        spec.start = RLHF__START_EMPTY; // copied when loaded: cheaper than reading the file again
    }
    rlhf__progress_note(r->report.progress, "loading the reference");
    rlhf_status st = rlhf__model_open(&r->session.models, &spec, &cast->reference, err);
    if (st != RLHF_OK && !rlhf__is_dir(spec.dir))
        rlhf__error_context(err, "the reference (%s)",
                            own ? "reference.path" : "policy.path, as reference.path is empty");
    return st == RLHF_OK ? check_reference(cast, err) : st;
}

rlhf_status rlhf__setup_load(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__cast *cast = &r->cast;
    const struct {
        struct rlhf__model *model;
        const char *note;
    } own[] = {{cast->policy, "loading the policy"},
               {cast->critic, "loading the critic"},
               {cast->reference, "loading the reference"}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (!own[i].model) continue;
        rlhf__progress_note(r->report.progress, own[i].note);
        RLHF_TRY(rlhf__model_load(own[i].model, err));
    }
    if (cast->reference && cast->reference->spec.start == RLHF__START_EMPTY)
        RLHF_TRY(rlhf__params_copy(cast->reference, cast->policy, err));
    rlhf__progress_note(r->report.progress, "loading the rewards");
    return rlhf__text_services_load(r->session.text, err);
}
