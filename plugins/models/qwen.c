// qwen.so: Qwen2, Qwen2.5 (Yang et al. 2024) and dense Qwen3 (2025) as transformers stores them:
// Qwen2ForCausalLM, Qwen3ForCausalLM and their *ForSequenceClassification. The arithmetic is in
// transformer/.
#include "transformer/decoder.h"

enum family { QWEN2, QWEN3 };
static const char *const families[] = {"qwen2", "qwen3", NULL};
static const char *const layer_types[] = {"full_attention", NULL};

struct config {
    struct rlhf_tf_decoder common;
    int64_t sliding_window, max_window_layers;
    int32_t model_type, attention_bias, use_sliding_window, layer_type;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_ENUM(struct config, model_type, QWEN2, families, "which of them it is"),
    RLHF_OPT_TABLE(struct config, common, rlhf_tf_decoder_opts, RLHF_TF_N_DECODER_OPTS),
    RLHF_OPT_BOOL(struct config, attention_bias, 0, "qwen3: the products of attention have biases"),
    RLHF_OPT_BOOL(struct config, use_sliding_window, 0, "layers have a window"),
    RLHF_OPT_I64_OR_NULL(struct config, sliding_window, 4096, 0, 1 << 30, "reach of such a layer"),
    RLHF_OPT_I64(struct config, max_window_layers, 28, 0, 1 << 20, "layers before the first such"),
    {.key = "layer_types[]",
     .help = "what each layer reads",
     .type = RLHF_T_ENUM,
     .offset = offsetof(struct config, layer_type),
     .choices = layer_types},
};

static rlhf_status check(const rlhf_host *host, const struct config *c) {
    if (c->use_sliding_window && c->sliding_window &&
        c->max_window_layers < c->common.num_hidden_layers &&
        c->sliding_window < c->common.max_position_embeddings)
        return rlhf_failf(
            host, RLHF_E_UNSUPPORTED,
            "config.json: use_sliding_window true, with a sliding_window of %lld from "
            "layer %lld, is not implemented",
            (long long)c->sliding_window, (long long)c->max_window_layers);
    if (c->common.num_key_value_heads < 0)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "config.json: num_key_value_heads is missing; %s needs it",
                          families[c->model_type]);
    return RLHF_OK;
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const struct config *c = config;
    const int32_t three = c->model_type == QWEN3;
    struct rlhf_tf_arch a;
    RLHF_TRY(check(host, c));
    RLHF_TRY(rlhf_tf_decoder_arch(host, &c->common, three ? 128 : 0, &a));
    a.bias =
        three ? (c->attention_bias ? RLHF_TF_BIAS_QKV | RLHF_TF_BIAS_PROJ : 0) : RLHF_TF_BIAS_QKV;
    a.head_norm = three;
    return rlhf_tf_create(host, &a, self);
}

static const rlhf_plugin descriptor = {
    .size = sizeof(rlhf_plugin),
    .kind = RLHF_KIND_MODEL,
    .host_minor_min = RLHF_ABI_MINOR,
    .id = "org.rlhf-host.model.qwen",
    .version = RLHF_SDK_VERSION,
    .summary = "qwen2, qwen3: causal language model and sequence classifier",
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
