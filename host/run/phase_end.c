// phase_end.c: see phase_end.h.
#include "run/phase_end.h"

#include "learn/algo_call.h"
#include "learn/optim.h"
#include "learn/plan.h"
#include "sample/mixing.h"

#include <math.h>

// Returns the mean over the rows of the sum of logp_old - logp_ref, or NaN for rows of a file and
// without a reference.
static double kl_of(const struct rlhf__phase *p) {
    const struct rlhf__rows *e = &p->x.rows;
    double sum = 0;
    if (!(e->flags & RLHF__DRAWN) || !rlhf__plan_wants_reference(&p->cast->plan) || e->n == 0)
        return NAN;
    for (uint32_t i = 0; i < e->n; i++)
        sum += rlhf__rows_response_sum(e, i, e->token[RLHF__LOGP_OLD], e->token[RLHF__LOGP_REF]);
    return sum / e->n;
}

rlhf_status rlhf__phase_end(const struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__rows *e = &p->x.rows;
    const struct rlhf__learner *l = p->learner;
    const struct rlhf__phase_times *times = &p->report->times;
    rlhf_phase_info info = {.n = e->n,
                            .phase = p->count->phase,
                            .phases = p->count->phases,
                            .steps = l->optim->count.step,
                            .phase_steps = l->steps,
                            .skipped = l->minibatches - l->steps,
                            .tokens = rlhf__rows_response_tokens(e, 0, e->n),
                            .loss = l->minibatches ? l->loss_sum / (double)l->minibatches : 0,
                            .kl = kl_of(p),
                            .rollout_seconds = times->rollout,
                            .reward_seconds = times->reward,
                            .reference_seconds = times->reference,
                            .update_seconds = times->update};
    rlhf__mean_std(e->reward, NULL, NULL, e->n, &info.score, &info.score_std);
    return rlhf__algo_phase_end(p->cast->algo, &info, err);
}
