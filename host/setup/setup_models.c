// setup_models.c: opens a run's models and creates their optimizers; see setup.h.
#include "setup/setup.h"

#include "base/file.h"
#include "keep/run_dir.h"
#include "learn/algo_call.h"
#include "learn/plan.h"
#include "model/parameters.h"
#include "model/text_note.h"

#include <rlhf/draft/iteration.h>
#include <rlhf/environment.h>

#include <stdio.h>
#include <string.h>

static int wants_value(const struct rlhf__run *r) {
    return (r->cast.plan.heads & RLHF_HEAD_VALUE) != 0;
}

rlhf_status rlhf__setup_ask_plan(const struct rlhf__run *r, int64_t phases, int32_t n_labels,
                                 rlhf_plan *out, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const struct rlhf__plugin *environment = r->req->environment;
    const int pays =
        environment && (environment->ops.environment.flags & RLHF_ENVIRONMENT_PAYS) != 0;
    rlhf_run_info info = {.phases = phases,
                          .batch_size = (uint32_t)c->batch.size,
                          .max_new_tokens = (uint32_t)rlhf__config_most_drawn(c),
                          .max_turns = c->environment.plugin ? (uint32_t)c->episodes.turns : 1,
                          .shards = r->cast.share.shards,
                          .n_labels = (uint32_t)n_labels,
                          .n_rewards = (uint32_t)c->n_reward + (uint32_t)pays,
                          .temperature = c->sampling.temperature,
                          .ahead = (uint32_t)c->rollout.ahead};
    return rlhf__plan_ask(r->cast.algo, &info, out, err);
}

// The adapter that the policy starts with.
static struct rlhf__model_adapter first_adapter(const struct rlhf__run *r) {
    const struct rlhf__policy_config *c = &r->config->policy;
    return (struct rlhf__model_adapter){.dir = c->adapter_path,
                                        .targets = c->adapter_targets,
                                        .alpha = c->adapter_alpha,
                                        .rank = (int32_t)c->adapter_rank};
}

// Returns 1 if the base of an adapter has been moved and --policy gives the new path of the base.
static int base_moved(const struct rlhf__run *r) {
    const json_t *from = json_object_get(r->config->given, "policy.path");
    return r->req->resume && json_is_true(json_object_get(from, "moved")) &&
           rlhf__peft_is(r->req->dir->checkpoint);
}

struct rlhf__model_adapter rlhf__setup_adapter(const struct rlhf__run *r) {
    if (!r->req->resume) return first_adapter(r);
    const char *dir = base_moved(r) ? r->req->dir->checkpoint : NULL;
    return (struct rlhf__model_adapter){.dir = dir};
}

// Returns the directory from which the policy started. Returns "" if the settings name only an
// adapter, because the adapter itself names its base.
static const char *first_dir(const struct rlhf__run *r, char out[RLHF__PATH_CAP]) {
    const struct rlhf__policy_config *c = &r->config->policy;
    if (c->path[0]) return rlhf__dirs_shared(r->req->env->dirs, c->path, out);
    if (c->adapter_path[0]) return "";
    rlhf__default_model(r->req->env->dirs, "policy", out);
    return out;
}

void rlhf__setup_policy_dir(const struct rlhf__run *r, char out[4200]) {
    char own[RLHF__PATH_CAP];
    const int kept = r->req->resume && !base_moved(r);
    snprintf(out, 4200, "%s", kept ? r->req->dir->checkpoint : first_dir(r, own));
}

static int has_adapter(const struct rlhf__run *r) { return r->cast.policy->peft.rank > 0; }

// Reject an adapter on a randomly initialized model, and Muon if there is no matrix to train.
static rlhf_status check_adapter(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const struct rlhf__peft *p = &r->cast.policy->peft;
    if (!has_adapter(r)) return RLHF_OK;
    if (c->policy.init == RLHF__INIT_RANDOM)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "policy.init=random draws a model that an adapter's checkpoints would "
                          "not hold; an adapter needs policy.init=pretrained");
    if (c->optim.kind == RLHF__OPTIM_MUON)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "optim.kind=muon is for the model's own matrices, which stay as they are "
                          "with an adapter; it is trained with optim.kind=adamw");
    if (p->dropout > 0)
        rlhf__logf(r->report.log, RLHF_LOG_WARN,
                   "the adapter '%s' was trained with lora_dropout %g; here it is trained without "
                   "dropout, as log-probs of sampling and training are the same to the bit",
                   p->dir, p->dropout);
    return RLHF_OK;
}

