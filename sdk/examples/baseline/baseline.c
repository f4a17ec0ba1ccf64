// baseline.c: an algorithm that stores state in checkpoints: REINFORCE whose baseline is a running
// mean of the scores. A resumed run needs that mean. Unlike the template of `plugin new algo`, this
// file also shows save(), load(), state_version and why_unused().
//
//   advantage of row i = score_i - b;  after the phase b = decay b + (1 - decay) mean score
#include <rlhf/algo.h>

#include <string.h>

struct config {
    double decay, start;
    int32_t warm, reserved;
};

struct state {
    const rlhf_host *host;
    struct config config;
    double mean;     // score of this phase
    double baseline; // saved
    uint64_t phases; // saved
    double loss;     // sum over this phase
    int64_t updates; // minibatches of this phase
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct state *s = host->alloc(host, sizeof *s); // zeroed
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = *(const struct config *)config;
    s->baseline = s->config.start;
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
    struct state *s = self;
    s->mean = 0;
    for (uint32_t i = 0; i < in->n; i++)
        s->mean += (double)in->score[i] / (double)in->n;
    if (s->phases == 0 && s->config.warm) s->baseline = s->mean;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++)
            out->advantage[t] = (float)((double)in->score[i] - s->baseline);
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
    rlhf_metric_last(s->host, "baseline/used", s->baseline);
    s->baseline = s->config.decay * s->baseline + (1 - s->config.decay) * s->mean;
    s->phases++;
    if (s->updates) rlhf_metric_last(s->host, "objective/loss", s->loss / (double)s->updates);
    s->loss = 0;
    s->updates = 0;
    return RLHF_OK;
}

// Saves the state that a resumed run needs. The bytes are the same on every machine: numbers are
// little-endian.
static rlhf_status save(void *self, const rlhf_ostream *out) {
    const struct state *s = self;
    uint64_t word[2] = {s->phases, 0};
    uint8_t bytes[16];
    memcpy(&word[1], &s->baseline, sizeof word[1]);
    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)(word[i / 8] >> (8 * (i % 8)));
    return out->write(out, bytes, sizeof bytes);
}

static rlhf_status load(void *self, const rlhf_istream *in, uint32_t state_version) {
    struct state *s = self;
    uint64_t word[2] = {0};
    uint8_t bytes[16];
    if (state_version != 1)
        return s->host->fail(s->host, RLHF_E_UNSUPPORTED, "a state of another version");
    rlhf_status st = in->read(in, bytes, sizeof bytes);
    if (st < 0) return s->host->fail(s->host, st, "the saved state is shorter than 16 bytes");
    for (int i = 0; i < 16; i++)
        word[i / 8] |= (uint64_t)bytes[i] << (8 * (i % 8));
    s->phases = word[0];
    memcpy(&s->baseline, &word[1], sizeof s->baseline);
    return RLHF_OK;
}

// With `warm` the baseline starts from the first phase's mean score, so `start` has no effect.
static const char *why_unused(const rlhf_option_in *in) {
    const struct config *c = in->config;
    return c->warm && strcmp(in->key, "start") == 0 ? "warm begins at the first mean" : NULL;
}

static const rlhf_opt options[] = {
    RLHF_OPT_F64_BELOW(struct config, decay, 0.9, 0, 1, "what stays of the baseline in a phase"),
    RLHF_OPT_F64(struct config, start, 0, -1e6, 1e6, "the first baseline"),
    RLHF_OPT_BOOL(struct config, warm, 0, "begin with the mean score of the first phase"),
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
    .state_version = 1,           // of the bytes of save()
    .id = "org.example.baseline", // reverse DNS; must be unique
    .version = "1.0.0",
    .summary = "REINFORCE with a running baseline",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = destroy,
    .save = save,
    .load = load,
    .ops = &ops,
    .why_unused = why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
