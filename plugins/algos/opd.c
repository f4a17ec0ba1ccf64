// opd.c: on-policy distillation (Agarwal et al. 2024; Lu and Thinking Machines Lab 2025). The
// policy is a student: it samples responses, and at each token of a response it learns the
// teacher's distribution (docs/algorithms/opd.md). Rewards are optional. If given, they are
// reported but do not affect training.
//
//   L = sum_t w_t D_t, where D_t is KL(p || q), KL(q || p) or the Jensen-Shannon divergence of the
//         student's p and the teacher's q at token t, over the whole vocabulary (kl head)
//   With `sampled`, token t has advantage A_t = f_t - o_t, a one-sample estimate of -KL(p || q):
//         L = sum_t w_t max(-A_t rho_t, -A_t clip(rho_t)),  rho_t = exp(x_t - o_t)
//
//   x, o, f: log-probs of the token under the student now, the student at sampling, and the teacher
//   w_t: 1 / N for a minibatch of N tokens, or 1 / (n T_i) for n responses of T_i tokens
#include "common/choices.h"
#include "common/rows.h"
#include "common/sums.h"
#include "common/surrogate.h"
#include "common/why_unused.h"

#include <math.h>

enum {
    OPD_REVERSE = 0,
    OPD_FORWARD = 1,
    OPD_JS = 2,
    OPD_SAMPLED = 3
}; // the first 3 are the values of enum rlhf_divergence
enum { OPD_TOKEN = 0, OPD_SEQUENCE = 1 };
// Sums of loss(). GAP, TEACHER and ENTROPY cover only the first epoch.
enum { TOKENS, DIVERGENCE, FIRST_TOKENS, GAP, TEACHER, ENTROPY, CLIPPED, N_SUMS };

struct opd_config {
    int32_t divergence, aggregation, logprob_temperature, logprob_support, mask_truncated;
    double beta, clip_range;
    int64_t group_size, epochs, minibatches;
};

struct opd {
    const rlhf_host *host;
    struct opd_config config;
    struct rlhf__sums sums;
    int64_t masked, rows; // masked and all rows of the phase
    double loss;          // sum of the losses of the steps of the latest epoch
    int64_t steps;        // number of these steps
    uint32_t epoch;
};

static rlhf_status opd_create(const rlhf_host *host, const void *config, void **self) {
    const struct opd_config *c = config;
    struct opd *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = *c;
    *self = s;
    return RLHF_OK;
}

static void opd_destroy(void *self) {
    struct opd *s = self;
    if (!s) return;
    rlhf__sums_finish(s->host, &s->sums);
    s->host->free(s->host, s);
}

static rlhf_status opd_plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    static const char teacher[] = "teacher";
    static const char *const named[] = {teacher};
    struct opd *s = self;
    const struct opd_config *c = &s->config;
    const struct rlhf__choices choices = {.kl_placement = RLHF__KL_NOWHERE,
                                          .temperature = c->logprob_temperature,
                                          .support = c->logprob_support};
    RLHF_TRY(rlhf__minibatches_check(s->host, c->minibatches, info));
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY;
    out->flags = rlhf__plan_flags(&choices) | RLHF_PLAN_REWARDS_OPTIONAL;
    out->epochs = (uint32_t)c->epochs;
    out->minibatches = (uint32_t)c->minibatches;
    out->group_size = (uint32_t)c->group_size;
    out->named = named;
    out->n_named = 1;
    if (c->divergence != OPD_SAMPLED) {
        out->heads |= RLHF_HEAD_KL;
        out->divergence = c->divergence;
        out->divergence_beta = c->divergence == OPD_JS ? c->beta : 0;
        out->divergence_from = teacher;
    }
    return rlhf__sums_open(s->host, &s->sums, info, N_SUMS);
}

