// metrics.c: see metrics.h.
#include "common/metrics.h"

#include <math.h>
#include <rlhf/shards.h>
#include <string.h>

double rlhf__pg_total_loss(const struct rlhf__pg_update_sums *u) {
    return u->pg.loss + u->value_loss + u->kl_loss + u->entropy_loss;
}

double rlhf__pg_approx_kl(const struct rlhf__pg_update_sums *u) {
    int64_t n = u->pg.tokens - u->pg.out_of_support;
    return n > 0 ? u->pg.approx_kl / (double)n : 0;
}

void rlhf__pg_add(struct rlhf__pg_update_sums *to, const struct rlhf__pg_update_sums *from) {
    to->pg.loss += from->pg.loss;
    to->pg.ratio += from->pg.ratio;
    to->pg.ratio2 += from->pg.ratio2;
    to->pg.approx_kl += from->pg.approx_kl;
    to->pg.tokens += from->pg.tokens;
    to->pg.clipped += from->pg.clipped;
    to->pg.out_of_support += from->pg.out_of_support;
    to->value_loss += from->value_loss;
    to->value_half += from->value_half;
    to->kl_loss += from->kl_loss;
    to->entropy_loss += from->entropy_loss;
    to->entropy += from->entropy;
    to->value += from->value;
    to->value_error += from->value_error;
    to->value_clipped += from->value_clipped;
}

// Copy the sums of a minibatch to an array of doubles, and back. The counts are whole numbers far
// below 2^53, so doubles represent them exactly.
enum { N_SUMS = 11, N_COUNTS = 4, N_UPDATE = N_SUMS + N_COUNTS, N_KL = 4 };

static void list_update(struct rlhf__pg_update_sums *u, double *sum[N_SUMS],
                        int64_t *count[N_COUNTS]) {
    double *const sums[] = {&u->pg.loss,    &u->pg.ratio,   &u->pg.ratio2,  &u->pg.approx_kl,
                            &u->value_loss, &u->value_half, &u->kl_loss,    &u->entropy_loss,
                            &u->entropy,    &u->value,      &u->value_error};
    int64_t *const counts[] = {&u->pg.tokens, &u->pg.clipped, &u->pg.out_of_support,
                               &u->value_clipped};
    memcpy(sum, sums, sizeof sums);
    memcpy(count, counts, sizeof counts);
}

static void pack_update(struct rlhf__pg_update_sums *u, double *to) {
    double *sum[N_SUMS];
    int64_t *count[N_COUNTS];
    list_update(u, sum, count);
    for (int i = 0; i < N_SUMS; i++)
        to[i] = *sum[i];
    for (int i = 0; i < N_COUNTS; i++)
        to[N_SUMS + i] = (double)*count[i];
}

static void unpack_update(struct rlhf__pg_update_sums *u, const double *from) {
    double *sum[N_SUMS];
    int64_t *count[N_COUNTS];
    list_update(u, sum, count);
    for (int i = 0; i < N_SUMS; i++)
        *sum[i] = from[i];
    for (int i = 0; i < N_COUNTS; i++)
        *count[i] = (int64_t)from[N_SUMS + i];
}

rlhf_status rlhf__pg_metrics_plan(const rlhf_host *h, struct rlhf__pg_metrics *m,
                                  const rlhf_run_info *info) {
    const uint32_t shards = info->shards ? info->shards : 1;
    if (m->shards == shards) return RLHF_OK;
    h->free(h, m->shard);
    h->free(h, m->scratch);
    m->shard = h->alloc(h, shards * sizeof *m->shard);
    m->scratch = h->alloc(h, (uint64_t)shards * N_UPDATE * sizeof *m->scratch);
    m->shards = m->shard && m->scratch ? shards : 0;
    return m->shards ? RLHF_OK : h->fail(h, RLHF_E_NOMEM, "out of memory");
}

rlhf_status rlhf__pg_reduce(const rlhf_host *h, struct rlhf__pg_metrics *m) {
    double total[N_UPDATE];
    if (!m->shards) return h->fail(h, RLHF_E_INTERNAL, "plan() was not called");
    for (uint32_t s = 0; s < m->shards; s++) {
        pack_update(&m->shard[s].minibatch, rlhf_shard_sums(m->scratch, s, N_UPDATE));
        memset(&m->shard[s].minibatch, 0, sizeof m->shard[s].minibatch);
    }
    RLHF_TRY(rlhf_shards_total(h, m->scratch, m->shards, N_UPDATE, total));
    unpack_update(&m->minibatch, total);
    return RLHF_OK;
}

