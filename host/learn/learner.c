// learner.c: see learner.h.
#include "learn/learner.h"

#include "base/clock.h"
#include "learn/microbatch.h"
#include "learn/shards.h"
#include "model/compute.h"
#include "supervise/tail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t rlhf__row_use_count(const struct rlhf__rows *e, int use) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n; i++)
        n += e->use[i] == use;
    return n;
}

// Returns the divisor of a loss: the number of response tokens in the loss, without those of
// excluded rows.
static int64_t unmasked_tokens(const struct rlhf__rows *e) {
    int64_t tokens = 0;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->use[i] != RLHF_USE_EXCLUDED) tokens += rlhf__rows_loss_tokens(e, i, i + 1);
    return tokens;
}

// List the rows of e that run as rows with this use (enum rlhf_row_use), in order, and return how
// many they are. If groups must stay together, a row without a gradient runs with the rows of its
// group that train. `pick` may be NULL.
static uint32_t rows_that_run(const struct rlhf__rows *e, int use, uint32_t *pick) {
    const int whole = (e->flags & RLHF__WHOLE_GROUPS) != 0;
    uint32_t n = 0;
    for (uint32_t i = 0, end; i < e->n; i = end) {
        int trains = 0;
        end = whole ? rlhf__rows_group_end(e, i) : i + 1;
        for (uint32_t k = i; k < end; k++)
            trains |= e->use[k] == RLHF_USE_TRAINS;
        for (uint32_t k = i; k < end; k++) {
            const int moved = trains && e->use[k] == RLHF_USE_NO_GRADIENT;
            if ((moved ? RLHF_USE_TRAINS : e->use[k]) != use) continue;
            if (pick) pick[n] = k;
            n++;
        }
    }
    return n;
}

// Copy the rows of e that run as rows with this use to *part.
static rlhf_status pick_use(const struct rlhf__rows *e, int use, struct rlhf__rows *part,
                            struct rlhf__error *err) {
    uint32_t *pick = calloc((size_t)e->n + 1, sizeof *pick);
    if (!pick) return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    const uint32_t n = rows_that_run(e, use, pick);
    rlhf_status st = rlhf__rows_pick(part, e, pick, n, err);
    free(pick);
    return st;
}

rlhf_status rlhf__row_use_check(const rlhf_head_arrays *d, const struct rlhf__rows *e,
                                uint32_t from, uint32_t to, struct rlhf__error *err) {
    const float *const heads[] = {d->logp, d->entropy, d->kl, d->value};
    const int32_t base = e->offset[from];
    for (uint32_t i = from; i < to; i++) {
        if (e->use[i] != RLHF_USE_NO_GRADIENT) continue;
        for (size_t k = 0; k < sizeof heads / sizeof *heads; k++)
            for (int32_t t = e->offset[i] - base; heads[k] && t < e->offset[i + 1] - base; t++)
                if (!(heads[k][t] == 0))
                    return rlhf__fail(err, RLHF_E_INTERNAL,
                                      "loss() gives the derivative %g to a row that advantages() "
                                      "called RLHF_USE_NO_GRADIENT",
                                      (double)heads[k][t]);
    }
    return RLHF_OK;
}

double rlhf__row_tally_saved(const struct rlhf__row_tally *b) {
    const double still = (double)b->tokens[RLHF_USE_NO_GRADIENT];
    const double masked = (double)b->tokens[RLHF_USE_EXCLUDED];
    double forward; // seconds per token
    if (still > 0)
        forward = b->seconds[RLHF_USE_NO_GRADIENT] / still;
    else if (b->timed > 0)
        forward = b->seconds[RLHF_USE_TRAINS] / (3 * (double)b->timed);
    else
        return -1;
    return forward * (2 * still + 3 * masked);
}

static int grow(float **p, size_t n, int wanted) {
    if (!wanted) return 1;
    float *q = realloc(*p, n * sizeof *q + RLHF__TAIL);
    if (!q) return 0;
    *p = q;
    return 1;
}

