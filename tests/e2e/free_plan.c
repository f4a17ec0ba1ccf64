// free_plan.c: an algorithm whose options set its plan. With preferences it learns as DPO does
// (Rafailov et al. 2023), otherwise it raises the log-probs. It reports its inputs.
#include "support/plugin.h"

#include <rlhf/algo.h>

#include <math.h>

enum { PLAN, LOSS, END, NOWHERE };
static const char *const places[] = {"plan", "loss", "end", "nowhere", NULL};

struct config {
    int64_t source, heads, flags, epochs, minibatches, group, second, fresh, carry;
    int32_t positive, pad; // positive: the function that returns a positive status
};

struct algo {
    const rlhf_host *host;
    const struct config *config;
    int64_t plans;
    double apart, loss, kl, ref; // apart: the largest |logp - logp_ref|
};

#define BIG ((int64_t)1 << 31)
static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, source, 4, 0, 100, "rows"),
    RLHF_OPT_I64(struct config, heads, 1, 0, BIG, "bits"),
    RLHF_OPT_I64(struct config, flags, 1, 0, BIG, "bits"),
    RLHF_OPT_I64(struct config, epochs, 1, 0, 9, "passes"),
    RLHF_OPT_I64(struct config, minibatches, 1, 0, 9, "cuts"),
    RLHF_OPT_I64(struct config, group, 1, 0, 9, "rows per prompt"),
    RLHF_OPT_I64(struct config, second, 0, 0, 9, "field that the second plan changes, 1 to 6"),
    RLHF_OPT_I64(struct config, fresh, 0, -9, 9, "rounds of fresh prompts"),
    RLHF_OPT_I64(struct config, carry, 0, 0, 99, "numbers to carry"),
    RLHF_OPT_ENUM(struct config, positive, NOWHERE, places, "function that returns 3"),
};

TEST_INSTANCE(struct algo)

static rlhf_status plan(void *self, const rlhf_run_info *run, rlhf_plan *out) {
    struct algo *a = self;
    (void)run;
    const struct config *c = a->config;
    int64_t s = a->plans++ ? c->second : 0;
    out->source = (int32_t)(s == 1 ? RLHF_SOURCE_TEXT : c->source);
    out->heads = (uint32_t)(c->heads ^ (s == 2 ? RLHF_HEAD_ENTROPY : 0));
    out->flags = (uint32_t)(c->flags ^ (s == 3 ? RLHF_PLAN_REFERENCE : 0));
    out->epochs = (uint32_t)(c->epochs + (s == 4));
    out->minibatches = (uint32_t)(c->minibatches + (s == 5));
    out->group_size = (uint32_t)(c->group + (s == 6));
    out->resample_rounds = (uint32_t)c->fresh;
    out->carry_tokens = (uint32_t)c->carry;
    return c->positive == PLAN ? 3 : RLHF_OK;
}

// Returns the sum of the policy's minus the reference's log-probs over the response of row i.
static double margin(struct algo *a, const rlhf_loss_in *in, uint32_t i) {
    double sum = 0;
    for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
        double d = (double)in->heads->logp[t];
        if (in->logp_ref) {
            d -= (double)in->logp_ref[t];
            a->ref += (double)in->logp_ref[t];
            if (fabs(d) > a->apart) a->apart = fabs(d);
        }
        sum += d;
        if (in->heads->kl) a->kl += (double)in->heads->kl[t];
    }
    return sum;
}

static void fill(const rlhf_loss_in *in, rlhf_loss_out *out, uint32_t i, double d) {
    for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
        if (out->d_heads->logp) out->d_heads->logp[t] = (float)d;
        if (out->d_heads->kl) out->d_heads->kl[t] = (float)(0.01 / (double)in->batch_sequences);
    }
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct algo *a = self;
    const double beta = 0.5, pairs = (double)in->batch_sequences / 2;
    out->loss = 0;
    for (uint32_t i = 0; in->heads->logp && i < in->n; i++) {
        if (a->config->source != RLHF_SOURCE_PREFERENCES) {
            out->loss -= margin(a, in, i) / (double)in->batch_tokens;
            fill(in, out, i, -1 / (double)in->batch_tokens);
        } else if (i + 1 < in->n && in->group[i] == in->group[i + 1]) {
            uint32_t best = in->label[i] ? i : i + 1, other = in->label[i] ? i + 1 : i;
            double x = beta * (margin(a, in, best) - margin(a, in, other));
            double d = -beta / (1 + exp(x)) / pairs;
            out->loss += log1p(exp(-x)) / pairs;
            fill(in, out, best, d);
            fill(in, out, other, -d);
        }
    }
    a->loss += out->loss;
    return a->config->positive == LOSS ? 3 : RLHF_OK;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    struct algo *a = self;
    (void)info;
    rlhf_metric_last(a->host, "test/apart", a->apart);
    rlhf_metric_last(a->host, "test/loss", a->loss);
    rlhf_metric_last(a->host, "test/kl", a->kl);
    rlhf_metric_last(a->host, "test/ref", a->ref);
    a->apart = a->loss = a->kl = a->ref = 0;
    return a->config->positive == END ? 3 : RLHF_OK;
}

static const rlhf_algo_ops ops = {
    .size = sizeof ops, .plan = plan, .loss = loss, .phase_end = phase_end};
TEST_PLUGIN(RLHF_KIND_ALGO, "free_plan", .summary = "plans what it is told", TEST_OPTIONS(opts),
            TEST_INSTANCES)
