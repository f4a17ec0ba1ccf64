// classify.c: trains a sequence classifier on {"text", "label"} rows.
//
//   p_i = softmax(score[i, :]);  q_i = (1 - s) onehot(label_i) + s / K
//   L = -(1/n) sum_i sum_k q_ik log p_ik;   dL/dscore[i, k] = (p_ik - q_ik) / n
//
// n is the number of rows in the minibatch, K the number of labels, and s is label_smoothing
// (Szegedy et al. 2016, section 7). The model determines the pooling and the number of labels.
#include "common/rows.h"
#include "common/sums.h"

#include <math.h>
#include <rlhf/exact.h>

enum { LOSS, CORRECT, ROWS, N_SUMS };

struct classify_config {
    double label_smoothing;
};

struct classify {
    const rlhf_host *host;
    struct classify_config config;
    struct rlhf__sums sums;    // sums of the phase
    int64_t minibatches, seen; // seen: number of rows since the last minibatch_end
};

static rlhf_status classify_create(const rlhf_host *host, const void *config, void **self) {
    struct classify *c = host->alloc(host, sizeof *c);
    if (!c) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    c->host = host;
    c->config = *(const struct classify_config *)config;
    *self = c;
    return RLHF_OK;
}

static void classify_destroy(void *self) {
    struct classify *c = self;
    if (!c) return;
    rlhf__sums_finish(c->host, &c->sums);
    c->host->free(c->host, c);
}

static rlhf_status classify_plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    struct classify *c = self;
    if (info->n_labels == 1) // 0 means that the rows have not been read yet
        return c->host->fail(c->host, RLHF_E_INVALID,
                             "the model has 1 label; a classifier needs at least 2");
    out->source = RLHF_SOURCE_LABELED;
    out->heads = RLHF_HEAD_SCORE;
    out->flags = 0;
    out->epochs = out->minibatches = out->group_size = 1;
    return rlhf__sums_open(c->host, &c->sums, info, N_SUMS);
}

// Returns w times the cross-entropy of one row's K scores against the smoothed label, and sets d[K]
// to its gradient. Sets *best to the index of the largest score (the first one if several are
// equal).
static double cross_entropy(const float *score, int32_t k, int32_t label, double smoothing,
                            double w, float *d, int32_t *best) {
    int32_t top = 0;
    for (int32_t j = 1; j < k; j++)
        if (score[j] > score[top]) top = j;
    double max = (double)score[top], sum = 0;
    for (int32_t j = 0; j < k; j++)
        sum += rlhf_exp((double)score[j] - max);
    double log_sum = max + rlhf_log(sum), loss = 0;
    for (int32_t j = 0; j < k; j++) {
        double log_p = (double)score[j] - log_sum;
        double q = smoothing / (double)k + (j == label ? 1.0 - smoothing : 0.0);
        loss -= q * log_p;
        d[j] = (float)(w * (rlhf_exp(log_p) - q));
    }
    *best = top;
    return w * loss;
}

static rlhf_status classify_check(const struct classify *c, const rlhf_loss_in *in,
                                  const rlhf_loss_out *out) {
    const rlhf_host *h = c->host;
    if (!in->heads || !in->heads->score || !out->d_heads || !out->d_heads->score)
        return h->fail(h, RLHF_E_INTERNAL, "the score head is missing");
    if (in->n && !in->label) return h->fail(h, RLHF_E_INTERNAL, "the labels are missing");
    if (in->n_labels < 2 || in->batch_sequences < 1)
        return h->fail(h, RLHF_E_INTERNAL, "n_labels or batch_sequences is not positive");
    return RLHF_OK;
}

static rlhf_status classify_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct classify *c = self;
    double *sums;
    RLHF_TRY(classify_check(c, in, out));
    RLHF_TRY(rlhf__sums_of(c->host, &c->sums, in->shard, &sums));
    const int32_t k = (int32_t)in->n_labels;
    double w = 1.0 / (double)in->batch_sequences, loss = 0;
    for (int64_t i = 0; i < in->n; i++) {
        int32_t label = in->label[i], best = 0;
        if (label < 0 || label >= k)
            return rlhf_failf(c->host, RLHF_E_INVALID,
                              "row %lld has label %d; the model has labels 0 to %d", (long long)i,
                              (int)label, (int)k - 1);
        loss += cross_entropy(in->heads->score + i * k, k, label, c->config.label_smoothing, w,
                              out->d_heads->score + i * k, &best);
        sums[CORRECT] += best == label;
    }
    out->loss = loss;
    sums[LOSS] += loss;
    sums[ROWS] += in->n;
    c->seen += in->n;
    return RLHF_OK;
}

static rlhf_status classify_minibatch_end(void *self, const rlhf_step_info *step,
                                          rlhf_step_out *out) {
    struct classify *c = self;
    double seen = (double)c->seen;
    (void)step;
    (void)out;
    RLHF_TRY(c->host->reduce(c->host, &seen, 1));
    if (seen > 0) c->minibatches++;
    c->seen = 0;
    return RLHF_OK;
}

static rlhf_status classify_phase_end(void *self, const rlhf_phase_info *info) {
    struct classify *c = self;
    const rlhf_host *h = c->host;
    double sums[N_SUMS];
    (void)info;
    RLHF_TRY(rlhf__sums_total(h, &c->sums, sums));
    if (c->minibatches) rlhf_metric_last(h, "objective/loss", sums[LOSS] / (double)c->minibatches);
    if (sums[ROWS] > 0) rlhf_metric_last(h, RLHF_METRIC_LABEL_ACCURACY, sums[CORRECT] / sums[ROWS]);
    c->minibatches = c->seen = 0;
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_F64(struct classify_config, label_smoothing, 0, 0, 1,
                 "share of the target spread evenly over all labels"),
};
static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = classify_plan,
    .loss = classify_loss,
    .minibatch_end = classify_minibatch_end,
    .phase_end = classify_phase_end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.rlhf-host.classify",
    .version = RLHF_SDK_VERSION,
    .summary = "sequence classification: softmax cross-entropy on labeled texts",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct classify_config, options),
    .create = classify_create,
    .destroy = classify_destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