rlhf_status rlhf__head_store_reserve(struct rlhf__head_store *s, uint32_t heads, size_t rows,
                                     size_t tokens, int32_t n_labels, struct rlhf__error *err) {
    s->heads.size = sizeof s->heads;
    if (s->tokens >= tokens && s->rows >= rows) return RLHF_OK;
    if (tokens < s->tokens) tokens = s->tokens;
    if (rows < s->rows) rows = s->rows;
    if (!grow(&s->heads.logp, tokens, heads & RLHF_HEAD_LOGP) ||
        !grow(&s->heads.entropy, tokens, heads & RLHF_HEAD_ENTROPY) ||
        !grow(&s->heads.kl, tokens, heads & RLHF_HEAD_KL) ||
        !grow(&s->heads.value, tokens, heads & RLHF_HEAD_VALUE) ||
        !grow(&s->heads.token_score, tokens, heads & RLHF_HEAD_TOKEN_SCORE) ||
        !grow(&s->heads.score, rows * (size_t)n_labels, heads & RLHF_HEAD_SCORE))
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu tokens", tokens);
    s->tokens = tokens;
    s->rows = rows;
    return RLHF_OK;
}

rlhf_head_arrays rlhf__head_store_arrays(const struct rlhf__head_store *s) {
    return (rlhf_head_arrays){.logp = s->heads.logp,
                              .entropy = s->heads.entropy,
                              .kl = s->heads.kl,
                              .value = s->heads.value,
                              .score = s->heads.score};
}

void rlhf__head_store_clear(struct rlhf__head_store *s, size_t rows, size_t tokens,
                            int32_t n_labels) {
    if (s->heads.logp) memset(s->heads.logp, 0, tokens * sizeof(float));
    if (s->heads.entropy) memset(s->heads.entropy, 0, tokens * sizeof(float));
    if (s->heads.kl) memset(s->heads.kl, 0, tokens * sizeof(float));
    if (s->heads.value) memset(s->heads.value, 0, tokens * sizeof(float));
    if (s->heads.token_score) memset(s->heads.token_score, 0, tokens * sizeof(float));
    if (s->heads.score) memset(s->heads.score, 0, rows * (size_t)n_labels * sizeof(float));
}

static void head_store_finish(struct rlhf__head_store *s) {
    free(s->heads.logp);
    free(s->heads.entropy);
    free(s->heads.kl);
    free(s->heads.value);
    free(s->heads.token_score);
    free(s->heads.score);
    memset(s, 0, sizeof *s);
}

void rlhf__learner_finish(struct rlhf__learner *l) {
    head_store_finish(&l->out);
    head_store_finish(&l->grad);
    head_store_finish(&l->compact);
    rlhf__shared_batch_finish(&l->batch);
    rlhf__shards_close(l->shards);
    l->shards = NULL;
    free(l->hidden);
    l->hidden = NULL;
    l->hidden_cap = 0;
}

void rlhf__learner_begin(struct rlhf__learner *l) {
    l->loss_sum = l->norm_sum = l->clipped_sum = 0;
    l->norm_first = l->norm_max = 0;
    l->minibatches = l->steps = l->tokens = l->compared = 0;
    l->asked = 0;
    l->fall_sum = 0;
    l->fall_tokens = 0;
    l->more = 0;
    l->flops = l->difference_sum = l->difference_max = 0;
    l->tally = (struct rlhf__row_tally){0};
    l->odd = (struct rlhf__odd_rows){0};
}

void rlhf__learner_expect(struct rlhf__learner *l, uint32_t minibatches, int64_t rows,
                          int compare) {
    l->epoch_minibatches = minibatches;
    l->rows = 0;
    l->rows_all = rows;
    l->comparing = compare;
}

// Returns 1 unless row i was sampled with weights that are older than the current ones.
static int is_own(const struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t i) {
    return !(e->flags & RLHF__DRAWN) || e->version[i] == l->optim->count.step;
}

