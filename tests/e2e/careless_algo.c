// careless_algo.c: an algorithm that breaks one rule of the contract, which the option `how`
// chooses, in the calls of phase 2. Otherwise it is REINFORCE without a baseline.
#include "support/plugin.h"

#include <rlhf/algo.h>

#include <math.h>
#include <pthread.h>

enum how {
    NOTHING,
    NAN_ADVANTAGE,
    INFINITE_RETURN,
    ALL_NAN,
    PAST_ADVANTAGE,
    PAST_RETURNS,
    PAST_USE,
    PAST_CARRY,
    PAST_LOGP,
    REDUCE,
    REDUCE_THREAD,
    NAME,
    THREAD,
    CRASH,
    USE,
    RESERVED,
    OTHER_ADVANTAGE,
    OTHER_CARRY,
    OTHER_TOKENS,
    OTHER_SLOPES,
    STOP,
    CHANGE_IN,
    CHANGE_HEADS,
    CHANGE_SLOPES,
    CHANGE_ROLLOUT,
    CHANGE_STEP,
    CHANGE_RUN,
    BETA,
    NAMED,
    NO_NAMES,
    EARLY,
    PROMPT_ADVANTAGE,
    PROMPT_SLOPE,
    NAN_SLOPE,
    NAN_LOSS
};
static const char *const ways[] = {"nothing",
                                   "nan_advantage",
                                   "infinite_return",
                                   "all_nan",
                                   "past_advantage",
                                   "past_returns",
                                   "past_use",
                                   "past_carry",
                                   "past_logp",
                                   "reduce",
                                   "reduce_thread",
                                   "name",
                                   "thread",
                                   "crash",
                                   "use",
                                   "reserved",
                                   "other_advantage",
                                   "other_carry",
                                   "other_tokens",
                                   "other_slopes",
                                   "stop",
                                   "change_in",
                                   "change_heads",
                                   "change_slopes",
                                   "change_rollout",
                                   "change_step",
                                   "change_run",
                                   "beta",
                                   "named",
                                   "no_names",
                                   "early",
                                   "prompt_advantage",
                                   "prompt_slope",
                                   "nan_slope",
                                   "nan_loss",
                                   NULL};

struct config {
    int32_t how, reserved;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_ENUM(struct config, how, NOTHING, ways, "the rule that it breaks"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
};

TEST_INSTANCE(struct self)

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    static const char *const named[] = {"host_draft"};
    const struct self *s = self;
    if (s->config->how == CHANGE_RUN) ((rlhf_run_info *)(uintptr_t)info)->n_rewards = 9;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP;
    out->epochs = out->minibatches = 1;
    out->group_size = 2;
    out->carry_rows = 1;
    if (s->config->how == BETA) out->divergence_beta = 0.5;
    if (s->config->how == NAMED || s->config->how == NO_NAMES) out->named = named;
    out->n_named = s->config->how == NAMED;
    if (s->config->how == EARLY) rlhf_metric_last(s->host, "from_plan", 1);
    return RLHF_OK;
}

static void *report(void *arg) {
    const struct self *s = arg;
    rlhf_metric_last(s->host, "from_a_thread", 1);
    return NULL;
}

static void *reduce(void *arg) {
    const struct self *s = arg;
    double sum = 1;
    s->host->reduce(s->host, &sum, 1);
    return NULL;
}

static void on_thread(struct self *s, void *(*work)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, s) == 0) pthread_join(thread, NULL);
}

static rlhf_status advantages(void *self, const rlhf_rollout *r, rlhf_advantages *out) {
    struct self *s = self;
    const int32_t how = r->phase == 1 ? s->config->how : NOTHING;
    float *advantage = out->advantage, *returns = out->returns;
    for (uint32_t i = 0; i < r->n; i++)
        for (int32_t t = r->offset[i] + r->prompt_len[i]; t < r->offset[i + 1]; t++)
            advantage[t] = how == ALL_NAN ? NAN : r->score[i];
    if (how == NAN_ADVANTAGE) advantage[r->offset[3] - 1] = NAN; // row 2
    if (how == INFINITE_RETURN) returns[r->offset[3] - 1] = -INFINITY;
    if (how == PROMPT_ADVANTAGE) advantage[r->offset[2]] = returns[r->offset[3]] = NAN;
    if (how == PAST_ADVANTAGE) advantage[r->total] = 1;
    if (how == PAST_RETURNS) returns[r->total] = 1;
    if (how == PAST_USE) out->use[r->n] = RLHF_USE_EXCLUDED;
    if (how == PAST_CARRY) out->carry_row[r->n] = 1;
    if (how == CHANGE_ROLLOUT) ((rlhf_rollout *)(uintptr_t)r)->total = 0;
    if (how == USE) out->use[1] = RLHF_USE_EXCLUDED + 1;
    if (how == RESERVED) out->reserved = 6;
    if (how == OTHER_ADVANTAGE) out->advantage = out->returns;
    if (how == OTHER_CARRY) out->carry_row = NULL;
    if (how == OTHER_TOKENS) out->carry_token = out->carry_row; // the plan has none
    if (how == NAME) rlhf_metric_last(s->host, "my metric\n", 1);
    if (how == THREAD) on_thread(s, report);
    if (how == REDUCE_THREAD) on_thread(s, reduce);
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    const struct self *s = self;
    const int32_t how = in->phase == 1 ? s->config->how : NOTHING;
    float *d = out->d_heads->logp;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
            if (in->advantage[t] == 0) continue;
            d[t] = -in->advantage[t] / (float)in->batch_tokens;
            out->loss += (double)d[t] * (double)in->heads->logp[t];
        }
    for (uint32_t i = 0; how == PROMPT_SLOPE && i < in->n; i++)
        for (int32_t t = 0; t < in->prompt_len[i]; t++)
            d[in->offset[i] + t] = i % 2 ? NAN : 7;
    if (how == NAN_SLOPE) {
        d[in->offset[0]] = INFINITY; // ignored, because it is on the prompt
        d[in->offset[1] - 1] = NAN;
    }
    if (how == NAN_LOSS) out->loss = NAN;
    if (how == PAST_LOGP) d[in->total] = 1;
    double sum = 1;
    if (how == REDUCE) s->host->reduce(s->host, &sum, 1); // ignores the status
    if (how == CRASH) __builtin_trap();
    if (how == CHANGE_IN) ((rlhf_loss_in *)(uintptr_t)in)->n++;
    if (how == CHANGE_HEADS) ((rlhf_head_values *)(uintptr_t)in->heads)->logp = NULL;
    if (how == CHANGE_SLOPES) ((rlhf_head_gradients *)(uintptr_t)out->d_heads)->reserved = 1;
    static const rlhf_head_gradients own = {.size = sizeof own};
    if (how == OTHER_SLOPES) out->d_heads = &own;
    return RLHF_OK;
}

static rlhf_status minibatch_end(void *self, const rlhf_step_info *info, rlhf_step_out *out) {
    const struct self *s = self;
    const int32_t how = info->phase == 1 ? s->config->how : NOTHING;
    if (how == STOP) out->stop = -1;
    if (how == CHANGE_STEP) ((rlhf_step_info *)(uintptr_t)info)->skipped = 1;
    return RLHF_OK;
}

static const rlhf_algo_ops ops = {.size = sizeof ops,
                                  .plan = plan,
                                  .advantages = advantages,
                                  .loss = loss,
                                  .minibatch_end = minibatch_end};

TEST_PLUGIN(RLHF_KIND_ALGO, "careless_algo", .summary = "forgets its size", TEST_INSTANCES,
            TEST_OPTIONS(opts))
