// setup_rows.c: rlhf__setup_rows (setup.h), which opens what the plan's source of rows needs.
// Outside this file, only checks of settings depend on the source (learn/plan.c, setup.c and
// effect_rules.c).
#include "setup/setup.h"

#include "episode/playing.h"
#include "feed/feed.h"
#include "model/adapter.h"
#include "model/model_config.h"
#include "model/reward_model.h"
#include "sample/response_rules.h"
#include "sample/rewards.h"
#include "sample/rollout.h"

#include <rlhf/draft/iteration.h>

// ---- prompts ----

static rlhf_status check_rewards(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    if (rlhf__cast_has_rewards(&r->cast) || c->n_reward > 0) return RLHF_OK;
    if (r->req->environment && !(r->cast.plan.flags & RLHF_PLAN_REWARDS_OPTIONAL))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s needs a reward, and %s pays nothing: --reward FILE.so (e.g. "
                          "answer.so)",
                          r->req->algo->file, r->req->environment->file);
    if (!(r->cast.plan.flags & RLHF_PLAN_REWARDS_OPTIONAL))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s needs at least one reward: --reward FILE.so (e.g. imdb.so)",
                          r->req->algo->file);
    if (!c->data.eval_path[0]) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "data.eval_path: responses to held-out prompts are measured by rewards, and "
                      "none is given (--reward FILE.so)");
}

static rlhf_status open_rewards(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    RLHF_TRY(check_rewards(r, err));
    struct rlhf__reward_service *models = rlhf__text_services_reward(r->served);
    rlhf__reward_service_trainable(models, r->cast.iteration.reward_model);
    rlhf__reward_service_longest(models, rlhf__prompt_feed_longest(r->feed));
    const struct rlhf__rewards_request q = {.config = c,
                                            .plugin = r->req->rewards,
                                            .services = &r->session.services,
                                            .limits = &r->session.limits,
                                            .watch = rlhf__progress_watch(r->report.progress)};
    RLHF_TRY(rlhf__rewards_open(&q, &r->cast.rewards, err));
    r->cast.n_rewards = c->n_reward;
    RLHF_TRY(rlhf__reward_tallies_init(&r->report.rewards, c->n_reward, err));
    for (size_t i = 0; i < c->n_reward; i++) {
        RLHF_TRY(rlhf__check_rows(r->cast.rewards[i], r->feed->prompts, 0, q.watch, err));
        RLHF_TRY(rlhf__check_rows(r->cast.rewards[i], r->feed->held_out, 1, q.watch, err));
    }
    return RLHF_OK;
}

// Warn if minibatches have different sizes. Each minibatch is one step, so a row has more weight in
// a smaller minibatch.
static void say_uneven(const struct rlhf__run *r) {
    const rlhf_plan *p = &r->cast.plan;
    const int64_t size = r->config->batch.size, parts = p->minibatches;
    const int64_t groups = size / p->group_size;
    const int whole = groups >= parts || (p->flags & RLHF_PLAN_WHOLE_GROUPS);
    const int64_t units = whole ? groups : size, each = whole ? p->group_size : 1;
    if (units % parts == 0) return;
    int64_t step = parts * each;
    const int64_t less = units / parts * each;
    while (step % p->group_size != 0) // a batch has whole groups, also if minibatches split them
        step += parts * each;
    const int64_t down = size - size % step, up = down + step;
    rlhf__logf(r->report.log, RLHF_LOG_WARN,
               "minibatches are uneven: batch.size=%lld in %lld minibatches is %lld of %lld rows "
               "and %lld of %lld%s; with most losses a row counts for more in a smaller one; "
               "batch.size=%lld is even",
               (long long)size, (long long)parts, (long long)(parts - units % parts),
               (long long)less, (long long)(units % parts), (long long)(less + each),
               whole && each > 1 ? " (whole groups)" : "",
               (long long)(down > 0 && size - down <= up - size ? down : up));
}

