// algo.c: REINFORCE with the batch mean as its baseline, the smallest algorithm that learns.
//
//   advantage of row i = score_i - mean score;  L = -(1/N) sum_it advantage_i * logp_it
//
// N is the number of response tokens of the whole minibatch, so the loss does not depend on how the
// host splits it into microbatches. Things to change: config, plan(), advantages(), loss(), the id.
#include <rlhf/algo.h>

struct config {
    double scale;
};

struct state {
    const rlhf_host *host;
    struct config config;
    double loss;     // sum over this phase
    int64_t updates; // minibatches of this phase
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

// Tells the host what to sample and which heads to compute.
static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    (void)self;
    (void)info;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP;
    out->epochs = out->minibatches = out->group_size = 1;
    return RLHF_OK;
}

// Called once in each phase: turns scores into an advantage for each response token.
static rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    const struct state *s = self;
    double mean = 0;
    for (uint32_t i = 0; i < in->n; i++)
        mean += (double)in->score[i] / (double)in->n;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++)
            out->advantage[t] = (float)(s->config.scale * ((double)in->score[i] - mean));
    return RLHF_OK;
}

// Called for each microbatch: computes the microbatch's share of the loss, and the derivative of
// that share with respect to each log-prob.
static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    (void)self;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
            double w = (double)in->advantage[t] / (double)in->batch_tokens;
            out->loss -= w * (double)in->heads->logp[t];
            out->d_heads->logp[t] = (float)-w;
        }
    return RLHF_OK;
}

static rlhf_status minibatch_end(void *self, const rlhf_step_info *step, rlhf_step_out *out) {
    struct state *s = self;
    s->loss += step->loss;
    s->updates++;
    (void)out; // out->stop = 1 would end the phase's epochs
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    struct state *s = self;
    (void)info;
    if (s->updates) rlhf_metric_last(s->host, "objective/loss", s->loss / (double)s->updates);
    s->loss = 0;
    s->updates = 0;
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_F64(struct config, scale, 1, 0, 1000, "factor of the advantage"),
};
static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = plan,
    .advantages = advantages,
    .loss = loss,
    .minibatch_end = minibatch_end,
    .phase_end = phase_end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.example.my_algo", // reverse DNS; must be unique
    .version = "1.0.0",
    .summary = "REINFORCE with a batch baseline",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
