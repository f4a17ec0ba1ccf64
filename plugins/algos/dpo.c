// dpo.c: direct preference optimization (Rafailov et al. 2023). A policy learns from preferences
// without a reward model. Each data row has a preferred response and one or more others
// (docs/algorithms/dpo.md).
//
//   u_i = sum_t (x_it - f_it)    x: log-prob of the policy; f: of the reference
//   a_i = beta u_i               but u_i / T_i with loss=ipo (T_i: response tokens), and u_i with
//                                loss=sppo_hard
//   L   = sum_g (k_g / n) mean_{j != b} loss(a_b, a_j)
//         group g has k_g responses, b is the preferred one; n: all responses
#include "common/rows.h"
#include "common/sums.h"

#include <math.h>
#include <rlhf/exact.h>
#include <rlhf/log.h>

enum { SIGMOID, IPO, HINGE, ROBUST, SPPO_HARD, APO_ZERO, APO_DOWN, NCA_PAIR }; // TRL's names
static const char *const loss_names[] = {"sigmoid",  "ipo",      "hinge",    "robust", "sppo_hard",
                                         "apo_zero", "apo_down", "nca_pair", NULL};
enum { LOSS, ACCURACY, MARGIN, CHOSEN, REJECTED, LOGP_CHOSEN, LOGP_REJECTED, ROWS, N_SUMS };
static const char *const names[] = {"objective/loss",   "dpo/accuracy", "dpo/margin",
                                    "dpo/chosen",       "dpo/rejected", "dpo/logp_chosen",
                                    "dpo/logp_rejected"};

struct config {
    double beta, label_smoothing;
    int32_t loss;
};

struct state {
    const rlhf_host *host;
    struct config config;
    struct rlhf__sums sums; // over the rows of the phase (one minibatch)
};

static int is_smoothed(const struct config *c) { return c->loss == SIGMOID || c->loss == ROBUST; }

static rlhf_status check(const rlhf_host *host, const struct config *c) {
    if (!is_smoothed(c) && c->label_smoothing != 0)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "label_smoothing is %g, but loss %s has no label smoothing; leave it at "
                          "0, or use loss sigmoid or robust",
                          c->label_smoothing, loss_names[c->loss]);
    if (c->loss == ROBUST && (c->label_smoothing == 0 || c->label_smoothing == 0.5))
        return rlhf_failf(host, RLHF_E_INVALID,
                          "label_smoothing is %g; loss robust needs a value above 0 (at 0 it is "
                          "the same as loss sigmoid) and below 0.5 (at 0.5 it is not defined)",
                          c->label_smoothing);
    return RLHF_OK;
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    RLHF_TRY(check(host, config));
    struct state *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = *(const struct config *)config;
    *self = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct state *s = self;
    if (!s) return;
    rlhf__sums_finish(s->host, &s->sums);
    s->host->free(s->host, s);
}

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    struct state *s = self;
    out->source = RLHF_SOURCE_PREFERENCES;
    out->heads = RLHF_HEAD_LOGP;
    out->flags = RLHF_PLAN_REFERENCE;
    out->epochs = out->minibatches = out->group_size = 1;
    return rlhf__sums_open(s->host, &s->sums, info, N_SUMS);
}

// One response: its tokens, the sum of its log-probs (logp), u, and the factor a / u (scale).
struct response {
    struct rlhf__span row;
    double logp, u, scale;
};

static struct response measure(const struct config *c, const rlhf_loss_in *in, int64_t i) {
    struct response r = {.row = rlhf__response(in->offset, in->prompt_len, i), .scale = c->beta};
    r.logp = rlhf__sum(in->heads->logp, r.row);
    r.u = r.logp - rlhf__sum(in->logp_ref, r.row);
    if (c->loss == IPO) r.scale = 1 / fmax((double)(r.row.end - r.row.begin), 1);
    if (c->loss == SPPO_HARD) r.scale = 1;
    return r;
}

static double sigmoid(double x) { return 1 / (1 + rlhf_exp(-x)); }

// -log sigmoid(d) and its derivative.
static double softplus(double d, double *slope) {
    *slope = -1 / (1 + rlhf_exp(d));
    return fmax(-d, 0) + rlhf_log1p(rlhf_exp(-fabs(d)));
}

static double square(double miss, double *slope) {
    *slope = 2 * miss;
    return miss * miss;
}

// The loss of a pair as a function of a_best and a_other. d_best and d_other are the derivatives by
// a_best and by a_other. If the loss depends only on a_best - a_other, d_other is -d_best.
struct pair {
    double loss, d_best, d_other;
};

static struct pair of_lead(double loss, double slope) { return (struct pair){loss, slope, -slope}; }

// ((1 - e) softplus(d) + sign e softplus(-d)) / divisor.
static struct pair smoothed(double d, double e, double sign, double divisor) {
    double right, wrong, loss = (1 - e) * softplus(d, &right);
    loss += sign * e * softplus(-d, &wrong);
    return of_lead(loss / divisor, ((1 - e) * right - sign * e * wrong) / divisor);
}