rlhf_status rlhf__pg_reduce_kl(const rlhf_host *h, struct rlhf__pg_metrics *m) {
    double total[N_KL];
    if (!m->shards) return h->fail(h, RLHF_E_INTERNAL, "plan() was not called");
    for (uint32_t s = 0; s < m->shards; s++) {
        const struct rlhf__pg_rollout_sums *r = &m->shard[s].kl;
        const double sums[N_KL] = {r->kl, r->penalty, (double)r->kl_sequences,
                                   (double)r->kl_tokens};
        memcpy(rlhf_shard_sums(m->scratch, s, N_KL), sums, sizeof sums);
    }
    RLHF_TRY(rlhf_shards_total(h, m->scratch, m->shards, N_KL, total));
    m->rollout.kl = total[0];
    m->rollout.penalty = total[1];
    m->rollout.kl_sequences = (int64_t)total[2];
    m->rollout.kl_tokens = (int64_t)total[3];
    return RLHF_OK;
}

void rlhf__pg_fold(struct rlhf__pg_metrics *m, const rlhf_step_info *step) {
    double total = rlhf__pg_total_loss(&m->minibatch);
    if (!step->skipped) { // if the minibatch is empty, all its rows are masked, and its loss is 0
        if (step->epoch != m->last_epoch) {
            m->last_epoch = step->epoch;
            m->last_epoch_loss = 0;
            m->last_epoch_count = 0;
        }
        m->last_epoch_loss += total;
        m->last_epoch_count++;
        m->minibatches++;
        rlhf__pg_add(&m->phase, &m->minibatch);
    }
    memset(&m->minibatch, 0, sizeof m->minibatch);
}

static int rows_reserve(const rlhf_host *h, struct rlhf__pg_rows *r, int64_t n) {
    if (n <= r->cap) return 1;
    uint64_t cap = 2 * (uint64_t)n;
    double *reward = h->alloc(h, cap * sizeof *reward);
    double *judged = h->alloc(h, cap * sizeof *judged);
    int64_t *order = h->alloc(h, cap * sizeof *order);
    int32_t *group = h->alloc(h, cap * sizeof *group);
    if (!reward || !judged || !order || !group) {
        h->free(h, reward);
        h->free(h, judged);
        h->free(h, order);
        h->free(h, group);
        return 0;
    }
    if (r->n) memcpy(reward, r->reward, (size_t)r->n * sizeof *reward);
    if (r->n) memcpy(judged, r->judged, (size_t)r->n * sizeof *judged);
    if (r->n) memcpy(group, r->group, (size_t)r->n * sizeof *group);
    h->free(h, r->reward);
    h->free(h, r->judged);
    h->free(h, r->order);
    h->free(h, r->group);
    *r = (struct rlhf__pg_rows){reward, judged, order, group, r->n, (int64_t)cap};
    return 1;
}

rlhf_status rlhf__pg_take_rows(const rlhf_host *h, struct rlhf__pg_metrics *m,
                               const rlhf_rollout *in, const double *reward, const double *judged,
                               int32_t together) {
    struct rlhf__pg_rows *r = &m->rows;
    if (!rows_reserve(h, r, r->n + (int64_t)in->n))
        return h->fail(h, RLHF_E_NOMEM, "out of memory");
    for (uint32_t i = 0; i < in->n; i++) {
        r->reward[r->n] = reward[i];
        r->judged[r->n] = judged[i];
        r->group[r->n++] = in->group && !together ? in->group[i] : 0;
    }
    return RLHF_OK;
}

static void report_rows(const rlhf_host *h, const struct rlhf__pg_rows *r, int groups) {
    rlhf_metric_last(h, "reward_std", sqrt(rlhf__var_unbiased(rlhf__moments(r->reward, r->n))));
    if (!groups) return;
    struct rlhf__group_stats s =
        rlhf__group_normalize(r->judged, r->group, r->n, 0, 0, 0, r->order, NULL);
    rlhf_metric_last(h, RLHF_METRIC_FLAT_GROUPS, (double)s.zero / (double)s.groups);
}

