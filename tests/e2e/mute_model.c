// mute_model.c: a model that can be opened but offers nothing else: no gradients and no text. It
// has zero parameters and returns zeros.
#include "support/plugin.h"

#include <rlhf/model.h>

struct config {
    int64_t n_embd, vocab_size, n_positions, tensors, says_logp;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, n_embd, 32, 1, 4096, "width"),
    RLHF_OPT_I64(struct config, vocab_size, 260, 1, 100000, "tokens"),
    RLHF_OPT_I64(struct config, n_positions, 64, 1, 4096, "context"),
    RLHF_OPT_I64(struct config, tensors, 0, -9, 0, "parameters"),
    RLHF_OPT_I64(struct config, says_logp, 1, 0, 1, "whether it gives log-probs"),
};

static rlhf_status model_open(void *self, const rlhf_model_open *o) {
    (void)self;
    (void)o;
    return RLHF_OK;
}

static rlhf_status info(void *self, rlhf_model_info *out) {
    const struct config *c = self;
    out->heads = RLHF_HEAD_KL | RLHF_HEAD_HIDDEN | (c->says_logp ? RLHF_HEAD_LOGP : 0);
    out->n_tensors = (int32_t)c->tensors;
#ifndef QUIET
    out->caps |= RLHF_CAP_GENERATE; // not true
#endif
    out->n_vocab = (int32_t)c->vocab_size;
    out->n_ctx = (int32_t)c->n_positions;
    out->d_model = (int32_t)c->n_embd;
    out->causal = 1;
    out->base_prefix = "";
    return RLHF_OK;
}

static rlhf_status param(void *self, uint32_t i, rlhf_param *out) {
    (void)self;
    (void)i;
    (void)out;
    return RLHF_E_INVALID;
}

static rlhf_status refresh(void *self) {
    (void)self;
    return RLHF_OK;
}

static rlhf_status forward(void *self, const rlhf_batch *b, const rlhf_forward *f,
                           const rlhf_heads *out) {
    (void)self;
    (void)b;
    (void)f;
    (void)out;
    return RLHF_OK;
}

#ifdef HALF
static rlhf_status gen_open(void *self, uint32_t n_slots, uint32_t max_len, rlhf_gen **out) {
    (void)self;
    (void)n_slots;
    (void)max_len;
    (void)out;
    return RLHF_OK;
}
#endif

static const rlhf_model_ops ops = {.size = sizeof ops,
                                   .compute_major = RLHF_COMPUTE_MAJOR,
                                   .compute_minor = RLHF_COMPUTE_MINOR,
                                   .open = model_open,
                                   .info = info,
                                   .param = param,
                                   .refresh = refresh,
#ifdef HALF
                                   .gen_open = gen_open, // and no gen_step
#endif
                                   .forward = forward};
TEST_PLUGIN(RLHF_KIND_MODEL, "mute", .summary = "says nothing", TEST_OPTIONS(opts))
