// two_teachers.c: an algorithm with two named models and a reference. It reports the mean log-prob
// of each. With the option `bad`, its plan makes a request that the host cannot fulfil.
#include "support/plugin.h"

#include <rlhf/algo.h>

enum { NO, NAME, ROLE, TWICE, MANY, FROM, HEAD, KIND, BETA, OPTIONAL, LATER, LATER_BETA, SHARED };
static const char *const bads[] = {"no",    "name",       "role",   "twice", "many",
                                   "from",  "head",       "kind",   "beta",  "optional",
                                   "later", "later_beta", "shared", NULL};

struct config {
    int32_t rollout, bad;
};

struct algo {
    const rlhf_host *host;
    const struct config *config;
    const char *names[9];
    double first, second, reference, missed, tokens;
    int64_t plans;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_BOOL(struct config, rollout, 1, "responses; false: texts"),
    RLHF_OPT_ENUM(struct config, bad, NO, bads, "what is wrong with the plan"),
};

TEST_INSTANCE(struct algo)

static rlhf_status plan(void *self, const rlhf_run_info *run, rlhf_plan *out) {
    struct algo *a = self;
    const int32_t bad = a->config->bad;
    (void)run;
    for (int i = 0; i < 9; i++)
        a->names[i] = "first";
    if (bad == SHARED) a->names[0] = "classifier";
    a->names[1] = bad == NAME ? "No" : bad == ROLE ? "policy" : bad == TWICE ? "first" : "second";
    out->source = a->config->rollout ? RLHF_SOURCE_ROLLOUT : RLHF_SOURCE_TEXT;
    out->heads = RLHF_HEAD_LOGP;
    out->flags = RLHF_PLAN_REFERENCE;
    if (a->config->rollout || bad == OPTIONAL) out->flags |= RLHF_PLAN_REWARDS_OPTIONAL;
    out->epochs = out->group_size = 1;
    out->minibatches = a->config->rollout ? 2 : 1;
    out->named = a->names;
    out->n_named = bad == MANY ? 9 : bad == LATER && a->plans++ ? 1 : 2;
    if (bad == FROM || bad == KIND || bad == BETA || bad == LATER_BETA) out->heads |= RLHF_HEAD_KL;
    if (bad == FROM) out->divergence_from = "third";
    if (bad == HEAD) out->divergence_from = "first";
    if (bad == KIND) out->divergence = 3;
    if (bad == BETA) out->divergence = 2, out->divergence_beta = 1;
    if (bad == LATER_BETA) out->divergence = 2, out->divergence_beta = a->plans++ ? 0.25 : 0.5;
    return RLHF_OK;
}

static rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    struct algo *a = self;
    a->missed += !in->logp_named;
    for (uint32_t t = 0; in->logp_named && t < in->total; t++)
        out->advantage[t] = in->logp_named[0][t] + 2 * in->logp_named[1][t];
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct algo *a = self;
    a->missed += !in->logp_named;
    for (uint32_t i = 0; in->logp_named && i < in->n; i++)
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
            const float *const *named = in->logp_named;
            a->first += (double)named[0][t];
            a->second += (double)named[1][t];
            a->reference += (double)in->logp_ref[t];
            a->tokens++;
            if (a->config->rollout) a->missed += in->advantage[t] != named[0][t] + 2 * named[1][t];
            out->d_heads->logp[t] = -1 / (float)in->batch_tokens;
            out->loss -= (double)in->heads->logp[t] / (double)in->batch_tokens;
        }
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    struct algo *a = self;
    (void)info;
    rlhf_metric_last(a->host, "test/first", a->first / a->tokens);
    rlhf_metric_last(a->host, "test/second", a->second / a->tokens);
    rlhf_metric_last(a->host, "test/reference", a->reference / a->tokens);
    rlhf_metric_last(a->host, "test/missed", a->missed);
    a->first = a->second = a->reference = a->missed = a->tokens = 0;
    return RLHF_OK;
}

static const rlhf_algo_ops ops = {.size = sizeof ops,
                                  .plan = plan,
                                  .advantages = advantages,
                                  .loss = loss,
                                  .phase_end = phase_end};
TEST_PLUGIN(RLHF_KIND_ALGO, "two_teachers", .summary = "two teachers and a reference",
            TEST_OPTIONS(opts), TEST_INSTANCES)