void rlhf__learner_compare(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t from,
                           uint32_t to, const float *sampled, const float *again) {
    int32_t base = e->offset[from];
    for (uint32_t i = from; i < to; i++)
        for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++) {
            if (!rlhf__rows_is_response(e, k) || !is_own(l, e, i)) continue;
            double d = fabs((double)sampled[k - base] - (double)again[k - base]);
            l->difference_sum += d;
            if (d > l->difference_max || isnan(d)) l->difference_max = d;
            l->compared++;
        }
}

// Run the rows in microbatches.
static rlhf_status all_rows(struct rlhf__learner *l, const struct rlhf__rows *e,
                            struct rlhf__place *p, struct rlhf__error *err) {
    rlhf_status st = rlhf__microbatch_reserve(l, e, err);
    for (uint32_t from = 0, to; st == RLHF_OK && from < e->n; from = to) {
        to = rlhf__rows_slice_end(e, from, l->microbatch_tokens, rlhf__microbatch_shares(l, e));
        p->is_last = p->train && to == e->n;
        if (l->abandons && *l->abandons)
            return rlhf__fail(err, RLHF_E_CANCELLED, "stopped between two microbatches");
        st = rlhf__microbatch(l, e, from, to, p, err);
        rlhf__watch_seen(l->watch, "update", l->rows + to, l->rows_all);
    }
    l->rows += e->n;
    return st;
}

// Run the rows, shard by shard if there are shards.
static rlhf_status run_rows(struct rlhf__learner *l, const struct rlhf__rows *e,
                            struct rlhf__place *p, struct rlhf__error *err) {
    if (!l->shards) return all_rows(l, e, p, err);
    return rlhf__shards_rows(l, e, rlhf__microbatch_shares(l, e), p, all_rows, err);
}

// Run the rows of e that run as rows with this use (enum rlhf_row_use). Waits for the device, so
// that the measured time is the time of exactly these rows.
static rlhf_status rows_of(struct rlhf__learner *l, const struct rlhf__rows *e, int use,
                           struct rlhf__place *p, struct rlhf__error *err) {
    const rlhf_compute *t = l->model->compute;
    const double from = rlhf__seconds();
    struct rlhf__rows part = {0};
    rlhf_status st = pick_use(e, use, &part, err);
    p->train = use == RLHF_USE_TRAINS;
    if (st == RLHF_OK) st = run_rows(l, &part, p, err);
    if (st == RLHF_OK) {
        st = t->sync(t->ctx);
        if (st != RLHF_OK)
            st = rlhf__compute_fail(rlhf__model_kernels(l->model), st, "gradients", err);
    }
    l->tally.seconds[use] += rlhf__seconds() - from;
    if (p->train) l->tally.timed += rlhf__rows_response_tokens(&part, 0, part.n);
    rlhf__rows_finish(&part);
    return st;
}

// Called if all rows of a phase's first minibatch are excluded. Compares the rows' log-probs from
// sampling with those of a forward pass without a loss. This must be done now, because the step
// that follows changes the weights that sampled the rows.
static rlhf_status compare_masked(struct rlhf__learner *l, const struct rlhf__rows *e,
                                  struct rlhf__place *p, struct rlhf__error *err) {
    const struct rlhf__rows none = {0};
    if (l->shards) RLHF_TRY(run_rows(l, &none, p, err)); // adds only gradients of 0
    p->train = 0;
    p->only_compares = 1;
    return run_rows(l, e, p, err);
}

