// bradley_terry.c: trains a reward model on preferences. A data row has two or more responses to
// one prompt; one of them is preferred.
//
//   loss_g = log(1 + sum_{j != b} exp(R_j + m - R_b)) + c (2/k sum_j R_j)^2
//   L      = sum_g (k_g / n) loss_g
//
//   R: the rewards of a row's k responses    b: the preferred response
//   m: the option `margin` plus the data row's margin, if any
//   c: the centering coefficient             n: number of responses in the minibatch
//
// With k = 2 the first term is -log sigmoid(R_chosen - R_rejected - m) (Bradley and Terry 1952;
// Stiennon et al. 2020, section 3.4), and the second is c (R_chosen + R_rejected)^2. With k > 2 the
// first term is the cross-entropy of "b is the best of k" (Ziegler et al. 2019, eq. 1).
//
// The host reads the pairs, pools the tokens' scores, and fits gain and bias.
#include "common/rows.h"
#include "common/sums.h"

#include <math.h>
#include <rlhf/exact.h>
#include <rlhf/log.h>

struct bt_config {
    double margin, center_coef;
};

// Sums over the phase. LOSS is a sum over minibatches, the others are sums over groups.
enum { LOSS, ACCURACY, MARGIN, CHOSEN, REJECTED, GROUPS, N_SUMS };

struct bt {
    const rlhf_host *host;
    struct bt_config config;
    struct rlhf__sums sums;
    int64_t minibatches, seen; // seen: number of rows since the last minibatch_end
};

static rlhf_status bt_create(const rlhf_host *host, const void *config, void **self) {
    struct bt *b = host->alloc(host, sizeof *b);
    if (!b) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    b->host = host;
    b->config = *(const struct bt_config *)config;
    *self = b;
    return RLHF_OK;
}

static void bt_destroy(void *self) {
    struct bt *b = self;
    if (!b) return;
    rlhf__sums_finish(b->host, &b->sums);
    b->host->free(b->host, b);
}

static rlhf_status bt_plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    struct bt *b = self;
    out->source = RLHF_SOURCE_PREFERENCES;
    out->heads = RLHF_HEAD_SCORE;
    out->flags = RLHF_PLAN_MARGINS;
    out->epochs = out->minibatches = out->group_size = 1;
    return rlhf__sums_open(b->host, &b->sums, info, N_SUMS);
}

static rlhf_status bt_check(const struct bt *b, const rlhf_loss_in *in, const rlhf_loss_out *out) {
    const rlhf_host *h = b->host;
    if (!in->heads || !in->heads->score || !out->d_heads || !out->d_heads->score)
        return h->fail(h, RLHF_E_INTERNAL, "the score head is missing");
    if (in->n_labels > 1)
        return rlhf_failf(h, RLHF_E_INVALID, "the model has %d labels; a reward model has 1",
                          (int)in->n_labels);
    if (in->batch_sequences < 1)
        return h->fail(h, RLHF_E_INTERNAL, "batch_sequences is not positive");
    return RLHF_OK;
}

// Returns w times the loss of one group, which has the rewards r[k] and the preferred response
// `best`. Writes the gradient to d[k].
static double group_loss(double center_coef, double margin, const float *r, int64_t k, int64_t best,
                         double w, float *d) {
    double top = (double)r[best], sum = 0, total = 0;
    for (int64_t j = 0; j < k; j++) {
        double shifted = (double)r[j] + (j == best ? 0.0 : margin);
        if (shifted > top) top = shifted;
        total += (double)r[j];
    }
    for (int64_t j = 0; j < k; j++)
        sum += rlhf_exp((double)r[j] + (j == best ? 0.0 : margin) - top);
    double log_sum = top + rlhf_log(sum), twice = 2.0 * total / (double)k;
    double center = center_coef * 4.0 * twice / (double)k;
    for (int64_t j = 0; j < k; j++) {
        double p = rlhf_exp((double)r[j] + (j == best ? 0.0 : margin) - log_sum);
        d[j] = (float)(w * (p - (j == best ? 1.0 : 0.0) + center));
    }
    return w * (log_sum - (double)r[best] + center_coef * twice * twice);
}

