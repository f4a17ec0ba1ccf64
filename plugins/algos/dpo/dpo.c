// dpo.c: direct preference optimisation (Rafailov et al. 2023): a policy learns from rows of a
// preferred response and one or more others, without a reward model (docs/algorithms/dpo.md).
//
//   u_i = sum_t (x_it - f_it)    x: log-prob of the policy, f: of the reference
//   L   = sum_g (k_g / n) mean_{j != b} loss(d_j)    b: preferred of k_g, n: all responses
//   d_j = beta (u_b - u_j); with ipo u_b / T_b - u_j / T_j, T: response tokens
#include "common/rows.h"

#include <math.h>

enum { SIGMOID, IPO };
static const char *const loss_names[] = {"sigmoid", "ipo", NULL};
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
    double sums[N_SUMS]; // of the phase, which is one minibatch, over its rows
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct state *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = *(const struct config *)config;
    *self = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct state *s = self;
    if (s) s->host->free(s->host, s);
}

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    (void)self;
    (void)info;
    out->source = RLHF_SOURCE_PREFERENCES;
    out->heads = RLHF_HEAD_LOGP;
    out->flags = RLHF_PLAN_REFERENCE;
    out->epochs = out->minibatches = out->group_size = 1;
    return RLHF_OK;
}

// One response: its tokens, its summed log-prob, u, and the factor that u has in d.
struct response {
    struct rlhf__span row;
    double logp, u, scale;
};

static struct response measure(const struct config *c, const rlhf_loss_in *in, int64_t i) {
    struct response r = {.row = rlhf__response(in->offset, in->prompt_len, i)};
    r.logp = rlhf__sum(in->heads->logp, r.row);
    r.u = r.logp - rlhf__sum(in->logp_ref, r.row);
    r.scale = c->loss == IPO ? 1 / fmax((double)(r.row.end - r.row.begin), 1) : c->beta;
    return r;
}

// The loss of a lead d of the preferred response; *slope = its derivative.
static double loss_of(const struct config *c, double d, double *slope) {
    double miss = d - 0.5 / c->beta;
    *slope = c->loss == IPO ? 2 * miss : -1 / (1 + exp(d));
    return c->loss == IPO ? miss * miss : fmax(-d, 0) + log1p(exp(-fabs(d))); // -log sigmoid(d)
}

static void pull(float *d_logp, const struct response *r, double d) {
    for (int64_t t = r->row.begin; t < r->row.end; t++)
        d_logp[t] = (float)(d * r->scale);
}

// Loss of the responses [begin, end) to one prompt, of which `best` is preferred.
static double group_loss(struct state *s, const rlhf_loss_in *in, int64_t begin, int64_t end,
                         int64_t best, float *d_logp) {
    double loss = 0, up = 0, e = s->config.label_smoothing, others = (double)(end - begin - 1);
    double w = (double)(end - begin) / ((double)in->batch_sequences * others);
    struct response b = measure(&s->config, in, best);
    double sums[N_SUMS] = {0, 1, 0, s->config.beta * b.u, 0, b.logp, 0, 1};
    for (int64_t j = begin; j < end; j++) {
        if (j == best) continue;
        struct response r = measure(&s->config, in, j);
        double right, wrong, d = b.scale * b.u - r.scale * r.u;
        loss += w * (1 - e) * loss_of(&s->config, d, &right);
        loss += w * e * loss_of(&s->config, -d, &wrong);
        up += w * ((1 - e) * right - e * wrong);
        pull(d_logp, &r, -w * ((1 - e) * right - e * wrong));
        sums[ACCURACY] *= b.u > r.u;
        sums[MARGIN] += s->config.beta * (b.u - r.u) / others;
        sums[REJECTED] += s->config.beta * r.u / others;
        sums[LOGP_REJECTED] += r.logp / others;
    }
    pull(d_logp, &b, up);
    for (int k = 0; k < N_SUMS; k++)
        s->sums[k] += sums[k];
    return loss;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct state *s = self;
    RLHF_TRY(rlhf__logp_check(s->host, in, out));
    if (in->n && !in->logp_ref) return s->host->fail(s->host, RLHF_E_INTERNAL, "no logp_ref");
    out->loss = 0;
    for (int64_t begin = 0, end, best; begin < in->n; begin = end) {
        RLHF_TRY(rlhf__preferred(s->host, in, begin, &end, &best));
        out->loss += group_loss(s, in, begin, end, best, out->d_heads->logp);
    }
    s->sums[LOSS] += out->loss;
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, uint64_t phase) {
    struct state *s = self;
    (void)phase;
    RLHF_TRY(s->host->reduce(s->host, s->sums, N_SUMS));
    for (int k = 0; s->sums[ROWS] > 0 && k < ROWS; k++)
        s->host->metric(s->host, names[k], s->sums[k] / (k == LOSS ? 1 : s->sums[ROWS]));
    *s = (struct state){.host = s->host, .config = s->config};
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_F64(struct config, beta, 0.1, 1e-6, 1e6, "how strongly the reference holds"),
    RLHF_OPT_ENUM(struct config, loss, SIGMOID, loss_names, "sigmoid: DPO; ipo: squared distance"),
    RLHF_OPT_F64(struct config, label_smoothing, 0, 0, 0.5, "how often a preference is wrong"),
};
static const rlhf_algo_ops ops = {
    .size = sizeof ops, .plan = plan, .loss = loss, .phase_end = phase_end};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.rlhf-host.dpo",
    .version = RLHF_SDK_VERSION,
    .summary = "direct preference optimisation: a policy from preferences, no reward model",
    .opts = options,
    .n_opts = sizeof options / sizeof *options,
    .opt_stride = sizeof *options,
    .config_size = sizeof(struct config),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
