// sft.c: supervised fine-tuning, the next-token loss on {"text"} and {"messages"} rows.
//
//   token:    L = -(1/N) sum_t logp_t            N = response tokens of the minibatch
//   sequence: L = -(1/n) sum_i (1/T_i) sum_t logp_it
//
// The first token of a row has no context and is not trained (the host sets prompt_len 1). Tokens
// marked in rlhf_loss_in.left_out are not trained either; they are not counted in N or T. The host
// provides the optimiser, the schedule and evaluation.
#include "common/rows.h"

#include <math.h>

enum { SFT_TOKEN = 0, SFT_SEQUENCE = 1 };

struct sft_config {
    int32_t aggregation;
};

struct sft {
    const rlhf_host *host;
    struct sft_config config;
    double nll, loss;                  // sums over the phase
    int64_t tokens, minibatches, seen; // seen: rows since the last minibatch_end
};

static rlhf_status sft_create(const rlhf_host *host, const void *config, void **self) {
    struct sft *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = *(const struct sft_config *)config;
    *self = s;
    return RLHF_OK;
}

static void sft_destroy(void *self) {
    struct sft *s = self;
    if (s) s->host->free(s->host, s);
}

static rlhf_status sft_plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    (void)self;
    (void)info;
    out->source = RLHF_SOURCE_TEXT;
    out->heads = RLHF_HEAD_LOGP;
    out->flags = RLHF_PLAN_LEAVES_OUT;
    out->epochs = out->minibatches = out->group_size = 1;
    return RLHF_OK;
}

// Number of trained tokens in a row; left_out NULL: all.
static int64_t trained(const uint8_t *left_out, struct rlhf__span row) {
    int64_t n = row.end - row.begin;
    for (int64_t t = row.begin; left_out && t < row.end; t++)
        n -= left_out[t] != 0;
    return n;
}

static rlhf_status sft_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct sft *s = self;
    RLHF_TRY(rlhf__logp_check(s->host, in, out));
    const uint8_t *left_out = RLHF_HAS(rlhf_loss_in, in, left_out) ? in->left_out : NULL;
    double loss = 0;
    for (int64_t i = 0; i < in->n; i++) {
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        int64_t len = trained(left_out, row);
        if (len == 0) continue;
        double w = s->config.aggregation == SFT_TOKEN
                       ? 1.0 / (double)in->batch_tokens
                       : 1.0 / ((double)in->batch_sequences * (double)len);
        double sum = 0;
        for (int64_t t = row.begin; t < row.end; t++) {
            if (left_out && left_out[t]) continue;
            sum -= (double)in->heads->logp[t];
            out->d_heads->logp[t] = (float)-w;
        }
        loss += w * sum;
        s->nll += sum;
        s->tokens += len;
    }
    out->loss = loss;
    s->loss += loss;
    s->seen += in->n;
    return RLHF_OK;
}

static rlhf_status sft_minibatch_end(void *self, const rlhf_step_info *step, int32_t *stop) {
    struct sft *s = self;
    double seen = (double)s->seen;
    (void)step;
    *stop = 0;
    RLHF_TRY(s->host->reduce(s->host, &seen, 1));
    if (seen > 0) s->minibatches++;
    s->seen = 0;
    return RLHF_OK;
}

static rlhf_status sft_phase_end(void *self, uint64_t phase) {
    struct sft *s = self;
    const rlhf_host *h = s->host;
    double sums[] = {s->loss, s->nll, (double)s->tokens};
    (void)phase;
    RLHF_TRY(h->reduce(h, sums, sizeof sums / sizeof *sums));
    if (s->minibatches) h->metric(h, "objective/loss", sums[0] / (double)s->minibatches);
    if (sums[2] > 0) {
        double nll = sums[1] / sums[2];
        h->metric(h, "sft/perplexity", exp(nll));
        h->metric(h, "sft/bits_per_token", nll / log(2.0));
    }
    s->nll = s->loss = 0;
    s->tokens = s->minibatches = s->seen = 0;
    return RLHF_OK;
}

static const char *const aggregation_names[] = {"token", "sequence", NULL};
static const rlhf_opt options[] = {
    RLHF_OPT_ENUM(struct sft_config, aggregation, SFT_TOKEN, aggregation_names,
                  "loss over a minibatch: mean over its tokens, or mean of per-text means"),
};
static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = sft_plan,
    .loss = sft_loss,
    .minibatch_end = sft_minibatch_end,
    .phase_end = sft_phase_end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.rlhf-host.sft",
    .version = RLHF_SDK_VERSION,
    .summary = "supervised fine-tuning: next-token loss on text rows",
    .opts = options,
    .n_opts = sizeof options / sizeof *options,
    .opt_stride = sizeof *options,
    .config_size = sizeof(struct sft_config),
    .create = sft_create,
    .destroy = sft_destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
