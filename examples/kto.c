// kto.c: a policy from single completions that are wanted or not, without pairs: KTO (Ethayarajh et
// al. 2024, 2402.01306, eq. 7 and 8; TRL's KTOTrainer, loss_type kto). Rows are
// {"prompt": ..., "completion": ..., "label": true or false}.
//
//   u_i = sum_t (x_it - f_it)                  x: log-prob of the policy, f: of the reference
//   z   = max(0, mean of u over mismatched rows)    the reference point, no derivative
//   L   = 1/n sum_i w_i (1 - sigmoid(s_i beta (u_i - z)))
//
// s is 1 and w desirable_weight for completions that are wanted, -1 and undesirable_weight for
// others; n are the rows of the batch. z is the policy's divergence from the reference, estimated
// on prompts with completions of other prompts: the host makes those rows (RLHF_PLAN_MISMATCHED),
// and shows the batch with its log-probs before the update (RLHF_PLAN_RECOMPUTE_LOGP).
#include <rlhf/algo.h>

#include <math.h>

struct config {
    double beta, desirable_weight, undesirable_weight;
};

enum { LOSS, N_WANTED, N_UNWANTED, WANTED, UNWANTED, N_SUMS };

struct state {
    const rlhf_host *host;
    struct config config;
    double z, n;         // of the batch at hand
    double sums[N_SUMS]; // of the phase: loss, rows of either kind, their implicit rewards beta u
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct state *s = host->alloc(host, sizeof *s); // zeroed
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
    out->source = RLHF_SOURCE_COMPLETIONS;
    out->heads = RLHF_HEAD_LOGP;
    out->flags = RLHF_PLAN_REFERENCE | RLHF_PLAN_RECOMPUTE_LOGP | RLHF_PLAN_MISMATCHED;
    out->epochs = out->minibatches = out->group_size = 1;
    return RLHF_OK;
}

// u of a completion, whose tokens are begin .. end-1.
static double lead(const float *logp, const float *ref, int32_t begin, int32_t end) {
    double u = 0;
    for (int32_t t = begin; t < end; t++)
        u += (double)logp[t] - (double)ref[t];
    return u;
}

// The whole batch, before anything is learned from it.
static rlhf_status advantages(void *self, const rlhf_rollout *in) {
    struct state *s = self;
    double sum = 0, mismatched = 0;
    s->n = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        s->n += in->label[i] >= 0;
        if (in->label[i] >= 0) continue;
        sum +=
            lead(in->logp_old, in->logp_ref, in->offset[i] + in->prompt_len[i], in->offset[i + 1]);
        mismatched++;
        in->use[i] = RLHF_ROW_MASKED; // it has said what it is for
    }
    s->z = mismatched > 0 ? fmax(0, sum / mismatched) : 0;
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct state *s = self;
    const struct config *c = &s->config;
    out->loss = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        const int32_t begin = in->offset[i] + in->prompt_len[i], end = in->offset[i + 1];
        const int wanted = in->label[i] == 1;
        const double sign = wanted ? 1 : -1;
        const double w = (wanted ? c->desirable_weight : c->undesirable_weight) / s->n;
        const double u = lead(in->heads->logp, in->logp_ref, begin, end);
        const double miss = 1 / (1 + exp(sign * c->beta * (u - s->z))); // 1 - sigmoid
        out->loss += w * miss;
        for (int32_t t = begin; t < end; t++)
            out->d_heads->logp[t] = (float)(-w * sign * c->beta * miss * (1 - miss));
        s->sums[wanted ? N_WANTED : N_UNWANTED] += 1;
        s->sums[wanted ? WANTED : UNWANTED] += c->beta * u;
    }
    s->sums[LOSS] += out->loss;
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, uint64_t phase) {
    struct state *s = self;
    double *sum = s->sums;
    (void)phase;
    rlhf_status st = s->host->reduce(s->host, sum, N_SUMS);
    if (st != RLHF_OK) return st;
    const double wanted = sum[WANTED] / sum[N_WANTED], unwanted = sum[UNWANTED] / sum[N_UNWANTED];
    s->host->metric(s->host, "objective/loss", sum[LOSS]);
    s->host->metric(s->host, "kto/kl", s->z);
    if (sum[N_WANTED] > 0) s->host->metric(s->host, "kto/wanted", wanted);
    if (sum[N_UNWANTED] > 0) s->host->metric(s->host, "kto/unwanted", unwanted);
    if (sum[N_WANTED] > 0 && sum[N_UNWANTED] > 0)
        s->host->metric(s->host, "kto/margin", wanted - unwanted);
    *s = (struct state){.host = s->host, .config = s->config};
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_F64(struct config, beta, 0.1, 1e-6, 1e6, "how strongly the reference holds"),
    RLHF_OPT_F64(struct config, desirable_weight, 1, 0, 1e6, "of completions that are wanted"),
    RLHF_OPT_F64(struct config, undesirable_weight, 1, 0, 1e6, "of those that are not"),
};
static const rlhf_algo_ops ops = {.size = sizeof ops,
                                  .plan = plan,
                                  .advantages = advantages,
                                  .loss = loss,
                                  .phase_end = phase_end};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.example.kto",
    .version = "1.0.0",
    .summary = "KTO: a policy from completions that are wanted or not",
    .opts = options,
    .n_opts = sizeof options / sizeof *options,
    .opt_stride = sizeof *options,
    .config_size = sizeof(struct config),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