// The default prompts fit the default policy. With another policy they may be a mistake, so log
// that they are used.
static void say_prompts(const struct rlhf__run *r) {
    const struct rlhf__config *c = r->config;
    const int own = c->prompts.path[0] || c->prompts.text[0];
    if (own || !c->policy.path[0] || r->req->resume || c->environment.plugin ||
        r->cast.plan.source != RLHF_SOURCE_ROLLOUT)
        return;
    rlhf__logf(
        r->report.log, RLHF_LOG_INFO,
        "prompts: the default ones, beginnings of film reviews; --prompts FILE names others");
}

// Check that the policy has the planned heads.
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

// On an actor, the weights come from the learners. Only the trunk of a policy with an adapter is
// read from its files, as usual.
static void for_actor(const struct rlhf__run *r, struct rlhf__model_spec *spec) {
    const int adapts = spec->adapter.rank > 0 || (spec->adapter.dir && spec->adapter.dir[0]) ||
                       rlhf__peft_is(spec->dir);
    if (!rlhf__run_acts(r)) return;
    spec->start = adapts ? RLHF__START_WEIGHTS : RLHF__START_EMPTY;
    spec->trainable = spec->moments = 0;
    spec->value_kind = RLHF_VALUE_NONE;
    spec->value_init = spec->value_detach = 0;
}

rlhf_status rlhf__setup_policy(struct rlhf__run *r, const struct rlhf__setup_head *head,
                               struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    char dir[4200];
    rlhf__setup_policy_dir(r, dir);
    int value = wants_value(r) && c->value.critic == RLHF__CRITIC_SHARED && !rlhf__run_acts(r);
    struct rlhf__model_spec spec = {
        .dir = dir,
        .adapter = rlhf__setup_adapter(r),
        .role = "policy",
        .start = c->policy.init == RLHF__INIT_RANDOM ? RLHF__START_RANDOM : RLHF__START_HEADS,
        .trainable = 1,
        .moments = rlhf__setup_moments(r->config),
        .n_labels = head->n_labels,
        .pooling = head->pooling,
        .score_init = head->init,
        .tokens_only = head->draws,
        .language = head->n_labels == 0,
        .value_kind = value ? c->value.kind : RLHF_VALUE_NONE,
        .value_init = c->value.init,
        .value_detach = c->value.detach};
    // For a policy with an adapter, the checkpoint does not contain the trunk.
    if (r->req->resume && !rlhf__peft_is(r->req->dir->checkpoint)) spec.start = RLHF__START_EMPTY;
    for_actor(r, &spec);
    rlhf__progress_note(r->report.progress, "loading the policy");
    if (!c->policy.path[0] && !c->policy.adapter_path[0] && !r->req->resume)
        rlhf__logf(r->report.log, RLHF_LOG_INFO,
                   "policy: the default model, which writes film reviews; --policy DIR names "
                   "another");
    say_prompts(r);
    rlhf_status st = rlhf__model_open(&r->session.models, &spec, &r->cast.policy, err);
    if (st != RLHF_OK)
        return !dir[0] || rlhf__is_dir(dir) ? st : rlhf__error_context(err, "policy.path");
    RLHF_TRY(check_adapter(r, err));
    if (has_adapter(r)) r->session.models.shared = r->cast.policy;
    rlhf__model_prepend_bos(r->cast.policy, c->prompts.prepend_bos);
    RLHF_TRY(rlhf__model_choose_chat(r->cast.policy, &c->prompts, err));
    rlhf__text_services_policy(r->served, r->cast.policy->tok);
    return check_heads(r, value, err);
}