// Check that this run can have an environment.
static rlhf_status check_environment(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const struct rlhf__model *all[] = {r->cast.policy, r->cast.reference, r->cast.critic};
    const char *file = r->req->environment->file, *with = NULL;
    if (c->rollout.ahead)
        with = "rollout.ahead is 1, but episodes cannot be sampled ahead of training; use "
               "rollout.ahead=0";
    if (c->response.truncate == RLHF__TRUNCATE_PERIOD)
        with = "response.truncate is period, which cuts single responses; none and stop are "
               "possible with an environment";
    if (r->cast.iteration.reward_model)
        with = "the algorithm trains a reward model on single responses";
    if (with) return rlhf__fail(err, RLHF_E_INVALID, "%s: %s", file, with);
    for (size_t i = 0; i < 3 + r->cast.plan.n_named; i++) {
        const struct rlhf__model *m = i < 3 ? all[i] : r->cast.named[i - 3];
        if (m) RLHF_TRY(rlhf__playing_check_model(file, m, err));
    }
    return RLHF_OK;
}

static rlhf_status open_environment(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__plugin *p = r->req->environment;
    if (!p) return RLHF_OK;
    RLHF_TRY(check_environment(r, err));
    r->cast.paid = (p->ops.environment.flags & RLHF_ENVIRONMENT_PAYS) != 0;
    if (!rlhf__run_plays(r)) return RLHF_OK;
    rlhf__progress_note(r->report.progress, "loading the environment");
    RLHF_TRY(rlhf__rewards_offer_limits(r->config, &r->session.services, &r->session.limits, err));
    return rlhf__playing_instance_open(p, &r->session.services, &r->config->environment,
                                       "environment", &r->cast.environment, err);
}

static rlhf_status open_prompts(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__cast *cast = &r->cast;
    int is_start = !r->config->reference.path[0] && !r->req->resume;
    RLHF_TRY(rlhf__setup_policy(r, &(struct rlhf__setup_head){.draws = 1}, err));
    RLHF_TRY(rlhf__model_writes(cast->policy, err));
    RLHF_TRY(rlhf__response_rules_open(&r->config->sampling, &r->config->response,
                                       cast->policy->tok, &cast->rules, err));
    RLHF_TRY(rlhf__setup_critic(r, err));
    RLHF_TRY(rlhf__setup_reference(r, err));
    RLHF_TRY(rlhf__setup_named(r, err));
    RLHF_TRY(open_environment(r, err));
    RLHF_TRY(rlhf__prompt_feed_open(&r->feed_env, is_start, &r->feed, err));
    if (!r->req->recorded) RLHF_TRY(rlhf__setup_ahead(r, err));
    say_uneven(r);
    rlhf__response_say_ends(&r->config->sampling, cast->policy, r->report.log);
    r->iteration.recorded = !rlhf__run_scores(r);
    if (!rlhf__run_scores(r)) return rlhf__reward_tallies_init(&r->report.rewards, 0, err);
    RLHF_TRY(open_rewards(r, err));
    if (r->req->judge) rlhf__progress_note(r->report.progress, "loading the judge");
    RLHF_TRY(rlhf__iteration_open(&r->iteration, rlhf__text_services_reward(r->served),
                                  r->req->judge, &cast->judge, err));
    RLHF_TRY(rlhf__rewards_check_limits(r->config, cast->rewards, cast->judge, err));
    if (!cast->judge) return RLHF_OK;
    return rlhf__check_rows(cast->judge, r->feed->prompts, 0,
                            rlhf__progress_watch(r->report.progress), err);
}

// ---- rows of a file ----

static rlhf_status check_file(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const char *algo = r->req->algo->file;
    if (r->req->judge)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--judge: %s trains on rows of a file and has no responses to judge",
                          algo);
    if (r->req->environment)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--env: %s trains on rows of a file and takes no turns", algo);
    if (c->n_reward > 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--reward: %s trains on rows of a file and has no responses to score",
                          algo);
    if (c->log.rollouts)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "log.rollouts is true, but %s trains on rows of a file and has no "
                          "responses to write",
                          algo);
    if (!c->data.path[0])
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s trains on a file of rows: give it with --data FILE (data.path)",
                          algo);
    return RLHF_OK;
}