static struct pair sppo(double best, double other, double half) {
    struct pair p;
    p.loss = square(best - half, &p.d_best);
    p.loss += square(other + half, &p.d_other);
    return p;
}

static struct pair apo_zero(double best, double other) {
    double b = sigmoid(best), o = sigmoid(other);
    return (struct pair){sigmoid(-best) + o, -b * sigmoid(-best), o * sigmoid(-other)};
}

static struct pair apo_down(double best, double other) {
    double b = sigmoid(best), miss = sigmoid(other - best), slope = miss * sigmoid(best - other);
    return (struct pair){b + miss, b * sigmoid(-best) - slope, slope};
}

static struct pair nca(double best, double other) {
    double up, down, off;
    struct pair p = {.loss = softplus(best, &up)};
    p.loss += 0.5 * softplus(-best, &down) + 0.5 * softplus(-other, &off);
    p.d_best = up - 0.5 * down;
    p.d_other = -0.5 * off;
    return p;
}

static struct pair pair_loss(const struct config *c, double best, double other) {
    double slope, loss, d = best - other, e = c->label_smoothing;
    switch (c->loss) {
    case IPO:
        loss = square(d - 0.5 / c->beta, &slope);
        return of_lead(loss, slope);
    case HINGE:
        return d < 1 ? of_lead(1 - d, -1) : of_lead(d >= 1 ? 0 : d, 0); // a NaN stays a NaN
    case ROBUST:
        return smoothed(d, e, -1, 1 - 2 * e);
    case SPPO_HARD:
        return sppo(best, other, 0.5 / c->beta);
    case APO_ZERO:
        return apo_zero(best, other);
    case APO_DOWN:
        return apo_down(best, other);
    case NCA_PAIR:
        return nca(best, other);
    default:
        return smoothed(d, e, 1, 1);
    }
}

static void pull(float *d_logp, const struct response *r, double d) {
    for (int64_t t = r->row.begin; t < r->row.end; t++)
        d_logp[t] = (float)(d * r->scale);
}

// Returns the loss of one group, the responses [begin, end) to one prompt; `best` is the preferred
// response. Writes the gradient of the loss to d_logp, and adds the group's metrics to
// total[N_SUMS].
static double group_loss(const struct state *s, const rlhf_loss_in *in, int64_t begin, int64_t end,
                         int64_t best, float *d_logp, double *total) {
    double loss = 0, up = 0, others = (double)(end - begin - 1);
    double w = (double)(end - begin) / ((double)in->batch_sequences * others);
    struct response b = measure(&s->config, in, best);
    double sums[N_SUMS] = {0, 1, 0, s->config.beta * b.u, 0, b.logp, 0, 1};
    for (int64_t j = begin; j < end; j++) {
        if (j == best) continue;
        struct response r = measure(&s->config, in, j);
        struct pair p = pair_loss(&s->config, b.scale * b.u, r.scale * r.u);
        loss += w * p.loss;
        up += w * p.d_best;
        pull(d_logp, &r, w * p.d_other);
        sums[ACCURACY] *= b.u > r.u;
        sums[MARGIN] += s->config.beta * (b.u - r.u) / others;
        sums[REJECTED] += s->config.beta * r.u / others;
        sums[LOGP_REJECTED] += r.logp / others;
    }
    pull(d_logp, &b, up);
    for (int k = 0; k < N_SUMS; k++)
        total[k] += sums[k];
    return loss;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct state *s = self;
    double *sums;
    RLHF_TRY(rlhf__logp_check(s->host, in, out));
    RLHF_TRY(rlhf__sums_of(s->host, &s->sums, in->shard, &sums));
    if (in->n && !in->logp_ref) return s->host->fail(s->host, RLHF_E_INTERNAL, "no logp_ref");
    out->loss = 0;
    for (int64_t begin = 0, end, best; begin < in->n; begin = end) {
        RLHF_TRY(rlhf__preferred(s->host, in, begin, &end, &best));
        out->loss += group_loss(s, in, begin, end, best, out->d_heads->logp, sums);
    }
    sums[LOSS] += out->loss;
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    struct state *s = self;
    double sums[N_SUMS];
    (void)info;
    RLHF_TRY(rlhf__sums_total(s->host, &s->sums, sums));
    for (int k = 0; sums[ROWS] > 0 && k < ROWS; k++)
        rlhf_metric_last(s->host, names[k], sums[k] / (k == LOSS ? 1 : sums[ROWS]));
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_F64(struct config, beta, 0.1, 1e-6, 1e6, "how strongly the reference holds"),
    RLHF_OPT_ENUM(struct config, loss, SIGMOID, loss_names,
                  "loss of a pair, by TRL's names; sigmoid: DPO"),
    RLHF_OPT_F64(struct config, label_smoothing, 0, 0, 0.5,
                 "how often a preference is wrong (sigmoid, robust)"),
};
static const rlhf_algo_ops ops = {
    .size = sizeof ops, .plan = plan, .loss = loss, .phase_end = phase_end};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.rlhf-host.dpo",
    .version = RLHF_SDK_VERSION,
    .summary = "direct preference optimization: a policy from preferences, no reward model",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