// Check that m has the policy's vocabulary. `what` is the role of m in messages.
static rlhf_status check_vocabulary(const struct rlhf__cast *c, const struct rlhf__model *m,
                                    const char *what, struct rlhf__error *err) {
    if (rlhf__tokenizer_equal(m->tok, c->policy->tok)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the vocabulary of the %s '%s' is not the policy's ('%s')", what, m->dir,
                      c->policy->dir);
}

// Set the model from which the critic starts: value.path if it is set, otherwise the model from
// which the policy started.
static void critic_start(const struct rlhf__run *r, char room[RLHF__PATH_CAP],
                         struct rlhf__model_spec *spec) {
    const struct rlhf__config *c = r->config;
    const struct rlhf__model *policy = r->cast.policy;
    char real[RLHF__PATH_CAP];
    const int other = c->value.path[0] &&
                      (!rlhf__path_real(c->value.path, real) || strcmp(real, policy->dir) != 0);
    spec->dir = c->value.path[0] ? c->value.path : policy->dir;
    spec->start = RLHF__START_WEIGHTS;
    if (has_adapter(r) && !other) {
        spec->adapter = first_adapter(r);
        if (!c->value.path[0]) spec->dir = first_dir(r, room);
        return; // no checkpoint contains the critic's trunk
    }
    if (c->policy.init == RLHF__INIT_RANDOM && !c->value.path[0]) spec->start = RLHF__START_RANDOM;
    if (r->req->resume) spec->start = RLHF__START_EMPTY;
}

rlhf_status rlhf__setup_critic(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    struct rlhf__cast *cast = &r->cast;
    char room[RLHF__PATH_CAP];
    if (!wants_value(r) || c->value.critic == RLHF__CRITIC_SHARED) return RLHF_OK;
    struct rlhf__model_spec spec = {.role = "critic",
                                    .trainable = 1,
                                    .moments = rlhf__setup_moments(r->config),
                                    .value_kind = c->value.kind,
                                    .value_init = c->value.init,
                                    .value_detach = c->value.detach};
    critic_start(r, room, &spec);
    // If the critic has an adapter, the checkpoint does not contain the critic's trunk either.
    if (spec.start == RLHF__START_EMPTY && rlhf__peft_is(spec.dir))
        spec.start = RLHF__START_WEIGHTS;
    rlhf__progress_note(r->report.progress, "loading the critic");
    rlhf_status st = rlhf__model_open(&r->session.models, &spec, &cast->critic, err);
    return st == RLHF_OK ? check_vocabulary(cast, cast->critic, "critic", err) : st;
}

static const char *divergence_name(int32_t divergence) {
    static const char *const names[] = {"reverse", "forward", "Jensen-Shannon"};
    return names[divergence];
}

// The KL head passes `other` to the policy's plugin, so both must have the same plugin. Only some
// models and backends support a divergence other than the default, or two models of different
// width. `what` is the name of `other` in messages, such as "reference" or "teacher".
static rlhf_status check_family(const struct rlhf__cast *c, const struct rlhf__model *other,
                                const char *what, struct rlhf__error *err) {
    const struct rlhf__model *p = c->policy;
    const struct rlhf__plugin *own = p->instance->plugin, *theirs = other->instance->plugin;
    const int wide = p->info.d_model != other->info.d_model;
    if (own != theirs)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the full KL needs a %s of the policy's family: '%s' is of %s, "
                          "'%s' of %s; a KL from log-probs of the sampled tokens needs none",
                          what, other->dir, theirs->file, p->dir, own->file);
    if (p->info.n_vocab != other->info.n_vocab)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the full KL needs a %s of the policy's vocabulary: '%s' has %d tokens, "
                          "'%s' has %d",
                          what, other->dir, other->info.n_vocab, p->dir, p->info.n_vocab);
    if (p->info.caps & RLHF_CAP_DIVERGENCE) return RLHF_OK;
    if (wide)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the full KL needs a %s of the policy's width with %s on the compute "
                          "backend %s: '%s' has %d, '%s' has %d; a KL from log-probs of the "
                          "sampled tokens needs none",
                          what, own->file, p->compute->name, other->dir, other->info.d_model,
                          p->dir, p->info.d_model);
    if (c->plan.divergence == RLHF_DIVERGENCE_REVERSE) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s plans the %s divergence over the whole vocabulary, which %s on the "
                      "compute backend %s cannot give; it has the reverse one",
                      c->algo->plugin->file, divergence_name(c->plan.divergence), own->file,
                      p->compute->name);
}

