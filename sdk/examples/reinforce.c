// reinforce.c: REINFORCE (Williams 1992) with the batch mean as its baseline, and nothing else:
//
//   A_i = R_i - mean R        L = -(1/N) sum_i sum_t A_i log p(token t of row i)
//
// N is the number of response tokens of the whole minibatch, so that L does not depend on how the
// host splits the minibatch into microbatches.
#include <rlhf/algo.h>

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    (void)self;
    (void)info;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP;
    out->epochs = out->minibatches = out->group_size = 1;
    return RLHF_OK;
}

// The response tokens of row i: from *begin up to the returned index.
static int32_t response(const int32_t *offset, const int32_t *prompt_len, uint32_t i,
                        int32_t *begin) {
    *begin = offset[i] + prompt_len[i];
    return offset[i + 1];
}

static rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    double mean = 0;
    int32_t t;
    (void)self;
    for (uint32_t i = 0; i < in->n; i++)
        mean += (double)in->score[i] / (double)in->n;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t end = response(in->offset, in->prompt_len, i, &t); t < end; t++)
            out->advantage[t] = (float)((double)in->score[i] - mean);
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    int32_t t;
    (void)self;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t end = response(in->offset, in->prompt_len, i, &t); t < end; t++) {
            const double w = (double)in->advantage[t] / (double)in->batch_tokens;
            out->loss -= w * (double)in->heads->logp[t];
            out->d_heads->logp[t] = (float)-w;
        }
    return RLHF_OK;
}

static const rlhf_algo_ops ops = {
    .size = sizeof ops, .plan = plan, .advantages = advantages, .loss = loss};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.example.reinforce",
    .version = "1.0.0",
    .summary = "REINFORCE with the batch mean as its baseline",
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