static rlhf_status opd_advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    struct opd *s = self;
    const rlhf_host *h = s->host;
    const char *wrong = rlhf__rows_check(in->offset, in->prompt_len, in->n, in->total);
    if (wrong) return h->fail(h, RLHF_E_INTERNAL, wrong);
    if (!in->logp_named) return h->fail(h, RLHF_E_INTERNAL, "no log-probs of the teacher");
    const float *teacher = in->logp_named[0];
    for (int64_t i = 0; i < in->n; i++) {
        const struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        s->rows++;
        if (s->config.mask_truncated && !in->finished[i]) {
            out->use[i] = RLHF_USE_EXCLUDED;
            s->masked++;
        }
        for (int64_t t = row.begin; t < row.end; t++) {
            const double gap = (double)teacher[t] - (double)in->logp_old[t];
            if (!isfinite(gap))
                return h->fail(h, RLHF_E_NUMERIC,
                               "a log-prob of the teacher or of the policy is not finite");
            out->advantage[t] = out->returns[t] = (float)gap;
        }
    }
    return RLHF_OK;
}

// Returns the loss of one row, and stores its derivatives in *d. Each token has the weight `w`.
static double row_loss(const struct opd *s, const rlhf_loss_in *in, struct rlhf__span row, double w,
                       const rlhf_head_gradients *d, double *sums) {
    const int64_t b = row.begin;
    double sum = 0;
    if (s->config.divergence == OPD_SAMPLED) {
        const struct rlhf__clip clip = {s->config.clip_range, s->config.clip_range, 0};
        struct rlhf__surrogate_sums u = {0};
        rlhf__surrogate_row(RLHF__RATIO_TOKEN, &clip, w, in->heads->logp + b, in->logp_old + b,
                            in->advantage + b, row.end - b, d->logp + b, &u);
        sums[CLIPPED] += (double)u.clipped;
        return u.loss;
    }
    for (int64_t t = row.begin; t < row.end; t++) {
        sum += (double)in->heads->kl[t];
        d->kl[t] = (float)w;
    }
    sums[DIVERGENCE] += sum;
    return w * sum;
}

// Sums up metrics, but only in the first epoch: each token then counts once, and the policy has
// changed least since it sampled.
static void measure(const rlhf_loss_in *in, struct rlhf__span row, double *sums) {
    if (in->epoch > 0) return;
    for (int64_t t = row.begin; t < row.end; t++) {
        sums[GAP] -= (double)in->advantage[t];
        sums[TEACHER] += (double)in->logp_named[0][t];
        sums[ENTROPY] += (double)in->heads->entropy[t];
    }
    sums[FIRST_TOKENS] += (double)(row.end - row.begin);
}

static rlhf_status opd_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct opd *s = self;
    const rlhf_host *h = s->host;
    const int full = s->config.divergence != OPD_SAMPLED;
    double *sums, loss = 0;
    RLHF_TRY(rlhf__logp_check(h, in, out));
    if (!in->logp_named || (full && (!in->heads->kl || !out->d_heads->kl)))
        return h->fail(h, RLHF_E_INTERNAL, "the teacher's log-probs or the kl head are missing");
    RLHF_TRY(rlhf__sums_of(h, &s->sums, in->shard, &sums));
    for (int64_t i = 0; i < in->n; i++) {
        const struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        const double len = (double)(row.end - row.begin);
        if (len == 0) continue;
        const double w = s->config.aggregation == OPD_TOKEN
                             ? 1 / (double)in->batch_tokens
                             : 1 / ((double)in->batch_sequences * len);
        loss += row_loss(s, in, row, w, out->d_heads, sums);
        measure(in, row, sums);
        sums[TOKENS] += len;
    }
    out->loss = loss;
    return RLHF_OK;
}

static rlhf_status opd_minibatch_end(void *self, const rlhf_step_info *step, rlhf_step_out *out) {
    struct opd *s = self;
    (void)out;
    if (step->skipped) return RLHF_OK;
    if (step->epoch != s->epoch) s->loss = 0;
    if (step->epoch != s->epoch) s->steps = 0;
    s->epoch = step->epoch;
    s->loss += step->loss;
    s->steps++;
    return RLHF_OK;
}

