// llama.so: Llama (Touvron et al. 2023; Dubey et al. 2024) and its descendants, as transformers
// stores them: *ForCausalLM and *ForSequenceClassification. A family is a row of the table below;
// its options and its arithmetic are in transformer/.
#include "transformer/decoder.h"

enum family {
    LLAMA,
    MISTRAL,
    QWEN2,
    QWEN3,
    SMOLLM3,
    GEMMA2,
    VAULTGEMMA,
    GEMMA3,
    GRANITE,
    GRANITE_HYBRID,
    PHI3,
    OLMO2,
    OLMO3,
    LFM2,
    QWEN3_5
};
static const char *const names[] = {
    "llama",  "mistral",    "qwen2",       "qwen3",   "smollm3",
    "gemma2", "vaultgemma", "gemma3_text", "granite", "granitemoehybrid",
    "phi3",   "olmo2",      "olmo3",       "lfm2",    "qwen3_5_text",
    NULL};

// Granite 4: gate and up projection are one tensor.
static const struct rlhf_tf_name hybrid_layers[] = {
    RLHF_TF_ATTENTION_NAMES,
    {RLHF_TF_N2_G, RLHF_TF_ALL, "post_attention_layernorm.weight"},
    {RLHF_TF_FC_W, RLHF_TF_ALL, "shared_mlp.input_linear.weight"},
    {RLHF_TF_OUT_W, RLHF_TF_ALL, "shared_mlp.output_linear.weight"},
    {0, RLHF_TF_ALL, NULL}};

// VaultGemma: Gemma 2's name of the norm before the MLP.
static const struct rlhf_tf_name vault_layers[] = {
    RLHF_TF_ATTENTION_NAMES,
    {RLHF_TF_N2_G, RLHF_TF_ALL, "pre_feedforward_layernorm.weight"},
    {RLHF_TF_FC_W, RLHF_TF_GATE, "mlp.gate_proj.weight"},
    {RLHF_TF_FC_W, RLHF_TF_UP, "mlp.up_proj.weight"},
    {RLHF_TF_OUT_W, RLHF_TF_ALL, "mlp.down_proj.weight"},
    {0, RLHF_TF_ALL, NULL}};

// Phi-3: queries, keys and values are one tensor, and so are gate and up projection.
static const struct rlhf_tf_name phi_layers[] = {
    {RLHF_TF_N1_G, RLHF_TF_ALL, "input_layernorm.weight"},
    {RLHF_TF_QKV_W, RLHF_TF_ALL, "self_attn.qkv_proj.weight"},
    {RLHF_TF_PROJ_W, RLHF_TF_ALL, "self_attn.o_proj.weight"},
    {RLHF_TF_N2_G, RLHF_TF_ALL, "post_attention_layernorm.weight"},
    {RLHF_TF_FC_W, RLHF_TF_ALL, "mlp.gate_up_proj.weight"},
    {RLHF_TF_OUT_W, RLHF_TF_ALL, "mlp.down_proj.weight"},
    {0, RLHF_TF_ALL, NULL}};

// LFM2 calls everything by another name.
// clang-format off
#define LFM2_MLP                                                                                   \
    {RLHF_TF_N1_G, RLHF_TF_ALL, "operator_norm.weight"},                                           \
    {RLHF_TF_N2_G, RLHF_TF_ALL, "ffn_norm.weight"},                                                \
    {RLHF_TF_FC_W, RLHF_TF_GATE, "feed_forward.w1.weight"},                                        \
    {RLHF_TF_FC_W, RLHF_TF_UP, "feed_forward.w3.weight"},                                          \
    {RLHF_TF_OUT_W, RLHF_TF_ALL, "feed_forward.w2.weight"},                                        \
    {0, RLHF_TF_ALL, NULL}
// clang-format on
static const struct rlhf_tf_name lfm2_globals[] = {
    {RLHF_TF_WTE, RLHF_TF_ALL, "model.embed_tokens.weight"},
    {RLHF_TF_FINAL_G, RLHF_TF_ALL, "model.embedding_norm.weight"},
    {RLHF_TF_LM, RLHF_TF_ALL, "lm_head.weight"},
    {RLHF_TF_SCORE_W, RLHF_TF_ALL, "score.weight"},
    {0, RLHF_TF_ALL, NULL}};
static const struct rlhf_tf_name lfm2_layers[] = {
    {RLHF_TF_QKV_W, RLHF_TF_QUERIES, "self_attn.q_proj.weight"},
    {RLHF_TF_QKV_W, RLHF_TF_KEYS, "self_attn.k_proj.weight"},
    {RLHF_TF_QKV_W, RLHF_TF_VALUES, "self_attn.v_proj.weight"},
    {RLHF_TF_QN_G, RLHF_TF_ALL, "self_attn.q_layernorm.weight"},
    {RLHF_TF_KN_G, RLHF_TF_ALL, "self_attn.k_layernorm.weight"},
    {RLHF_TF_PROJ_W, RLHF_TF_ALL, "self_attn.out_proj.weight"},
    LFM2_MLP};
