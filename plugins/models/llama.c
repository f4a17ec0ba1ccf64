// llama.so: Llama (Touvron et al. 2023; Dubey et al. 2024) and models with the same architecture
// (SmolLM2, TinyLlama, Mistral without its sliding window), as transformers stores them:
// LlamaForCausalLM, MistralForCausalLM and their *ForSequenceClassification. The arithmetic is in
// transformer/.
#include "transformer/decoder.h"

enum family { LLAMA, MISTRAL };
static const char *const families[] = {"llama", "mistral", NULL};

struct config {
    struct rlhf_tf_decoder common;
    int64_t pretraining_tp, sliding_window;
    int32_t model_type, attention_bias, mlp_bias;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_ENUM(struct config, model_type, LLAMA, families, "which of them it is"),
    RLHF_OPT_TABLE(struct config, common, rlhf_tf_decoder_opts, RLHF_TF_N_DECODER_OPTS),
    RLHF_OPT_BOOL(struct config, attention_bias, 0, "llama: the products of attention have biases"),
    RLHF_OPT_BOOL(struct config, mlp_bias, 0, "llama: the products of the MLP have biases"),
    RLHF_OPT_I64(struct config, pretraining_tp, 1, 0, 1 << 20, "llama: must be 1"),
    RLHF_OPT_I64_OR_NULL(struct config, sliding_window, 4096, 0, 1 << 30,
                         "mistral: must be null, or reach over the whole context"),
};

// Refuses settings that one of the two families has and the other ignores.
static rlhf_status check(const rlhf_host *host, const struct config *c) {
    if (c->model_type == LLAMA && c->pretraining_tp > 1)
        return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                          "config.json: pretraining_tp %lld is not implemented; known: 1",
                          (long long)c->pretraining_tp);
    if (c->model_type == MISTRAL && c->sliding_window &&
        c->sliding_window < c->common.max_position_embeddings)
        return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                          "config.json: sliding_window %lld (4096 if it is missing), shorter than "
                          "max_position_embeddings (%lld), is not implemented; known: null",
                          (long long)c->sliding_window,
                          (long long)c->common.max_position_embeddings);
    if (c->model_type == MISTRAL && c->common.num_key_value_heads < 0)
        return host->fail(host, RLHF_E_INVALID,
                          "config.json: num_key_value_heads is missing; mistral needs it");
    return RLHF_OK;
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const struct config *c = config;
    struct rlhf_tf_arch a;
    RLHF_TRY(check(host, c));
    RLHF_TRY(rlhf_tf_decoder_arch(host, &c->common, 0, &a));
    if (c->model_type == LLAMA)
        a.bias = (c->attention_bias ? RLHF_TF_BIAS_QKV | RLHF_TF_BIAS_PROJ : 0) |
                 (c->mlp_bias ? RLHF_TF_BIAS_MLP : 0);
    return rlhf_tf_create(host, &a, self);
}

static const rlhf_plugin descriptor = {
    .size = sizeof(rlhf_plugin),
    .kind = RLHF_KIND_MODEL,
    .host_minor_min = RLHF_ABI_MINOR,
    .id = "org.rlhf-host.model.llama",
    .version = RLHF_SDK_VERSION,
    .summary = "llama, mistral: causal language model and sequence classifier",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    .opts = opts,
    .n_opts = sizeof opts / sizeof *opts,
    .opt_stride = sizeof *opts,
    .config_size = sizeof(struct config),
    .create = create,
    .destroy = rlhf_tf_destroy,
    .ops = &rlhf_tf_ops,
    .extension = rlhf_tf_extension,
};

RLHF_DEFINE_PLUGIN(descriptor)