static rlhf_status opd_phase_end(void *self, const rlhf_phase_info *info) {
    struct opd *s = self;
    const rlhf_host *h = s->host;
    double sums[N_SUMS];
    (void)info;
    RLHF_TRY(rlhf__sums_total(h, &s->sums, sums));
    if (s->steps) rlhf_metric_last(h, "objective/loss", s->loss / (double)s->steps);
    if (sums[TOKENS] > 0 && s->config.divergence != OPD_SAMPLED)
        rlhf_metric_last(h, "opd/divergence", sums[DIVERGENCE] / sums[TOKENS]);
    if (sums[TOKENS] > 0 && s->config.divergence == OPD_SAMPLED)
        rlhf_metric_last(h, "policy/clipfrac_avg", sums[CLIPPED] / sums[TOKENS]);
    if (sums[FIRST_TOKENS] > 0) {
        rlhf_metric_last(h, "opd/kl_sampled", sums[GAP] / sums[FIRST_TOKENS]);
        rlhf_metric_last(h, "opd/teacher_logp", sums[TEACHER] / sums[FIRST_TOKENS]);
        rlhf_metric_last(h, "policy/entropy_avg", sums[ENTROPY] / sums[FIRST_TOKENS]);
    }
    if (s->config.mask_truncated && s->rows)
        rlhf_metric_last(h, "policy/masked_ratio", (double)s->masked / (double)s->rows);
    s->steps = s->masked = s->rows = 0;
    s->loss = 0;
    return RLHF_OK;
}

static const char *const divergences[] = {"reverse", "forward", "js", "sampled", NULL};
static const char *const aggregations[] = {"token", "sequence", NULL};
static const rlhf_opt options[] = {
    RLHF_OPT_ENUM(
        struct opd_config, divergence, OPD_REVERSE, divergences,
        "what is minimised, over the whole vocabulary: KL(student || teacher), KL(teacher "
        "|| student), Jensen-Shannon; sampled: the first, from the sampled tokens alone"),
    RLHF_OPT_F64_FLAGS(struct opd_config, beta, RLHF_OPT_MIN_OPEN | RLHF_OPT_MAX_OPEN, 0.5, 0, 1,
                       "weight of the teacher in the mixture of js"),
    RLHF_OPT_F64(struct opd_config, clip_range, 0.2, 0, 1,
                 "sampled: ratio is clipped to 1 +- clip_range"),
    RLHF_OPT_ENUM(struct opd_config, aggregation, OPD_TOKEN, aggregations,
                  "loss over a minibatch: mean over its tokens, or mean of per-response means"),
    RLHF_OPT_I64(struct opd_config, group_size, 1, 1, 4096, "samples per prompt"),
    RLHF_OPT_I64(struct opd_config, epochs, 1, 1, 1000, "passes over the rollout in a phase"),
    RLHF_OPT_I64(struct opd_config, minibatches, 1, 1, 1000000, "optimizer steps per epoch"),
    RLHF_OPT_ENUM(struct opd_config, logprob_temperature, RLHF__TEMPERATURE_SAMPLING,
                  rlhf__temperature_names,
                  "both distributions at the sampling temperature, or at 1"),
    RLHF_OPT_ENUM(struct opd_config, logprob_support, RLHF__SUPPORT_FULL, rlhf__support_names,
                  "both distributions over the whole vocabulary, or what top-k, top-p and min-p "
                  "kept"),
    RLHF_OPT_BOOL(struct opd_config, mask_truncated, 0,
                  "responses that max_new_tokens cut off give no loss"),
};

static const char *why_unused(const rlhf_option_in *in) {
    const struct opd_config *o = in->config;
    const struct rlhf__unused rules[] = {
        {"beta", o->divergence != OPD_JS, "divergence is not js"},
        {"clip_range", o->divergence != OPD_SAMPLED, "divergence is not sampled"}};
    return rlhf__why_unused(rules, sizeof rules / sizeof *rules, in->key);
}

static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = opd_plan,
    .advantages = opd_advantages,
    .loss = opd_loss,
    .minibatch_end = opd_minibatch_end,
    .phase_end = opd_phase_end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.rlhf-host.opd",
    .version = RLHF_SDK_VERSION,
    .summary = "on-policy distillation: learn from a teacher's distribution on own responses",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct opd_config, options),
    .create = opd_create,
    .destroy = opd_destroy,
    .ops = &ops,
    .why_unused = why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