static void count_group(double *sums, const float *r, int64_t k, int64_t best) {
    double others = 0, chosen = (double)r[best];
    int right = 1;
    for (int64_t j = 0; j < k; j++) {
        if (j == best) continue;
        others += (double)r[j];
        right &= r[j] < r[best];
    }
    others /= (double)(k - 1);
    sums[ACCURACY] += right;
    sums[MARGIN] += chosen - others;
    sums[CHOSEN] += chosen;
    sums[REJECTED] += others;
    sums[GROUPS]++;
}

static rlhf_status bt_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct bt *b = self;
    double *sums;
    RLHF_TRY(bt_check(b, in, out));
    RLHF_TRY(rlhf__sums_of(b->host, &b->sums, in->shard, &sums));
    const float *margins = RLHF_HAS(rlhf_loss_in, in, margin) ? in->margin : NULL;
    double loss = 0;
    for (int64_t begin = 0, end, best; begin < in->n; begin = end) {
        RLHF_TRY(rlhf__preferred(b->host, in, begin, &end, &best));
        int64_t k = end - begin;
        best -= begin;
        const double margin = b->config.margin + (margins ? (double)margins[begin] : 0.0);
        loss += group_loss(b->config.center_coef, margin, in->heads->score + begin, k, best,
                           (double)k / (double)in->batch_sequences, out->d_heads->score + begin);
        count_group(sums, in->heads->score + begin, k, best);
    }
    out->loss = loss;
    sums[LOSS] += loss;
    b->seen += in->n;
    return RLHF_OK;
}

static rlhf_status bt_minibatch_end(void *self, const rlhf_step_info *step, rlhf_step_out *out) {
    struct bt *b = self;
    double seen = (double)b->seen;
    (void)step;
    (void)out;
    RLHF_TRY(b->host->reduce(b->host, &seen, 1));
    if (seen > 0) b->minibatches++;
    b->seen = 0;
    return RLHF_OK;
}

static rlhf_status bt_phase_end(void *self, const rlhf_phase_info *info) {
    struct bt *b = self;
    const rlhf_host *h = b->host;
    double sums[N_SUMS];
    (void)info;
    RLHF_TRY(rlhf__sums_total(h, &b->sums, sums));
    double n = sums[GROUPS];
    if (b->minibatches) rlhf_metric_last(h, "objective/loss", sums[LOSS] / (double)b->minibatches);
    if (n > 0) {
        rlhf_metric_last(h, RLHF_METRIC_PAIR_ACCURACY, sums[ACCURACY] / n);
        rlhf_metric_last(h, "reward_model/margin", sums[MARGIN] / n);
        rlhf_metric_last(h, "reward_model/chosen", sums[CHOSEN] / n);
        rlhf_metric_last(h, "reward_model/rejected", sums[REJECTED] / n);
    }
    b->minibatches = b->seen = 0;
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_F64(
        struct bt_config, margin, 0, 0, 1000,
        "how far the preferred reward must lead before a pair counts as learnt; a row's own "
        "margin is added"),
    RLHF_OPT_F64(struct bt_config, center_coef, 0, 0, 1000,
                 "pull rewards toward mean 0: this times (R_chosen + R_rejected)^2"),
};
static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = bt_plan,
    .loss = bt_loss,
    .minibatch_end = bt_minibatch_end,
    .phase_end = bt_phase_end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.rlhf-host.bradley-terry",
    .version = RLHF_SDK_VERSION,
    .summary = "reward model on preferences: Bradley-Terry loss, or best of several",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct bt_config, options),
    .create = bt_create,
    .destroy = bt_destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
