// flops.c: see flops.h.
#include "learn/flops.h"

// Operations per token.
static double lm_head(const struct rlhf__model *m) {
    return m->info.causal ? 2 * (double)m->info.d_model * (double)m->info.n_vocab : 0;
}

double rlhf__lm_head_flops(const struct rlhf__model *model, const rlhf_batch *full) {
    int64_t responses = 0;
    for (uint32_t i = 0; i < full->n; i++)
        responses += full->offset[i + 1] - full->offset[i] - full->prompt_len[i];
    return lm_head(model) * (double)responses;
}

double rlhf__train_ways(const struct rlhf__model *model, int32_t train) {
    if (!train) return 1;
    for (uint32_t i = 0; i < model->n_tensors; i++)
        if (model->params[i].group == RLHF_PARAM_ADAPTER) return 2;
    return 3;
}

double rlhf__forward_flops(const struct rlhf__model *model, uint32_t heads, int64_t tokens,
                           const rlhf_batch *full) {
    double layers = ((double)model->info.flops_per_token - lm_head(model)) * (double)tokens;
    uint32_t logits = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL;
    return heads & logits ? layers + rlhf__lm_head_flops(model, full) : layers;
}
