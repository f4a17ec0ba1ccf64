// kto.c: KTO (Ethayarajh et al. 2024, 2402.01306, eq. 7 and 8). It trains a policy on single
// completions labeled desirable or undesirable, without pairs, as TRL's KTOTrainer does
// (docs/algorithms/kto.md).
//
//   u_i = sum_t (x_it - f_it)                       x: log-prob of the policy; f: of the reference
//   z   = max(0, mean of u over mismatched rows)    the reference point, no derivative
//   L   = 1/n sum_i w_i (1 - sigmoid(s_i beta (u_i - z)))    n: rows of the batch
//   desirable completions: s = 1, w = desirable_weight; others: s = -1, w = undesirable_weight
//
// z estimates the policy's divergence from the reference. It is computed from mismatched rows,
// which combine prompts with completions of other prompts. The host builds these rows
// (RLHF_PLAN_MISMATCHED). It also computes the log-probs of the whole batch before the update
// (RLHF_PLAN_RECOMPUTE_LOGP). With loss=apo_zero_unpaired (D'Oosterlinck et al. 2024) z is 0, and
// there are no mismatched rows.
#include "common/rows.h"
#include "common/sums.h"

#include <math.h>
#include <rlhf/exact.h>
#include <rlhf/log.h>

enum { KTO, APO_ZERO_UNPAIRED };
static const char *const loss_names[] = {"kto", "apo_zero_unpaired", NULL}; // TRL's names

struct config {
    double beta, desirable_weight, undesirable_weight;
    int32_t loss;
};

// Sums over the rows of one kind (desirable or undesirable). REWARD is the sum of beta u.
enum { ROWS, REWARD, LOGP, N_KIND_SUMS };
// All sums of a phase: those of the undesirable rows, then those of the desirable rows, then the
// loss.
enum { LOSS = 2 * N_KIND_SUMS, N_SUMS };

struct state {
    const rlhf_host *host;
    struct config config;
    double z, n;            // of the current batch; n: number of its rows, without mismatched rows
    struct rlhf__sums sums; // sums of the phase
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const struct config *c = config;
    if (c->desirable_weight == 0 && c->undesirable_weight == 0)
        return host->fail(host, RLHF_E_INVALID,
                          "desirable_weight and undesirable_weight are both 0, so no row would "
                          "teach anything; set one of them above 0");
    struct state *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = *c;
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
    out->source = RLHF_SOURCE_COMPLETIONS;
    out->heads = RLHF_HEAD_LOGP;
    out->flags = RLHF_PLAN_REFERENCE;
    if (s->config.loss == KTO) out->flags |= RLHF_PLAN_RECOMPUTE_LOGP | RLHF_PLAN_MISMATCHED;
    out->epochs = out->minibatches = out->group_size = 1;
    return rlhf__sums_open(s->host, &s->sums, info, N_SUMS);
}

// Computes the reference point from the whole batch, before the update on this batch. The
// mismatched rows are used only here.
static rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    struct state *s = self;
    double sum = 0, mismatched = 0;
    const char *wrong = rlhf__rows_check(in->offset, in->prompt_len, in->n, in->total);
    if (wrong) return s->host->fail(s->host, RLHF_E_INTERNAL, wrong);
    if (in->n && (!in->label || !in->logp_old || !in->logp_ref || !out->use))
        return s->host->fail(s->host, RLHF_E_INTERNAL, "an array of the batch is missing");
    s->n = 0;
    for (int64_t i = 0; i < in->n; i++) {
        if (in->label[i] >= 0) {
            s->n++;
            continue;
        }
        struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
        sum += rlhf__sum(in->logp_old, row) - rlhf__sum(in->logp_ref, row);
        mismatched++;
        out->use[i] = RLHF_USE_EXCLUDED;
    }
    s->z = mismatched > 0 ? sum / mismatched : 0;
    if (s->z < 0) s->z = 0; // fmax would hide a NaN
    return RLHF_OK;
}

