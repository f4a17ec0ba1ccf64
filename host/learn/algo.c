// algo.c: see algo.h.
#include "learn/algo.h"

rlhf_status rlhf__algo_advantages(const struct rlhf__instance *algo, const rlhf_rollout *r,
                                  struct rlhf__error *err) {
    struct rlhf__call call = rlhf__call_begin(algo, "advantages()");
    return rlhf__call_end(&call, algo->plugin->ops.algo.advantages(algo->self, r), err);
}

static rlhf_status algo_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                             struct rlhf__error *err) {
    const struct rlhf__instance *algo = self;
    struct rlhf__call call = rlhf__call_begin(algo, "loss()");
    return rlhf__call_end(&call, algo->plugin->ops.algo.loss(algo->self, in, out), err);
}

static rlhf_status algo_stepped(void *self, const rlhf_step_info *info, int32_t *stop,
                                struct rlhf__error *err) {
    const struct rlhf__instance *algo = self;
    const rlhf_algo_ops *ops = &algo->plugin->ops.algo;
    if (!ops->minibatch_end) return RLHF_OK;
    struct rlhf__call call = rlhf__call_begin(algo, "minibatch_end()");
    return rlhf__call_end(&call, ops->minibatch_end(algo->self, info, stop), err);
}

struct rlhf__objective rlhf__algo_objective(struct rlhf__instance *algo) {
    return (struct rlhf__objective){algo_loss, algo_stepped, algo};
}

rlhf_status rlhf__algo_phase_end(const struct rlhf__instance *algo, int64_t phase,
                                 struct rlhf__error *err) {
    const rlhf_algo_ops *ops = &algo->plugin->ops.algo;
    if (!ops->phase_end) return RLHF_OK;
    struct rlhf__call call = rlhf__call_begin(algo, "phase_end()");
    return rlhf__call_end(&call, ops->phase_end(algo->self, phase), err);
}
