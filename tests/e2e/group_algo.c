// group_algo.c: an algorithm that counts, in every minibatch, incomplete groups and rows separated
// from their group. Its loss is the mean log-prob of the response tokens times the score.
//
// Rows with reward 0 have a zero derivative. Options make it use a reference, report an invented
// KL, and mark these rows, or all rows, as rows without gradient.
#include "support/plugin.h"

#include <rlhf/algo.h>

#include <math.h>
#include <string.h>

enum { KL_ABSENT, KL_NONE, KL_INFINITE, KL_FIRST, KL_STEPS };
enum { USE_SILENT, USE_STILL, USE_LIE, USE_UNKNOWN };

struct config {
    int64_t group_size, minibatches;
    int32_t whole, kl, use, reserved;
    double kl_step;
};

static const char *const kls[] = {"absent", "none", "infinite", "first", "steps", NULL};

static const char *const uses[] = {"silent", "still", "lie", "unknown", NULL};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, group_size, 4, 1, 1000, "samples per prompt"),
    RLHF_OPT_I64(struct config, minibatches, 1, 1, 1000, "minibatches a phase"),
    RLHF_OPT_BOOL(struct config, whole, 0, "groups must be whole"),
    RLHF_OPT_ENUM(struct config, use, USE_SILENT, uses,
                  "say nothing of rows without a derivative; the truth; that no row has one; "
                  "what no host knows"),
    RLHF_OPT_ENUM(
        struct config, kl, KL_ABSENT, kls,
        "without a reference; with one, but not reported; reported as infinite; as 1 in the first "
        "phase only; or as kl_step for each phase before"),
    RLHF_OPT_F64(struct config, kl_step, 1, 0, 1e6, "nats per sequence (kl: steps)"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    double split, apart, minibatches; // numbers of the phase
    double said;                      // the host's number of minibatches in an epoch
    double stale, drawn, foreign;     // sums over rows and tokens, see who_drew
};

TEST_INSTANCE(struct self)

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    const struct self *s = self;
    (void)info;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP;
    out->flags = RLHF_PLAN_MINIBATCH_SCOPE;
    if (s->config->whole) out->flags |= RLHF_PLAN_WHOLE_GROUPS;
    if (s->config->kl != KL_ABSENT) out->flags |= RLHF_PLAN_REFERENCE;
    out->epochs = 2;
    out->minibatches = (uint32_t)s->config->minibatches;
    out->group_size = (uint32_t)s->config->group_size;
    return RLHF_OK;
}

// Record three things about the weights that sampled the rows: which weights these were, how many
// steps ago they were current, and for how many response tokens the log-prob differs from that of
// sampling. (loss() cannot record them, because it sees microbatches, which lack this information.)
static void who_drew(struct self *s, const rlhf_rollout *r) {
    for (uint32_t i = 0; i < r->n; i++) {
        s->stale += (double)(r->steps - r->version[i]);
        s->drawn += (double)r->version[i];
        for (int32_t t = r->offset[i] + r->prompt_len[i]; t < r->offset[i + 1]; t++)
            s->foreign += !(r->logp_sampled[t] < 0) || r->logp_sampled[t] != r->logp_old[t];
    }
    if (r->logp_sampled == r->logp_old) s->foreign += 1;
}

// A run of adjacent rows of one group that is shorter than group_size is an incomplete group.
static rlhf_status advantages(void *self, const rlhf_rollout *r, rlhf_advantages *out) {
    struct self *s = self;
    s->minibatches++;
    who_drew(s, r);
    for (uint32_t i = 0, end; i < r->n; i = end) {
        for (end = i + 1; end < r->n && r->group[end] == r->group[i];)
            end++;
        if (end - i != s->config->group_size) s->split++;
        for (uint32_t k = 0; k < i; k++)
            if (r->group[k] == r->group[i]) s->apart++;
    }
    for (uint32_t i = 0; i < r->n; i++) {
        for (int32_t t = r->offset[i] + r->prompt_len[i]; t < r->offset[i + 1]; t++)
            out->advantage[t] = r->score[i];
        if (s->config->use == USE_LIE || (s->config->use == USE_STILL && r->score[i] == 0))
            out->use[i] = RLHF_USE_NO_GRADIENT;
        if (s->config->use == USE_UNKNOWN) out->use[i] = 3;
    }
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct self *s = self;
    s->said = (double)in->minibatches;
    s->foreign += !in->version || !in->logp_sampled || in->logp_sampled == in->logp_old;
    for (uint32_t i = 0; i < in->n; i++) {
        // Derivatives on prompt tokens are ignored, also those of rows without a gradient.
        for (int32_t t = 0; s->config->use == USE_STILL && t < in->prompt_len[i]; t++)
            out->d_heads->logp[in->offset[i] + t] = NAN;
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
            double w = -(double)in->advantage[t] / (double)in->batch_tokens;
            out->loss += w * (double)in->heads->logp[t];
            out->d_heads->logp[t] = (float)w;
        }
    }
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    struct self *s = self;
    if (s->config->kl == KL_INFINITE) rlhf_metric_last(s->host, "objective/kl", INFINITY);
    if (s->config->kl == KL_FIRST && info->phase == 0) rlhf_metric_last(s->host, "objective/kl", 1);
    if (s->config->kl == KL_STEPS)
        rlhf_metric_last(s->host, "objective/kl", s->config->kl_step * (double)info->phase);
    rlhf_metric_last(s->host, "test/split_groups", s->split);
    rlhf_metric_last(s->host, "test/minibatches", s->minibatches);
    rlhf_metric_last(s->host, "test/apart", s->apart);
    rlhf_metric_last(s->host, "test/minibatches_said", s->said);
    rlhf_metric_last(s->host, "test/stale", s->stale);
    rlhf_metric_last(s->host, "test/drawn", s->drawn);
    rlhf_metric_last(s->host, "test/foreign", s->foreign);
    s->split = s->apart = s->minibatches = s->stale = s->drawn = s->foreign = 0;
    return RLHF_OK;
}

static const rlhf_algo_ops ops = {.size = sizeof ops,
                                  .plan = plan,
                                  .advantages = advantages,
                                  .loss = loss,
                                  .phase_end = phase_end};

TEST_PLUGIN(RLHF_KIND_ALGO, "group_algo", .summary = "counts groups that are split",
            TEST_OPTIONS(opts), TEST_INSTANCES)