static rlhf_status check_whole_rows(const struct rlhf__run *r, struct rlhf__error *err) {
    RLHF_TRY(check_file(r, err));
    if (r->config->data.long_rows == RLHF__DATA_SPLIT)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "data.long_rows is split, but %s trains on whole rows; truncate is allowed",
            r->req->algo->file);
    return RLHF_OK;
}

// Ask the algorithm for the plan again, now that the numbers of phases and labels are known. Check
// that the plan is unchanged.
static rlhf_status check_plan(const struct rlhf__run *r, int32_t n_labels,
                              struct rlhf__error *err) {
    int64_t phases = r->config->run.phases > 0 ? r->config->run.phases : r->feed->phases;
    rlhf_plan again;
    RLHF_TRY(rlhf__setup_ask_plan(r, phases, n_labels, &again, err));
    return rlhf__plan_same(r->cast.algo, &r->cast.plan, &again, err);
}

// Set `*labels` to the names in score.labels or, if that setting is empty, to the labels of the
// classifier from which the run starts. If there are neither names nor a classifier, sets labels->n
// to 0.
static rlhf_status name_labels(const struct rlhf__run *r, struct rlhf__labels *labels,
                               struct rlhf__error *err) {
    char dir[4200];
    json_t *config = NULL;
    rlhf_status st = rlhf__score_labels(r->config->score_head.labels, labels, err);
    if (st != RLHF_OK || labels->n > 0) return st;
    rlhf__setup_policy_dir(r, dir);
    const struct rlhf__model_adapter adapter = rlhf__setup_adapter(r);
    st = rlhf__adapter_config_of(dir, &adapter, &config, err);
    if (st == RLHF_OK && rlhf__model_is_classifier(config) && !rlhf__reward_model_is(config))
        st = rlhf__hf_labels(config, dir, labels, err);
    json_decref(config);
    return st;
}

// Finish the set-up: first tokenize, then check the plan and open the other models. The rows and
// the policy must be open.
static rlhf_status finish_text(struct rlhf__run *r, int32_t n_labels, struct rlhf__error *err) {
    RLHF_TRY(rlhf__text_feed_tokenize(r->feed, err));
    RLHF_TRY(check_plan(r, n_labels, err));
    RLHF_TRY(rlhf__setup_reference(r, err));
    return rlhf__setup_named(r, err);
}

static rlhf_status open_text(struct rlhf__run *r, struct rlhf__error *err) {
    RLHF_TRY(check_file(r, err));
    RLHF_TRY(rlhf__text_feed_open(&r->feed_env, NULL, &r->feed, err));
    RLHF_TRY(rlhf__setup_policy(r, &(struct rlhf__setup_head){0}, err));
    return finish_text(r, 0, err);
}

static rlhf_status open_classifier(struct rlhf__run *r, struct rlhf__labels *labels,
                                   struct rlhf__error *err) {
    struct rlhf__setup_head head = {.pooling = r->config->score_head.pooling};
    RLHF_TRY(name_labels(r, labels, err));
    RLHF_TRY(rlhf__text_feed_open(&r->feed_env, labels, &r->feed, err));
    if (r->cast.plan.heads & RLHF_HEAD_SCORE) head.n_labels = labels->n;
    RLHF_TRY(rlhf__setup_policy(r, &head, err));
    if (head.n_labels == 0) return RLHF_OK;
    // A classifier that is trained further uses BOS as before. A new classifier begins texts with
    // BOS.
    if (!rlhf__model_is_classifier(r->cast.policy->config))
        rlhf__tokenizer_set_bos(r->cast.policy->tok, 1);
    return rlhf__classifier_config(r->cast.policy, labels, err);
}