// Compute the gradients of all rows. *loss receives the algorithm's loss.
static rlhf_status gradients(struct rlhf__learner *l, const struct rlhf__rows *e, uint32_t epoch,
                             uint32_t minibatch, double *loss, struct rlhf__error *err) {
    struct rlhf__place p = {.epoch = epoch, .minibatch = minibatch, .train = 1};
    const uint32_t train = rows_that_run(e, RLHF_USE_TRAINS, NULL);
    const uint32_t masked = rlhf__row_use_count(e, RLHF_USE_EXCLUDED);
    rlhf_status st = RLHF_OK;
    const int64_t first = l->rows;
    l->batch_sequences = e->n;
    l->batch_tokens = unmasked_tokens(e);
    for (uint32_t i = 0; i < e->n; i++) {
        if (e->label[i] < 0) continue; // mismatched: only measured, not trained on
        l->tally.rows[e->use[i]]++;
        l->tally.tokens[e->use[i]] += rlhf__rows_response_tokens(e, i, i + 1);
    }
    if (l->shards) rlhf__shards_begin(l, e);
    if (train == e->n) {
        st = run_rows(l, e, &p, err);
    } else if (masked == e->n && l->comparing) {
        st = compare_masked(l, e, &p, err);
    } else {
        l->rows += masked;
        st = rows_of(l, e, RLHF_USE_TRAINS, &p, err);
        if (st == RLHF_OK) st = rows_of(l, e, RLHF_USE_NO_GRADIENT, &p, err);
    }
    if (l->shards) {
        st = rlhf__shards_end(l, e, &p, st, err);
        l->rows = first + e->n; // including the rows of other processes
    }
    *loss = p.loss;
    return st;
}

// Sets *late to 1 if the policy's new values must still be received, otherwise to 0.
static rlhf_status step(struct rlhf__learner *l, double loss, double lr_factor, int *late,
                        struct rlhf__error *err) {
    struct rlhf__optim_report r, rc = {.skipped = 1};
    l->last_loss = loss;
    *late = rlhf__shards_plan_late(l);
    rlhf_status st = rlhf__optim_step(l->optim, lr_factor, isfinite(loss), &r, err);
    if (st == RLHF_OK && l->critic)
        st = rlhf__optim_step(l->critic_optim, lr_factor, isfinite(loss), &rc, err);
    if (st == RLHF_OK && !rc.skipped) st = rlhf__model_refresh(l->critic, err);
    if (st != RLHF_OK) return st;
    l->last = r;
    l->comparing = 0;
    l->minibatches++;
    l->loss_sum += loss;
    *late = *late && !r.skipped;
    if (r.skipped) return RLHF_OK; // the weights have not changed
    if (l->norm_first == 0) l->norm_first = r.grad_norm;
    if (r.grad_norm > l->norm_max) l->norm_max = r.grad_norm;
    l->steps++;
    l->norm_sum += r.grad_norm;
    l->clipped_sum += r.grad_norm_clipped;
    return *late ? RLHF_OK : rlhf__model_refresh(l->model, err);
}

static rlhf_status tell(const struct rlhf__learner *l, uint32_t epoch, uint32_t minibatch,
                        double lr_factor, int32_t *stop, struct rlhf__error *err) {
    rlhf_step_info info = {.epoch = epoch,
                           .minibatch = minibatch,
                           .skipped = l->last.skipped != 0,
                           .phase = l->phase,
                           .loss = l->last_loss,
                           .grad_norm = l->last.grad_norm,
                           .grad_norm_clipped = l->last.grad_norm_clipped,
                           .lr = l->optim->config.lr * lr_factor,
                           .lr_factor = lr_factor,
                           .steps = l->optim->count.step};
    if (!l->objective.stepped) return RLHF_OK;
    return l->objective.stepped(l->objective.self, &info, stop, err);
}

rlhf_status rlhf__learner_minibatch(struct rlhf__learner *l, const struct rlhf__rows *e,
                                    uint32_t epoch, uint32_t minibatch, double lr_factor,
                                    int32_t *stop, struct rlhf__error *err) {
    double loss;
    int late;
    *stop = 0;
    RLHF_TRY(gradients(l, e, epoch, minibatch, &loss, err));
    rlhf_status st = step(l, loss, lr_factor, &late, err);
    if (st == RLHF_OK) st = tell(l, epoch, minibatch, lr_factor, stop, err);
    if (!late) return st;
    // Exchange the values even if this process has failed, because the other processes wait for
    // them.
    struct rlhf__error unsaid;
    const rlhf_status renewed =
        rlhf__shards_renew(l, st != RLHF_OK || *stop, st == RLHF_OK ? err : &unsaid);
    return st == RLHF_OK ? renewed : st;
}

rlhf_status rlhf__learner_settle(struct rlhf__learner *l, struct rlhf__error *err) {
    return rlhf__shards_settle(l, err);
}
