// gpt2.so: GPT-2 (Radford et al. 2019) as transformers stores it: GPT2LMHeadModel and
// GPT2ForSequenceClassification. The arithmetic is in transformer/.
#include "transformer/core.h"

enum pooling_choice { POOL_DEFAULT, POOL_MEAN, POOL_FIRST, POOL_LAST };
static const char *const pooling_names[] = {"default", "mean", "first", "last", NULL};

struct config {
    int64_t vocab_size, n_positions, n_embd, n_layer, n_head, n_inner, pad_token_id;
    const char *activation_function;
    double layer_norm_epsilon, initializer_range;
    int32_t tie_word_embeddings, scale_attn_weights;
    int32_t scale_attn_by_inverse_layer_idx, add_cross_attention;
    int32_t rlhf_pooling;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, vocab_size, 50257, 2, 1 << 24, "number of token ids"),
    RLHF_OPT_I64(struct config, n_positions, 1024, 1, 1 << 20, "context length in tokens"),
    RLHF_OPT_I64(struct config, n_embd, 768, 1, 1 << 15, "width of the residual stream"),
    RLHF_OPT_I64(struct config, n_layer, 12, 1, 1024, "number of layers"),
    RLHF_OPT_I64(struct config, n_head, 12, 1, 1024, "attention heads per layer"),
    RLHF_OPT_I64(struct config, n_inner, 0, 0, 1 << 17, "width of the MLP; 0 or null: 4 n_embd"),
    RLHF_OPT_I64(struct config, pad_token_id, -1, INT32_MIN, INT32_MAX,
                 "the score head reads the last token that is not this one"),
    RLHF_OPT_STR(struct config, activation_function, "gelu_new",
                 "gelu_new, gelu_pytorch_tanh, gelu, relu or silu"),
    RLHF_OPT_F64_ABOVE(struct config, layer_norm_epsilon, 1e-5, 0, 1,
                       "added to the variance in norms"),
    RLHF_OPT_F64(struct config, initializer_range, 0.02, 0, 10,
                 "standard deviation of fresh matrices"),
    RLHF_OPT_BOOL(struct config, tie_word_embeddings, 1, "the LM head is the token embedding"),
    RLHF_OPT_BOOL(struct config, scale_attn_weights, 1, "divide scores by sqrt(head width)"),
    RLHF_OPT_BOOL(struct config, scale_attn_by_inverse_layer_idx, 0,
                  "also divide scores by layer index + 1"),
    RLHF_OPT_BOOL(struct config, add_cross_attention, 0, "must be false"),
    RLHF_OPT_ENUM(struct config, rlhf_pooling, POOL_DEFAULT, pooling_names,
                  "state the score head reads; default: last, as transformers does"),
};

static const struct rlhf_tf_name globals[] = {
    {RLHF_TF_WTE, RLHF_TF_ALL, "transformer.wte.weight"},
    {RLHF_TF_WPE, RLHF_TF_ALL, "transformer.wpe.weight"},
    {RLHF_TF_FINAL_G, RLHF_TF_ALL, "transformer.ln_f.weight"},
    {RLHF_TF_FINAL_B, RLHF_TF_ALL, "transformer.ln_f.bias"},
    {RLHF_TF_LM, RLHF_TF_ALL, "lm_head.weight"},
    {RLHF_TF_SCORE_W, RLHF_TF_ALL, "score.weight"},
    {0, RLHF_TF_ALL, NULL}};

static const struct rlhf_tf_name layers[] = {{RLHF_TF_N1_G, RLHF_TF_ALL, "ln_1.weight"},
                                             {RLHF_TF_N1_B, RLHF_TF_ALL, "ln_1.bias"},
                                             {RLHF_TF_QKV_W, RLHF_TF_ALL, "attn.c_attn.weight"},
                                             {RLHF_TF_QKV_B, RLHF_TF_ALL, "attn.c_attn.bias"},
                                             {RLHF_TF_PROJ_W, RLHF_TF_ALL, "attn.c_proj.weight"},
                                             {RLHF_TF_PROJ_B, RLHF_TF_ALL, "attn.c_proj.bias"},
                                             {RLHF_TF_N2_G, RLHF_TF_ALL, "ln_2.weight"},
                                             {RLHF_TF_N2_B, RLHF_TF_ALL, "ln_2.bias"},
                                             {RLHF_TF_FC_W, RLHF_TF_ALL, "mlp.c_fc.weight"},
                                             {RLHF_TF_FC_B, RLHF_TF_ALL, "mlp.c_fc.bias"},
                                             {RLHF_TF_OUT_W, RLHF_TF_ALL, "mlp.c_proj.weight"},
                                             {RLHF_TF_OUT_B, RLHF_TF_ALL, "mlp.c_proj.bias"},
                                             {0, RLHF_TF_ALL, NULL}};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    static const int32_t pools[] = {RLHF_POOL_LAST, RLHF_POOL_MEAN, RLHF_POOL_FIRST,
                                    RLHF_POOL_LAST};
    const struct config *c = config;
    struct rlhf_tf_arch a = {.n_vocab = (int32_t)c->vocab_size,
                             .n_ctx = (int32_t)c->n_positions,
                             .d = (int32_t)c->n_embd,
                             .n_layer = (int32_t)c->n_layer,
                             .n_head = (int32_t)c->n_head,
                             .n_kv_head = (int32_t)c->n_head,
                             .head_dim = (int32_t)(c->n_embd / c->n_head),
                             .d_inner = (int32_t)(c->n_inner ? c->n_inner : 4 * c->n_embd),
                             .causal = 1,
                             .bias = RLHF_TF_BIAS_ALL,
                             .tied = c->tie_word_embeddings,
                             .pooling = pools[c->rlhf_pooling],
                             .pads = c->pad_token_id >= 0,
                             .pad_id = (int32_t)c->pad_token_id,
                             .scale_by_layer = c->scale_attn_by_inverse_layer_idx,
                             .residual_init = 1,
                             .norm_eps = c->layer_norm_epsilon,
                             .init_std = c->initializer_range,
                             .layer_prefix = "transformer.h.%d.",
                             .base_prefix = "transformer.",
                             .globals = globals,
                             .layers = layers};
    RLHF_TRY(rlhf_tf_activation(host, "activation_function", c->activation_function, &a.act));
    if (c->add_cross_attention)
        return host->fail(host, RLHF_E_UNSUPPORTED,
                          "config.json: add_cross_attention true is not implemented");
    RLHF_TRY(rlhf_tf_check(host, &a, "n_embd", "n_head"));
    a.attn_scale = c->scale_attn_weights ? rlhf_tf_attn_scale(&a) : 1.0;
    return rlhf_tf_create(host, &a, self);
}

static const rlhf_plugin descriptor = {
    .id = "org.rlhf-host.model.gpt2",
    .version = RLHF_SDK_VERSION,
    .summary = "GPT-2: causal language model and sequence classifier",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_TF_PLUGIN(struct config, opts, create),
};

RLHF_DEFINE_PLUGIN(descriptor)