// Returns the loss of row i, which is one of n rows, and adds the row to the sums.
static double row_loss(const struct state *s, const rlhf_loss_in *in, int64_t i, double n,
                       float *d_logp, double *sums) {
    const struct config *c = &s->config;
    const struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
    const int wanted = in->label[i] == 1;
    const double sign = wanted ? 1 : -1;
    const double w = (wanted ? c->desirable_weight : c->undesirable_weight) / n;
    const double logp = rlhf__sum(in->heads->logp, row), u = logp - rlhf__sum(in->logp_ref, row);
    const double miss = 1 / (1 + rlhf_exp(sign * c->beta * (u - s->z))); // 1 - sigmoid
    const double slope = -w * sign * c->beta * miss * (1 - miss);
    for (int64_t t = row.begin; t < row.end; t++)
        d_logp[t] = (float)slope;
    double *const kind = sums + wanted * N_KIND_SUMS;
    kind[ROWS] += 1;
    kind[REWARD] += c->beta * u;
    kind[LOGP] += logp;
    return w * miss;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct state *s = self;
    double *sums;
    RLHF_TRY(rlhf__logp_check(s->host, in, out));
    RLHF_TRY(rlhf__sums_of(s->host, &s->sums, in->shard, &sums));
    const double n = s->config.loss == KTO ? s->n : (double)in->batch_sequences;
    out->loss = 0;
    if (in->n && (!in->logp_ref || !in->label))
        return s->host->fail(s->host, RLHF_E_INTERNAL, "logp_ref or label is missing");
    for (int64_t i = 0; i < in->n; i++) {
        if (in->label[i] != 0 && in->label[i] != 1)
            return rlhf_failf(s->host, RLHF_E_INTERNAL, "row %lld has label %d; it must be 0 or 1",
                              (long long)i, (int)in->label[i]);
        out->loss += row_loss(s, in, i, n, out->d_heads->logp, sums);
    }
    sums[LOSS] += out->loss;
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    static const char *const reward[] = {"kto/unwanted", "kto/wanted"};
    static const char *const logp[] = {"kto/logp_unwanted", "kto/logp_wanted"};
    struct state *s = self;
    const rlhf_host *h = s->host;
    double mean[2] = {0, 0}, sums[N_SUMS];
    const double *const kind[2] = {sums, sums + N_KIND_SUMS}; // kind[1]: the desirable rows
    (void)info;
    RLHF_TRY(rlhf__sums_total(h, &s->sums, sums));
    const int both = kind[0][ROWS] > 0 && kind[1][ROWS] > 0;
    if (kind[0][ROWS] + kind[1][ROWS] > 0) {
        rlhf_metric_last(h, "objective/loss", sums[LOSS]);
        if (s->config.loss == KTO) rlhf_metric_last(h, "kto/kl", s->z);
    }
    for (int k = 1; k >= 0; k--) {
        const double rows = kind[k][ROWS];
        if (rows == 0) continue;
        mean[k] = kind[k][REWARD] / rows;
        rlhf_metric_last(h, reward[k], mean[k]);
        rlhf_metric_last(h, logp[k], kind[k][LOGP] / rows);
    }
    if (both) rlhf_metric_last(h, "kto/margin", mean[1] - mean[0]);
    s->z = s->n = 0;
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_F64(struct config, beta, 0.1, 1e-6, 1e6, "how strongly the reference holds"),
    RLHF_OPT_F64(struct config, desirable_weight, 1, 0, 1e6, "weight of wanted completions"),
    RLHF_OPT_F64(struct config, undesirable_weight, 1, 0, 1e6, "weight of unwanted completions"),
    RLHF_OPT_ENUM(struct config, loss, KTO, loss_names,
                  "kto: against the batch's KL; apo_zero_unpaired: against 0"),
};
static const rlhf_algo_ops ops = {.size = sizeof ops,
                                  .plan = plan,
                                  .advantages = advantages,
                                  .loss = loss,
                                  .phase_end = phase_end};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.rlhf-host.kto",
    .version = RLHF_SDK_VERSION,
    .summary = "KTO: a policy from completions marked as wanted or not, no pairs",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