static rlhf_status open_labeled(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__labels labels = {0};
    RLHF_TRY(check_whole_rows(r, err));
    rlhf_status st = open_classifier(r, &labels, err);
    int32_t n_labels = labels.n;
    rlhf__labels_finish(&labels);
    return st == RLHF_OK ? finish_text(r, n_labels, err) : st;
}

// A reward model gets a score head. In a row without a response, the head reads the last token. The
// host pools all other rows.
static rlhf_status open_scored_policy(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__setup_head head = {
        .n_labels = 1, .pooling = RLHF_POOL_LAST, .init = RLHF_SCORE_INIT_REWARD, .draws = 1};
    RLHF_TRY(rlhf__setup_policy(r, &head, err));
    struct rlhf__model *policy = r->cast.policy;
    if (!(policy->info.heads & RLHF_HEAD_TOKEN_SCORE))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s trains a reward model; the model '%s' (%s) gives no score a token",
                          r->req->algo->file, policy->dir, policy->instance->plugin->file);
    return RLHF_OK;
}

static rlhf_status train_reward(struct rlhf__run *r, struct rlhf__error *err) {
    rlhf_status st = rlhf__reward_training_open(
        &r->feed_env, &r->session.models, r->req->env->cancelled, r->req->resume != NULL,
        rlhf__preference_feed_rows(r->feed), &r->reward_training, err);
    if (st == RLHF_OK) rlhf__preference_feed_trains(r->feed, r->reward_training);
    return st;
}

static rlhf_status open_preferences(struct rlhf__run *r, struct rlhf__error *err) {
    int reward = (r->cast.plan.heads & RLHF_HEAD_SCORE) != 0;
    RLHF_TRY(check_whole_rows(r, err));
    RLHF_TRY(reward ? open_scored_policy(r, err)
                    : rlhf__setup_policy(r, &(struct rlhf__setup_head){0}, err));
    RLHF_TRY(rlhf__preference_feed_open(&r->feed_env, &r->feed, err));
    RLHF_TRY(check_plan(r, 1, err));
    RLHF_TRY(rlhf__setup_reference(r, err));
    return rlhf__setup_named(r, err);
}

// Open the policy for rows with one labeled response per prompt.
static rlhf_status open_completions(struct rlhf__run *r, struct rlhf__error *err) {
    RLHF_TRY(check_whole_rows(r, err));
    RLHF_TRY(rlhf__setup_policy(r, &(struct rlhf__setup_head){0}, err));
    RLHF_TRY(rlhf__preference_feed_open(&r->feed_env, &r->feed, err));
    RLHF_TRY(check_plan(r, 0, err));
    RLHF_TRY(rlhf__setup_reference(r, err));
    return rlhf__setup_named(r, err);
}

rlhf_status rlhf__setup_rows(struct rlhf__run *r, struct rlhf__error *err) {
    static rlhf_status (*const open[])(struct rlhf__run *, struct rlhf__error *) = {
        [RLHF_SOURCE_ROLLOUT] = open_prompts,
        [RLHF_SOURCE_TEXT] = open_text,
        [RLHF_SOURCE_LABELED] = open_labeled,
        [RLHF_SOURCE_PREFERENCES] = open_preferences,
        [RLHF_SOURCE_COMPLETIONS] = open_completions};
    return open[r->cast.plan.source](r, err);
}

rlhf_status rlhf__setup_ready(struct rlhf__run *r, struct rlhf__error *err) {
    const rlhf_plan *plan = &r->cast.plan;
    if (plan->source == RLHF_SOURCE_PREFERENCES && plan->heads & RLHF_HEAD_SCORE)
        RLHF_TRY(train_reward(r, err));
    if (r->feed->ops->ready) RLHF_TRY(r->feed->ops->ready(r->feed, err));
    RLHF_TRY(rlhf__setup_ahead_ready(r, err));
    return rlhf__iteration_ready(&r->iteration, r->feed, err);
}