static const struct rlhf_tf_name lfm2_convs[] = {
    {RLHF_TF_QKV_W, RLHF_TF_ALL, "conv.in_proj.weight"},
    {RLHF_TF_QKV_B, RLHF_TF_ALL, "conv.in_proj.bias"},
    {RLHF_TF_CONV_W, RLHF_TF_ALL, "conv.conv.weight"},
    {RLHF_TF_CONV_B, RLHF_TF_ALL, "conv.conv.bias"},
    {RLHF_TF_PROJ_W, RLHF_TF_ALL, "conv.out_proj.weight"},
    {RLHF_TF_PROJ_B, RLHF_TF_ALL, "conv.out_proj.bias"},
    LFM2_MLP};

// Qwen3.5: the layers with the delta rule; the others have Llama's names.
static const struct rlhf_tf_name delta_layers[] = {
    {RLHF_TF_N1_G, RLHF_TF_ALL, "input_layernorm.weight"},
    {RLHF_TF_QKV_W, RLHF_TF_DELTA_QKV, "linear_attn.in_proj_qkv.weight"},
    {RLHF_TF_QKV_W, RLHF_TF_DELTA_Z, "linear_attn.in_proj_z.weight"},
    {RLHF_TF_QKV_W, RLHF_TF_DELTA_B, "linear_attn.in_proj_b.weight"},
    {RLHF_TF_QKV_W, RLHF_TF_DELTA_A, "linear_attn.in_proj_a.weight"},
    {RLHF_TF_CONV_W, RLHF_TF_ALL, "linear_attn.conv1d.weight"},
    {RLHF_TF_A_LOG, RLHF_TF_ALL, "linear_attn.A_log"},
    {RLHF_TF_DT_BIAS, RLHF_TF_ALL, "linear_attn.dt_bias"},
    {RLHF_TF_MIX_G, RLHF_TF_ALL, "linear_attn.norm.weight"},
    {RLHF_TF_PROJ_W, RLHF_TF_ALL, "linear_attn.out_proj.weight"},
    {RLHF_TF_N2_G, RLHF_TF_ALL, "post_attention_layernorm.weight"},
    {RLHF_TF_FC_W, RLHF_TF_GATE, "mlp.gate_proj.weight"},
    {RLHF_TF_FC_W, RLHF_TF_UP, "mlp.up_proj.weight"},
    {RLHF_TF_OUT_W, RLHF_TF_ALL, "mlp.down_proj.weight"},
    {0, RLHF_TF_ALL, NULL}};

