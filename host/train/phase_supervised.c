// phase_supervised.c: one optimiser step on rows of text, rlhf__phase_supervised of trainer.h.
#include "train/evaluate.h"
#include "train/trainer.h"

// Held-out rows, when their turn comes: every data.eval_every phases and after the last one.
static rlhf_status evaluate(struct rlhf__trainer *t, struct rlhf__error *err) {
    int64_t every = t->config->data.eval_every, done = t->phase + 1;
    if (!t->held_out || ((every == 0 || done % every != 0) && done != t->phases)) return RLHF_OK;
    rlhf__progress_note(t->progress, "evaluation");
    if (t->plan.source == RLHF_SOURCE_LABELLED) {
        struct rlhf__label_quality q;
        rlhf_status st = rlhf__evaluate_labels(t->policy, t->held_out, t->max_tokens, &q, err);
        if (st != RLHF_OK) return st;
        rlhf__metrics_set(t->metrics, "eval/accuracy", (double)q.correct / (double)q.rows);
        rlhf__metrics_set(t->metrics, "eval/loss", q.nats / (double)q.rows);
        rlhf__logf(t->log, RLHF_LOG_INFO, "held-out accuracy %.4f after %lld phases",
                   (double)q.correct / (double)q.rows, (long long)done);
        return RLHF_OK;
    }
    struct rlhf__text_quality q;
    rlhf_status st = rlhf__evaluate_text(t->policy, t->held_out, &q, err);
    if (st != RLHF_OK) return st;
    rlhf__metrics_set(t->metrics, "eval/bits_per_byte", rlhf__bits_per_byte(&q));
    rlhf__metrics_set(t->metrics, "eval/loss", q.nats / (double)q.tokens);
    rlhf__logf(t->log, RLHF_LOG_INFO, "held-out bits per byte %.4f after %lld phases",
               rlhf__bits_per_byte(&q), (long long)done);
    return RLHF_OK;
}

rlhf_status rlhf__phase_supervised(struct rlhf__trainer *t, struct rlhf__error *err) {
    struct rlhf__episodes e = {0};
    rlhf_status st = rlhf__text_source_next(&t->source, &e, err);
    double from = rlhf__seconds();
    if (st == RLHF_OK)
        st = rlhf__learner_minibatch(&t->learner, &e, 0, 0, rlhf__trainer_lr_factor(t), err);
    double rows = (double)e.n;
    t->episodes += e.n;
    rlhf__episodes_finish(&e);
    int32_t stop = 0;
    if (st == RLHF_OK) st = rlhf__algo_minibatch_end(t, &stop, err);
    t->times.update += rlhf__seconds() - from;
    if (st != RLHF_OK) return st;
    rlhf__metrics_set(t->metrics, "epoch", rlhf__text_source_epoch(&t->source));
    rlhf__metrics_set(t->metrics, "val/sequence_lengths", (double)t->learner.tokens / rows);
    return evaluate(t, err);
}