static void report_rollout(const rlhf_host *h, const struct rlhf__pg_rollout_sums *r,
                           const struct rlhf__pg_report *how) {
    double n = (double)r->sequences;
    if (r->sequences == 0) return;
    rlhf_metric_last(h, "objective/entropy", r->nll / n);
    if (r->kl_sequences) {
        rlhf_metric_last(h, RLHF_METRIC_KL, r->kl / (double)r->kl_sequences);
        if (r->kl_tokens)
            rlhf_metric_last(h, "objective/kl_per_token", r->kl / (double)r->kl_tokens);
    }
    double non_score = 0;
    if (how->kl_penalised) {
        rlhf_metric_last(h, "objective/kl_coef", how->kl_coef);
        if (r->kl_sequences) non_score = -how->kl_coef * r->penalty / (double)r->kl_sequences;
        rlhf_metric_last(h, "objective/non_score_reward", non_score);
    }
    rlhf_metric_last(h, "objective/rlhf_reward", r->score / n + non_score);
    if (how->masks) rlhf_metric_last(h, "policy/masked_ratio", (double)r->masked / n);
    if (r->tokens == 0) return;
    rlhf_metric_last(h, "returns/mean", r->returns.mean);
    rlhf_metric_last(h, "returns/var", rlhf__var_biased(r->returns));
    if (!how->critic) return;
    rlhf_metric_last(h, "val/mean", r->values.mean);
    rlhf_metric_last(h, "val/var", rlhf__var_biased(r->values));
}

static void report_value(const rlhf_host *h, const struct rlhf__pg_metrics *m) {
    const struct rlhf__pg_update_sums *u = &m->phase;
    double tokens = (double)u->pg.tokens, error = u->value_error / tokens;
    double var = rlhf__var_biased(m->rollout.returns);
    rlhf_metric_last(h, "loss/value_avg", u->value_half / (double)m->minibatches);
    rlhf_metric_last(h, "val/vpred", u->value / tokens);
    rlhf_metric_last(h, "val/error", error);
    rlhf_metric_last(h, "val/clipfrac", (double)u->value_clipped / tokens);
    if (var > 0) rlhf_metric_last(h, "val/var_explained", 1.0 - error / var);
}

static void report_update(const rlhf_host *h, const struct rlhf__pg_metrics *m,
                          const struct rlhf__pg_report *how) {
    const struct rlhf__pg_update_sums *u = &m->phase;
    if (m->minibatches == 0) return;
    rlhf_metric_last(h, "loss/policy_avg", u->pg.loss / (double)m->minibatches);
    rlhf_metric_last(h, "loss/total", rlhf__pg_total_loss(u) / (double)m->minibatches);
    rlhf_metric_last(h, "objective/loss", m->last_epoch_loss / (double)m->last_epoch_count);
    if (u->pg.tokens == 0) return;
    double tokens = (double)u->pg.tokens, ratio = u->pg.ratio / tokens;
    rlhf_metric_last(h, "policy/approxkl_avg", rlhf__pg_approx_kl(u));
    if (!how->unclipped) rlhf_metric_last(h, "policy/clipfrac_avg", (double)u->pg.clipped / tokens);
    rlhf_metric_last(h, "policy/entropy_avg", u->entropy / tokens);
    rlhf_metric_last(h, "val/ratio", ratio);
    rlhf_metric_last(h, "val/ratio_var", fmax(u->pg.ratio2 / tokens - ratio * ratio, 0));
    if (how->sampled_support)
        rlhf_metric_last(h, "policy/out_of_support", (double)u->pg.out_of_support / tokens);
    if (how->critic) report_value(h, m);
}

void rlhf__pg_report(const rlhf_host *h, const struct rlhf__pg_metrics *m,
                     const struct rlhf__pg_report *how) {
    report_rollout(h, &m->rollout, how);
    if (m->rows.n > 0) report_rows(h, &m->rows, how->groups);
    report_update(h, m, how);
}

void rlhf__pg_metrics_reset(struct rlhf__pg_metrics *m) {
    const struct rlhf__pg_metrics old = *m;
    memset(m, 0, sizeof *m);
    m->rows = old.rows;
    m->rows.n = 0;
    m->shard = old.shard;
    m->scratch = old.scratch;
    m->shards = old.shards;
    if (m->shards) memset(m->shard, 0, m->shards * sizeof *m->shard);
    m->last_epoch = -1;
}

void rlhf__pg_metrics_finish(const rlhf_host *h, struct rlhf__pg_metrics *m) {
    h->free(h, m->rows.reward);
    h->free(h, m->rows.judged);
    h->free(h, m->rows.order);
    h->free(h, m->rows.group);
    h->free(h, m->shard);
    h->free(h, m->scratch);
    memset(m, 0, sizeof *m);
}