static const struct rlhf_tf_family families[] = {
    // also SmolLM2, TinyLlama
    [LLAMA] = {.reads = RLHF_TF_READS_ATTENTION_BIAS | RLHF_TF_READS_MLP_BIAS |
                        RLHF_TF_READS_PRETRAINING_TP},
    [MISTRAL] = {.reads = RLHF_TF_READS_WINDOW | RLHF_TF_NEEDS_KV_HEADS},
    // also Qwen2.5 (Yang et al. 2024)
    [QWEN2] = {.reads = RLHF_TF_READS_USE_WINDOW | RLHF_TF_NEEDS_KV_HEADS,
               .bias = RLHF_TF_BIAS_QKV},
    // dense Qwen3 (2025)
    [QWEN3] = {.reads =
                   RLHF_TF_READS_ATTENTION_BIAS | RLHF_TF_READS_USE_WINDOW | RLHF_TF_NEEDS_KV_HEADS,
               .qk_norm = RLHF_TF_QK_NORM_HEAD,
               .head_dim = 128},
    // 2025: some layers do not rotate (Yang et al. 2025)
    [SMOLLM3] = {.reads = RLHF_TF_READS_ATTENTION_BIAS | RLHF_TF_READS_MLP_BIAS |
                          RLHF_TF_READS_NO_ROPE | RLHF_TF_NEEDS_KV_HEADS,
                 .tied = 1,
                 .rope_theta = 2e6},
    // 2024: every second layer has a window (Gemma Team 2024)
    [GEMMA2] = {.reads = RLHF_TF_READS_ATTENTION_BIAS | RLHF_TF_READS_KINDS | RLHF_TF_READS_GEMMA |
                         RLHF_TF_READS_SCORE_CAP | RLHF_TF_NEEDS_CAPS | RLHF_TF_NEEDS_KV_HEADS,
                .norm_at = RLHF_TF_NORM_AROUND,
                .norm_offset = 1,
                .root_embed = 1,
                .full_every = 2,
                .head_dim = 256,
                .tied = 1},
    // 2025: Gemma 2 without norms after the blocks
    [VAULTGEMMA] = {.reads = RLHF_TF_READS_ATTENTION_BIAS | RLHF_TF_READS_KINDS |
                             RLHF_TF_READS_GEMMA | RLHF_TF_READS_SCORE_CAP | RLHF_TF_NEEDS_KV_HEADS,
                    .layers = vault_layers,
                    .norm_offset = 1,
                    .root_embed = 1,
                    .full_every = 2,
                    .head_dim = 256,
                    .tied = 1},
    // Gemma 3 without images (2025)
    [GEMMA3] = {.reads = RLHF_TF_READS_ATTENTION_BIAS | RLHF_TF_READS_KINDS | RLHF_TF_READS_GEMMA |
                         RLHF_TF_READS_KIND_ROPE | RLHF_TF_NEEDS_KV_HEADS,
                .norm_at = RLHF_TF_NORM_AROUND,
                .norm_offset = 1,
                .qk_norm = RLHF_TF_QK_NORM_HEAD,
                .root_embed = 1,
                .head_dim = 256,
                .tied = 1,
                .rope_theta = 1e6,
                .sliding_theta = 1e4},
    // Granite 3 (2024)
    [GRANITE] = {.reads =
                     RLHF_TF_READS_ATTENTION_BIAS | RLHF_TF_READS_MLP_BIAS | RLHF_TF_READS_SCALARS},
    // dense Granite 4 (2025)
    [GRANITE_HYBRID] = {.reads = RLHF_TF_READS_ATTENTION_BIAS | RLHF_TF_READS_SCALARS |
                                 RLHF_TF_READS_HYBRID,
                        .layers = hybrid_layers},
    // also Phi-3.5 and Phi-4 (2024), Phi-4-mini (2025)
    [PHI3] = {.reads = RLHF_TF_READS_WINDOW | RLHF_TF_READS_PHI, .layers = phi_layers},
    // 2024: norms only after the blocks (Team OLMo 2024)
    [OLMO2] = {.reads = RLHF_TF_READS_ATTENTION_BIAS,
               .norm_at = RLHF_TF_NORM_AFTER,
               .qk_norm = RLHF_TF_QK_NORM_WIDTH},
    // 2025: OLMo 2 with windows in three of four layers
    [OLMO3] = {.reads =
                   RLHF_TF_READS_ATTENTION_BIAS | RLHF_TF_READS_KINDS | RLHF_TF_READS_KIND_ROPE,
               .norm_at = RLHF_TF_NORM_AFTER,
               .qk_norm = RLHF_TF_QK_NORM_WIDTH,
               .full_every = 4,
               .rope_theta = 5e5,
               .sliding_theta = 5e5},
    // also LFM2.5: mostly gated short convolutions (Liquid AI 2025)
    [LFM2] = {.reads = RLHF_TF_READS_SHORT_CONV | RLHF_TF_NEEDS_KV_HEADS,
              .globals = lfm2_globals,
              .layers = lfm2_layers,
              .state_layers = lfm2_convs,
              .qk_norm = RLHF_TF_QK_NORM_HEAD,
              .tied = 1,
              .rope_theta = 1e6},
    // also Qwen3.6, without images: gated delta rule (Yang et al. 2024) in three of four layers
    [QWEN3_5] = {.reads =
                     RLHF_TF_READS_ATTENTION_BIAS | RLHF_TF_READS_DELTA | RLHF_TF_NEEDS_KV_HEADS,
                 .state_layers = delta_layers,
                 .norm_offset = 1,
                 .qk_norm = RLHF_TF_QK_NORM_HEAD,
                 .head_dim = 256},
};

struct config {
    struct rlhf_tf_decoder common;
    int32_t model_type;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_ENUM(struct config, model_type, LLAMA, names, "which of them it is"),
    RLHF_OPT_TABLE(struct config, common, rlhf_tf_decoder_opts, RLHF_TF_N_DECODER_OPTS),
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const struct config *c = config;
    struct rlhf_tf_arch a;
    RLHF_TRY(rlhf_tf_decoder_arch(host, &c->common, &families[c->model_type], &a));
    return rlhf_tf_create(host, &a, self);
}

static const rlhf_plugin descriptor = {
    .id = "org.rlhf-host.model.llama",
    .version = RLHF_SDK_VERSION,
    .summary =
        "llama, mistral, qwen2, qwen3, smollm3, gemma2, vaultgemma, gemma3_text, granite, "
        "granitemoehybrid, phi3, olmo2, olmo3, lfm2, qwen3_5_text: causal language model and "
        "sequence classifier",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_TF_PLUGIN(struct config, opts, create),
};

RLHF_DEFINE_PLUGIN(descriptor)
