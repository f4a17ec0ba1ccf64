// sft.c: supervised fine-tuning. Minimizes the next-token loss on {"text"} and {"messages"} rows.
//
//   token:    L = -(1/N) sum_t logp_t            N = response tokens of the minibatch
//   sequence: L = -(1/n) sum_i (1/T_i) sum_t logp_it
//
// The first token of a row is not trained, because nothing precedes it (the host sets prompt_len to
// 1). Tokens marked in rlhf_loss_in.left_out are not trained either, and they do not count in N or
// T. The host provides the optimizer, the schedule and evaluation.
#include "common/rows.h"
#include "common/sums.h"

#include <math.h>
#include <rlhf/exact.h>

enum { SFT_TOKEN = 0, SFT_SEQUENCE = 1 };
enum { LOSS, NLL, TOKENS, N_SUMS };

struct sft_config {
    int32_t aggregation;
};

struct sft {
    const rlhf_host *host;
    struct sft_config config;
    struct rlhf__sums sums;    // sums of the phase
    int64_t minibatches, seen; // seen: number of rows since the last minibatch_end
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
    if (!s) return;
    rlhf__sums_finish(s->host, &s->sums);
    s->host->free(s->host, s);
}

static rlhf_status sft_plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    struct sft *s = self;
    out->source = RLHF_SOURCE_TEXT;
    out->heads = RLHF_HEAD_LOGP;
    out->flags = RLHF_PLAN_LEAVES_OUT;
    out->epochs = out->minibatches = out->group_size = 1;
    return rlhf__sums_open(s->host, &s->sums, info, N_SUMS);
}

// The number of trained tokens in a row. If left_out is NULL, all its tokens are trained.
static int64_t trained(const uint8_t *left_out, struct rlhf__span row) {
    int64_t n = row.end - row.begin;
    for (int64_t t = row.begin; left_out && t < row.end; t++)
        n -= left_out[t] != 0;
    return n;
}

static rlhf_status sft_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct sft *s = self;
    double *sums;
    RLHF_TRY(rlhf__logp_check(s->host, in, out));
    RLHF_TRY(rlhf__sums_of(s->host, &s->sums, in->shard, &sums));
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
        sums[NLL] += sum;
        sums[TOKENS] += (double)len;
    }
    out->loss = loss;
    sums[LOSS] += loss;
    s->seen += in->n;
    return RLHF_OK;
}

static rlhf_status sft_minibatch_end(void *self, const rlhf_step_info *step, rlhf_step_out *out) {
    struct sft *s = self;
    double seen = (double)s->seen;
    (void)step;
    (void)out;
    RLHF_TRY(s->host->reduce(s->host, &seen, 1));
    if (seen > 0) s->minibatches++;
    s->seen = 0;
    return RLHF_OK;
}

static rlhf_status sft_phase_end(void *self, const rlhf_phase_info *info) {
    struct sft *s = self;
    const rlhf_host *h = s->host;
    double sums[N_SUMS];
    (void)info;
    RLHF_TRY(rlhf__sums_total(h, &s->sums, sums));
    if (s->minibatches) rlhf_metric_last(h, "objective/loss", sums[LOSS] / (double)s->minibatches);
    if (sums[TOKENS] > 0) {
        double nll = sums[NLL] / sums[TOKENS];
        rlhf_metric_last(h, "sft/perplexity", rlhf_exp(nll));
        rlhf_metric_last(h, "sft/bits_per_token", nll / rlhf_log(2.0));
    }
    s->minibatches = s->seen = 0;
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
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct sft_config, options),
    .create = sft_create,
    .destroy = sft_destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
