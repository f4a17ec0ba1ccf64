// model.c: a model family on the transformer core. It describes the fields of config.json and the
// names of the tensors. This family is a small decoder with RMS norms, gated MLPs and learned
// positions.
//
// The core implements the arithmetic, the heads, adapters and sampling. struct rlhf_tf_arch in
// rlhf/transformer/core.h lists the building blocks: also rotary positions in all or some layers,
// norms after blocks, norms of queries and keys, grouped heads, factors of embeddings, blocks,
// scores and logits. Things to change: config and its table, the names of the tensors, create(),
// and the id. The host finds the plugin's file by the model_type of config.json.
#include <rlhf/transformer/core.h>

struct config {
    int64_t vocab_size, n_positions, hidden_size, n_layer, n_head, inner_size;
    double norm_eps, initializer_range;
    int32_t tie_word_embeddings, reserved;
};

static const rlhf_opt options[] = {
    RLHF_OPT_I64(struct config, vocab_size, 512, 2, 1 << 24, "number of token ids"),
    RLHF_OPT_I64(struct config, n_positions, 64, 1, 1 << 20, "context length in tokens"),
    RLHF_OPT_I64(struct config, hidden_size, 32, 1, 1 << 15, "width of the residual stream"),
    RLHF_OPT_I64(struct config, n_layer, 2, 1, 1024, "number of layers"),
    RLHF_OPT_I64(struct config, n_head, 2, 1, 1024, "attention heads per layer"),
    RLHF_OPT_I64(struct config, inner_size, 64, 1, 1 << 17, "width of the MLP"),
    RLHF_OPT_F64_ABOVE(struct config, norm_eps, 1e-5, 0, 1, "added to the mean square in norms"),
    RLHF_OPT_F64(struct config, initializer_range, 0.02, 0, 10,
                 "standard deviation of fresh matrices"),
    RLHF_OPT_BOOL(struct config, tie_word_embeddings, 1, "the LM head is the token embedding"),
};

// The names of tensors in the weight files: first those that exist once, then those of each layer.
static const struct rlhf_tf_name globals[] = {
    {RLHF_TF_WTE, RLHF_TF_ALL, "model.tokens.weight"},
    {RLHF_TF_WPE, RLHF_TF_ALL, "model.positions.weight"},
    {RLHF_TF_FINAL_G, RLHF_TF_ALL, "model.norm.weight"},
    {RLHF_TF_LM, RLHF_TF_ALL, "lm_head.weight"},
    {RLHF_TF_SCORE_W, RLHF_TF_ALL, "score.weight"},
    {0, RLHF_TF_ALL, NULL},
};
static const struct rlhf_tf_name layers[] = {
    {RLHF_TF_N1_G, RLHF_TF_ALL, "norm1.weight"}, {RLHF_TF_QKV_W, RLHF_TF_QUERIES, "q.weight"},
    {RLHF_TF_QKV_W, RLHF_TF_KEYS, "k.weight"},   {RLHF_TF_QKV_W, RLHF_TF_VALUES, "v.weight"},
    {RLHF_TF_PROJ_W, RLHF_TF_ALL, "o.weight"},   {RLHF_TF_N2_G, RLHF_TF_ALL, "norm2.weight"},
    {RLHF_TF_FC_W, RLHF_TF_GATE, "gate.weight"}, {RLHF_TF_FC_W, RLHF_TF_UP, "up.weight"},
    {RLHF_TF_OUT_W, RLHF_TF_ALL, "down.weight"}, {0, RLHF_TF_ALL, NULL},
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const struct config *c = config;
    struct rlhf_tf_arch a = {.n_vocab = (int32_t)c->vocab_size,
                             .n_ctx = (int32_t)c->n_positions,
                             .d = (int32_t)c->hidden_size,
                             .n_layer = (int32_t)c->n_layer,
                             .d_inner = (int32_t)c->inner_size,
                             .n_head = (int32_t)c->n_head,
                             .n_kv_head = (int32_t)c->n_head,
                             .head_dim = (int32_t)(c->hidden_size / c->n_head),
                             .norm = RLHF_TF_NORM_RMS,
                             .causal = 1,
                             .act = RLHF_ACT_SILU,
                             .gated = 1,
                             .out_in = 1,
                             .tied = c->tie_word_embeddings,
                             .pooling = RLHF_POOL_LAST,
                             .norm_eps = c->norm_eps,
                             .init_std = c->initializer_range,
                             .layer_prefix = "model.layers.%d.",
                             .base_prefix = "model.",
                             .globals = globals,
                             .layers = layers};
    RLHF_TRY(rlhf_tf_check(host, &a, "hidden_size", "n_head"));
    a.attn_scale = rlhf_tf_attn_scale(&a);
    return rlhf_tf_create(host, &a, self);
}

static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_MODEL,
    .id = "org.example.my_model", // reverse DNS; must be unique
    .version = "1.0.0",
    .summary = "a small decoder with gated MLPs",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = rlhf_tf_destroy,
    .ops = &rlhf_tf_ops,
};
RLHF_DEFINE_PLUGIN(plugin)