rlhf_status rlhf__setup_check_frozen(const struct rlhf__cast *c, const struct rlhf__model *m,
                                     const char *what, struct rlhf__error *err) {
    RLHF_TRY(check_vocabulary(c, m, what, err));
    if (!(m->info.heads & RLHF_HEAD_LOGP))
        return rlhf__fail(err, RLHF_E_INVALID, "the %s '%s' (%s) gives no log-probs", what, m->dir,
                          m->instance->plugin->file);
    return m == rlhf__cast_kl_model(c) ? check_family(c, m, what, err) : RLHF_OK;
}

// Set the spec of the reference for a policy with an adapter. The reference is reference.path or,
// by default, the policy's base. In two cases the reference has an adapter too, separate from the
// policy's: if the reference is updated, or if the policy started from an adapter and
// reference.path is empty.
static rlhf_status adapter_reference(const struct rlhf__run *r, struct rlhf__model_spec *spec,
                                     char room[RLHF__PATH_CAP], struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const struct rlhf__model *policy = r->cast.policy;
    const int moves = !spec->frozen;
    const struct rlhf__model_adapter first = first_adapter(r);
    char real[RLHF__PATH_CAP];
    spec->start = RLHF__START_WEIGHTS;
    if (c->reference.path[0]) {
        const char *own = rlhf__dirs_shared(r->req->env->dirs, c->reference.path, room);
        if (moves && (!rlhf__path_real(own, real) || strcmp(real, policy->dir) != 0))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s moves the reference with the policy, whose adapter goes on its "
                              "own base '%s' only; reference.path is '%s'",
                              r->req->algo->file, policy->dir, c->reference.path);
        spec->dir = own;
    } else {
        spec->dir = first_dir(r, room);
    }
    if (moves || (first.dir[0] && !c->reference.path[0])) spec->adapter = first;
    return RLHF_OK;
}

static void say_reference(const struct rlhf__run *r) {
    const struct rlhf__model *ref = r->cast.reference;
    if (!ref->base) return;
    if (ref->peft.rank == 0)
        rlhf__logf(r->report.log, RLHF_LOG_INFO,
                   "the reference is the policy's base without an adapter; no second copy is held");
    else
        rlhf__logf(r->report.log, RLHF_LOG_INFO,
                   "the reference is the policy's base with a separate adapter%s; no second "
                   "copy is held",
                   ref->frozen ? "" : ", which becomes the policy's when the reference moves");
}

rlhf_status rlhf__setup_reference(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    struct rlhf__cast *cast = &r->cast;
    // Training a reward model needs the reference, which samples the texts for gain and bias.
    if (!rlhf__cast_wants_reference(cast) && !cast->iteration.reward_model) return RLHF_OK;
    char dir[RLHF__PATH_CAP];
    struct rlhf__model_spec spec = {
        .role = "reference",
        .start = c->policy.init == RLHF__INIT_RANDOM ? RLHF__START_RANDOM : RLHF__START_WEIGHTS,
        .tokens_only = cast->policy->spec.tokens_only,
        .language = cast->policy->spec.language,
        .frozen = !cast->iteration.moves_reference};
    if (has_adapter(r)) {
        RLHF_TRY(adapter_reference(r, &spec, dir, err));
    } else if (c->reference.path[0]) {
        spec.dir = rlhf__dirs_shared(r->req->env->dirs, c->reference.path, dir);
        spec.start = RLHF__START_WEIGHTS;
    } else {
        spec.dir = first_dir(r, dir);
        // Loading copies the reference from the policy, because this is cheaper than reading the
        // file again.
        if (!r->req->resume) spec.start = RLHF__START_EMPTY;
    }
    rlhf__progress_note(r->report.progress, "loading the reference");
    rlhf_status st = rlhf__model_open(&r->session.models, &spec, &cast->reference, err);
    if (st != RLHF_OK && !rlhf__is_dir(spec.dir))
        rlhf__error_context(err, "the reference (%s)",
                            c->reference.path[0] ? "reference.path"
                                                 : "policy.path, as reference.path is empty");
    if (st == RLHF_OK) say_reference(r);
    return st == RLHF_OK ? rlhf__setup_check_frozen(cast, cast->reference, "reference", err) : st;
}

