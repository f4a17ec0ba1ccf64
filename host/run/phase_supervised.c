// phase_supervised.c: one optimiser step on rows of a file, rlhf__phase_supervised of run.h.
#include "learn/evaluate.h"
#include "run/reference.h"
#include "run/run.h"

struct rlhf__order *rlhf__supervised_order(struct rlhf__run *t) {
    return t->preferences.set ? &t->preferences.batches.order : &t->source.batches.order;
}

static rlhf_status evaluate_labels(struct rlhf__run *t, struct rlhf__error *err) {
    struct rlhf__label_quality q;
    rlhf_status st = rlhf__evaluate_labels(t->cast.policy, t->held_out, t->max_tokens, &q, err);
    if (st != RLHF_OK) return st;
    rlhf__metrics_set(t->report.metrics, "eval/accuracy", (double)q.correct / (double)q.rows);
    rlhf__metrics_set(t->report.metrics, "eval/loss", q.nats / (double)q.rows);
    rlhf__logf(t->report.log, RLHF_LOG_INFO, "held-out accuracy %.4f after %lld phases",
               (double)q.correct / (double)q.rows, (long long)t->count.phase + 1);
    return RLHF_OK;
}

static rlhf_status evaluate_text(struct rlhf__run *t, struct rlhf__error *err) {
    struct rlhf__text_quality q;
    rlhf_status st = rlhf__evaluate_text(t->cast.policy, t->held_out, &q, err);
    if (st != RLHF_OK) return st;
    rlhf__metrics_set(t->report.metrics, "eval/bits_per_byte", rlhf__bits_per_byte(&q));
    rlhf__metrics_set(t->report.metrics, "eval/loss", q.nats / (double)q.tokens);
    rlhf__logf(t->report.log, RLHF_LOG_INFO, "held-out bits per byte %.4f after %lld phases",
               rlhf__bits_per_byte(&q), (long long)t->count.phase + 1);
    return RLHF_OK;
}

static rlhf_status evaluate_pairs(struct rlhf__run *t, struct rlhf__error *err) {
    struct rlhf__preference_quality q;
    rlhf_status st;
    if (t->reward_training) {
        struct rlhf__reward_model rm = {t->cast.policy, t->reward_training->written};
        st = rlhf__evaluate_preferences(&rm, t->held_out_pairs, &q, err);
    } else {
        st = rlhf__evaluate_policy_preferences(t->cast.policy, t->cast.reference, t->held_out_pairs,
                                               &q, err);
    }
    if (st != RLHF_OK) return st;
    double rows = (double)q.rows;
    rlhf__metrics_set(t->report.metrics, "eval/accuracy", (double)q.correct / rows);
    rlhf__metrics_set(t->report.metrics, "eval/margin", q.margin / rows);
    // The loss of a policy is its algorithm's own.
    if (t->reward_training) rlhf__metrics_set(t->report.metrics, "eval/loss", q.nats / rows);
    rlhf__logf(t->report.log, RLHF_LOG_INFO, "held-out accuracy %.4f after %lld phases",
               (double)q.correct / rows, (long long)t->count.phase + 1);
    return RLHF_OK;
}

// Gain and bias: before the first step as the head starts, then what they are fitted to.
static rlhf_status report_head(struct rlhf__run *t, int due, struct rlhf__error *err) {
    struct rlhf__reward_training *r = t->reward_training;
    if (!r || r->samples.n == 0 || (!due && t->count.phase > 0)) return RLHF_OK;
    rlhf_status st = due ? rlhf__reward_training_fit(r, t->count.phase + 1, err) : RLHF_OK;
    const struct rlhf__reward_head *h = due ? &r->written : &r->head;
    if (st != RLHF_OK) return st;
    rlhf__metrics_set(t->report.metrics, "reward_model/gain", h->gain);
    rlhf__metrics_set(t->report.metrics, "reward_model/bias", h->bias);
    return RLHF_OK;
}

// Held-out rows, when their turn comes: every data.eval_every phases and after the last one.
static rlhf_status evaluate(struct rlhf__run *t, struct rlhf__error *err) {
    int64_t every = t->config->data.eval_every, done = t->count.phase + 1;
    int due = (every > 0 && done % every == 0) || done == t->count.phases;
    rlhf_status st = report_head(t, due, err);
    if (st != RLHF_OK || !due || (!t->held_out && !t->held_out_pairs)) return st;
    rlhf__progress_note(t->report.progress, "evaluation");
    if (t->held_out_pairs) return evaluate_pairs(t, err);
    return t->cast.plan.source == RLHF_SOURCE_LABELLED ? evaluate_labels(t, err)
                                                       : evaluate_text(t, err);
}

rlhf_status rlhf__phase_supervised(struct rlhf__run *t, struct rlhf__error *err) {
    struct rlhf__episodes e = {0};
    rlhf_status st = t->preferences.set ? rlhf__preference_source_next(&t->preferences, &e, err)
                                        : rlhf__text_source_next(&t->source, &e, err);
    double began = rlhf__seconds();
    if (st == RLHF_OK) st = rlhf__reference_pass(t, &e, err);
    double from = rlhf__seconds();
    t->report.times.reference = from - began;
    int32_t stop; // there is no second minibatch
    t->learner.rows = 0;
    t->learner.rows_all = e.n;
    if (st == RLHF_OK)
        st = rlhf__learner_minibatch(&t->learner, &e, 0, 0, rlhf__run_lr_factor(t), &stop, err);
    double rows = (double)e.n, tokens = (double)e.total;
    t->count.sequences += e.n;
    rlhf__episodes_finish(&e);
    t->report.times.update += rlhf__seconds() - from;
    if (st != RLHF_OK) return st;
    rlhf__metrics_set(t->report.metrics, "epoch", rlhf__order_epoch(rlhf__supervised_order(t)));
    rlhf__metrics_set(t->report.metrics, "val/sequence_lengths", tokens / rows);
    return evaluate(t, err);
}
