// distilbert.so: DistilBERT (Sanh et al. 2019) as transformers stores it:
// DistilBertForSequenceClassification. It is an encoder with a norm after each residual sum. The
// score is read at the first token. The arithmetic is in transformer/.
#include "transformer/core.h"

struct config {
    int64_t vocab_size, max_position_embeddings, dim, n_layers, n_heads, hidden_dim;
    const char *activation;
    double initializer_range;
    int32_t sinusoidal_pos_embds;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, vocab_size, 30522, 2, 1 << 24, "number of token ids"),
    RLHF_OPT_I64(struct config, max_position_embeddings, 512, 1, 1 << 20,
                 "context length in tokens"),
    RLHF_OPT_I64(struct config, dim, 768, 1, 1 << 15, "width of the residual stream"),
    RLHF_OPT_I64(struct config, n_layers, 6, 1, 1024, "number of layers"),
    RLHF_OPT_I64(struct config, n_heads, 12, 1, 1024, "attention heads per layer"),
    RLHF_OPT_I64(struct config, hidden_dim, 3072, 1, 1 << 17, "width of the MLP"),
    RLHF_OPT_STR(struct config, activation, "gelu",
                 "gelu, gelu_new, gelu_pytorch_tanh, relu or silu"),
    RLHF_OPT_F64(struct config, initializer_range, 0.02, 0, 10,
                 "standard deviation of fresh matrices"),
    RLHF_OPT_BOOL(struct config, sinusoidal_pos_embds, 0,
                  "must be false: position embeddings are trained"),
};

static const struct rlhf_tf_name globals[] = {
    {RLHF_TF_WTE, RLHF_TF_ALL, "distilbert.embeddings.word_embeddings.weight"},
    {RLHF_TF_WPE, RLHF_TF_ALL, "distilbert.embeddings.position_embeddings.weight"},
    {RLHF_TF_EMB_G, RLHF_TF_ALL, "distilbert.embeddings.LayerNorm.weight"},
    {RLHF_TF_EMB_B, RLHF_TF_ALL, "distilbert.embeddings.LayerNorm.bias"},
    {RLHF_TF_POOL_W, RLHF_TF_ALL, "pre_classifier.weight"},
    {RLHF_TF_POOL_B, RLHF_TF_ALL, "pre_classifier.bias"},
    {RLHF_TF_SCORE_W, RLHF_TF_ALL, "classifier.weight"},
    {RLHF_TF_SCORE_B, RLHF_TF_ALL, "classifier.bias"},
    {0, RLHF_TF_ALL, NULL}};

static const struct rlhf_tf_name layers[] = {
    {RLHF_TF_QKV_W, RLHF_TF_QUERIES, "attention.q_lin.weight"},
    {RLHF_TF_QKV_B, RLHF_TF_QUERIES, "attention.q_lin.bias"},
    {RLHF_TF_QKV_W, RLHF_TF_KEYS, "attention.k_lin.weight"},
    {RLHF_TF_QKV_B, RLHF_TF_KEYS, "attention.k_lin.bias"},
    {RLHF_TF_QKV_W, RLHF_TF_VALUES, "attention.v_lin.weight"},
    {RLHF_TF_QKV_B, RLHF_TF_VALUES, "attention.v_lin.bias"},
    {RLHF_TF_PROJ_W, RLHF_TF_ALL, "attention.out_lin.weight"},
    {RLHF_TF_PROJ_B, RLHF_TF_ALL, "attention.out_lin.bias"},
    {RLHF_TF_N1_G, RLHF_TF_ALL, "sa_layer_norm.weight"},
    {RLHF_TF_N1_B, RLHF_TF_ALL, "sa_layer_norm.bias"},
    {RLHF_TF_FC_W, RLHF_TF_ALL, "ffn.lin1.weight"},
    {RLHF_TF_FC_B, RLHF_TF_ALL, "ffn.lin1.bias"},
    {RLHF_TF_OUT_W, RLHF_TF_ALL, "ffn.lin2.weight"},
    {RLHF_TF_OUT_B, RLHF_TF_ALL, "ffn.lin2.bias"},
    {RLHF_TF_N2_G, RLHF_TF_ALL, "output_layer_norm.weight"},
    {RLHF_TF_N2_B, RLHF_TF_ALL, "output_layer_norm.bias"},
    {0, RLHF_TF_ALL, NULL}};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const struct config *c = config;
    struct rlhf_tf_arch a = {.n_vocab = (int32_t)c->vocab_size,
                             .n_ctx = (int32_t)c->max_position_embeddings,
                             .d = (int32_t)c->dim,
                             .n_layer = (int32_t)c->n_layers,
                             .n_head = (int32_t)c->n_heads,
                             .n_kv_head = (int32_t)c->n_heads,
                             .head_dim = (int32_t)(c->dim / c->n_heads),
                             .d_inner = (int32_t)c->hidden_dim,
                             .norm_at = RLHF_TF_NORM_SUMS,
                             .bias = RLHF_TF_BIAS_ALL,
                             .out_in = 1,
                             .score_hidden = 1,
                             .score_bias = 1,
                             .pooling = RLHF_POOL_FIRST,
                             .norm_eps = 1e-12,
                             .init_std = c->initializer_range,
                             .layer_prefix = "distilbert.transformer.layer.%d.",
                             .base_prefix = "distilbert.",
                             .globals = globals,
                             .layers = layers};
    RLHF_TRY(rlhf_tf_activation(host, "activation", c->activation, &a.act));
    if (c->sinusoidal_pos_embds)
        return host->fail(host, RLHF_E_UNSUPPORTED,
                          "config.json: sinusoidal_pos_embds true is not implemented");
    RLHF_TRY(rlhf_tf_check(host, &a, "dim", "n_heads"));
    a.attn_scale = rlhf_tf_attn_scale(&a);
    return rlhf_tf_create(host, &a, self);
}

static const rlhf_plugin descriptor = {
    .id = "org.rlhf-host.model.distilbert",
    .version = RLHF_SDK_VERSION,
    .summary = "DistilBERT: sequence classifier",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_TF_PLUGIN(struct config, opts, create),
};

RLHF_DEFINE_PLUGIN(descriptor)