// ---- all of them ----

// Sets `out` to the run's own models, each listed once, and returns their number.
enum { MODELS = 3 + RLHF_NAMED_MAX };
static size_t own_models(const struct rlhf__cast *c, struct rlhf__model *out[MODELS]) {
    struct rlhf__model *const roles[] = {c->policy, c->critic, c->reference};
    size_t n = 0;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (roles[i]) out[n++] = roles[i];
    for (uint32_t i = 0; i < c->plan.n_named; i++)
        if (c->named[i] && !rlhf__cast_is_shared(c, i)) out[n++] = c->named[i];
    return n;
}

rlhf_status rlhf__setup_check(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__model *own[MODELS];
    const size_t n = own_models(&r->cast, own);
    for (size_t i = 0; i < n; i++) {
        const int32_t start = own[i]->spec.start;
        if (start == RLHF__START_WEIGHTS || start == RLHF__START_HEADS)
            RLHF_TRY(rlhf__params_check(own[i], start == RLHF__START_HEADS, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__setup_load(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__cast *cast = &r->cast;
    struct rlhf__model *own[MODELS];
    const size_t n = own_models(cast, own);
    for (size_t i = 0; i < n; i++) {
        char note[64];
        snprintf(note, sizeof note, "loading the %s", own[i]->role);
        rlhf__progress_note(r->report.progress, note);
        RLHF_TRY(rlhf__model_load(own[i], err));
    }
    if (cast->reference && cast->reference->spec.start == RLHF__START_EMPTY)
        RLHF_TRY(rlhf__params_copy(cast->reference, cast->policy, err));
    rlhf__progress_note(r->report.progress, "loading the rewards");
    return rlhf__text_services_load(r->served, err);
}

// ---- optimizers and learner ----

int32_t rlhf__setup_moments(const struct rlhf__config *c) {
    return c->optim.kind == RLHF__OPTIM_MUON ? 1 : 2;
}

rlhf_status rlhf__setup_optim(const struct rlhf__run *r, const struct rlhf__model *m,
                              struct rlhf__optim **out, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const int critic = m == r->cast.critic;
    struct rlhf__optim_config own = c->optim;
    if (critic && c->value.lr > 0) own.lr = c->value.lr;
    const struct rlhf__optim_spec spec = {.kernels = rlhf__model_kernels(m),
                                          .params = m->params,
                                          .n = m->n_tensors,
                                          .config = &own,
                                          .head_lr = critic ? 0 : c->value.lr,
                                          .grads = m->info.grad_base,
                                          .grads_bytes = m->info.grad_bytes,
                                          .share = &r->cast.share};
    return rlhf__optim_open(m->compute, &spec, out, err);
}

struct rlhf__learner rlhf__setup_learner(const struct rlhf__run *r, struct rlhf__optim *optim,
                                         struct rlhf__optim *critic_optim) {
    const struct rlhf__config *c = r->config;
    const struct rlhf__cast *cast = &r->cast;
    return (struct rlhf__learner){
        .model = cast->policy,
        .kl_model = rlhf__cast_kl_model(cast),
        .critic = cast->critic,
        .reward_head = rlhf__reward_training_head(r->reward_training),
        .critic_optim = critic_optim,
        .objective = rlhf__algo_objective(cast->algo),
        .optim = optim,
        .plan = cast->plan,
        .dist = cast->logp_dist,
        .microbatch_tokens = rlhf__model_microbatch(cast->policy, c->batch.microbatch_tokens),
        .written_out = !c->batch.share_prompts,
        .max_new_tokens = rlhf__config_most_drawn(c),
        .watch = rlhf__progress_watch(r->report.progress)};
}
