// phase_supervised.c: one optimiser step on rows of text, rlhf__phase_supervised of trainer.h.
#include "train/trainer.h"

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
    return RLHF_OK;
}
