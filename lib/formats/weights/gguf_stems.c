// gguf_stems.c: see gguf_stems.h.
#include "weights/gguf_stems.h"

// The architectures of llama.cpp, as bits. The tables list, for each stem of a
// tensor's name, the architectures that have a weight and those that have a bias.
enum {
    LLAMA = 1 << RLHF__GGUF_LLAMA,
    QWEN2 = 1 << RLHF__GGUF_QWEN2,
    QWEN3 = 1 << RLHF__GGUF_QWEN3,
    SMOLLM3 = 1 << RLHF__GGUF_SMOLLM3,
    GRANITE = 1 << RLHF__GGUF_GRANITE,
    PHI3 = 1 << RLHF__GGUF_PHI3,
    GEMMA2 = 1 << RLHF__GGUF_GEMMA2,
    GEMMA3 = 1 << RLHF__GGUF_GEMMA3,
    OLMO2 = 1 << RLHF__GGUF_OLMO2,
    QWEN35 = 1 << RLHF__GGUF_QWEN35,
    LFM2 = 1 << RLHF__GGUF_LFM2,
    GPT2 = 1 << RLHF__GGUF_GPT2,
    SPLIT = LLAMA | QWEN2 | QWEN3 | SMOLLM3 | GRANITE, // a matrix each for q, k, v, gate and up
    BEFORE = SPLIT | PHI3,                             // norms before attention and the MLP
    ROTARY = BEFORE | OLMO2,
    GEMMA = GEMMA2 | GEMMA3,
    NONE = 0
};

enum { ALL = RLHF__GGUF_IN_ALL, ATTENTION = RLHF__GGUF_IN_ATTENTION, STATE = RLHF__GGUF_IN_STATE };

static const struct rlhf__gguf_stem rotary_block[] = {
    {"input_layernorm", "attn_norm", RLHF__GGUF_AS_IS, BEFORE, NONE, ALL, 0},
    {"self_attn.q_proj", "attn_q", RLHF__GGUF_PAIR_Q, SPLIT, LLAMA | QWEN2 | GRANITE, ALL, 0},
    {"self_attn.k_proj", "attn_k", RLHF__GGUF_PAIR_K, SPLIT, LLAMA | QWEN2 | GRANITE, ALL, 0},
    {"self_attn.v_proj", "attn_v", RLHF__GGUF_AS_IS, SPLIT, LLAMA | QWEN2 | GRANITE, ALL, 0},
    {"self_attn.o_proj", "attn_output", RLHF__GGUF_AS_IS, BEFORE, LLAMA | GRANITE, ALL, 0},
    {"self_attn.q_norm", "attn_q_norm", RLHF__GGUF_AS_IS, QWEN3, NONE, ALL, 0},
    {"self_attn.k_norm", "attn_k_norm", RLHF__GGUF_AS_IS, QWEN3, NONE, ALL, 0},
    {"post_attention_layernorm", "ffn_norm", RLHF__GGUF_AS_IS, BEFORE, NONE, ALL, 0},
    {"mlp.gate_proj", "ffn_gate", RLHF__GGUF_AS_IS, SPLIT, LLAMA | GRANITE, ALL, 0},
    {"mlp.up_proj", "ffn_up", RLHF__GGUF_AS_IS, SPLIT, LLAMA | GRANITE, ALL, 0},
    {"mlp.down_proj", "ffn_down", RLHF__GGUF_AS_IS, BEFORE, LLAMA | GRANITE, ALL, 0},
    {"self_attn.qkv_proj", "attn_qkv", RLHF__GGUF_AS_IS, PHI3, NONE, ALL, 0},
    {"mlp.gate_up_proj", "ffn_up", RLHF__GGUF_AS_IS, PHI3, NONE, ALL, 0},
    {"shared_mlp.input_linear", "ffn_gate", RLHF__GGUF_GATE_UP, GRANITE, NONE, ALL, 0},
    {"shared_mlp.output_linear", "ffn_down", RLHF__GGUF_AS_IS, GRANITE, NONE, ALL, 0},
    {0},
};
static const struct rlhf__gguf_stem rotary_outside[] = {
    {"embed_tokens", "token_embd", RLHF__GGUF_AS_IS, ROTARY, NONE, ALL, 0},
    {"norm", "output_norm", RLHF__GGUF_AS_IS, ROTARY, NONE, ALL, 0},
    {"lm_head", "output", RLHF__GGUF_AS_IS, ROTARY, NONE, ALL, 0},
    {0},
};
static const struct rlhf__gguf_stem olmo_block[] = {
    {"self_attn.q_proj", "attn_q", RLHF__GGUF_AS_IS, OLMO2, NONE, ALL, 0},
    {"self_attn.k_proj", "attn_k", RLHF__GGUF_AS_IS, OLMO2, NONE, ALL, 0},
    {"self_attn.v_proj", "attn_v", RLHF__GGUF_AS_IS, OLMO2, NONE, ALL, 0},
    {"self_attn.o_proj", "attn_output", RLHF__GGUF_AS_IS, OLMO2, NONE, ALL, 0},
    {"self_attn.q_norm", "attn_q_norm", RLHF__GGUF_AS_IS, OLMO2, NONE, ALL, 0},
    {"self_attn.k_norm", "attn_k_norm", RLHF__GGUF_AS_IS, OLMO2, NONE, ALL, 0},
    {"post_attention_layernorm", "post_attention_norm", RLHF__GGUF_AS_IS, OLMO2, NONE, ALL, 0},
    {"mlp.gate_proj", "ffn_gate", RLHF__GGUF_AS_IS, OLMO2, NONE, ALL, 0},
    {"mlp.up_proj", "ffn_up", RLHF__GGUF_AS_IS, OLMO2, NONE, ALL, 0},
    {"mlp.down_proj", "ffn_down", RLHF__GGUF_AS_IS, OLMO2, NONE, ALL, 0},
    {"post_feedforward_layernorm", "post_ffw_norm", RLHF__GGUF_AS_IS, OLMO2, NONE, ALL, 0},
    {0},
};
static const struct rlhf__gguf_stem gemma_block[] = {
    {"input_layernorm", "attn_norm", RLHF__GGUF_PLUS_ONE, GEMMA, NONE, ALL, 0},
    {"self_attn.q_proj", "attn_q", RLHF__GGUF_AS_IS, GEMMA, NONE, ALL, 0},
    {"self_attn.k_proj", "attn_k", RLHF__GGUF_AS_IS, GEMMA, NONE, ALL, 0},
    {"self_attn.v_proj", "attn_v", RLHF__GGUF_AS_IS, GEMMA, NONE, ALL, 0},
    {"self_attn.o_proj", "attn_output", RLHF__GGUF_AS_IS, GEMMA, NONE, ALL, 0},
    {"self_attn.q_norm", "attn_q_norm", RLHF__GGUF_PLUS_ONE, GEMMA3, NONE, ALL, 0},
    {"self_attn.k_norm", "attn_k_norm", RLHF__GGUF_PLUS_ONE, GEMMA3, NONE, ALL, 0},
    {"post_attention_layernorm", "post_attention_norm", RLHF__GGUF_PLUS_ONE, GEMMA, NONE, ALL, 0},
    {"pre_feedforward_layernorm", "ffn_norm", RLHF__GGUF_PLUS_ONE, GEMMA, NONE, ALL, 0},
    {"mlp.gate_proj", "ffn_gate", RLHF__GGUF_AS_IS, GEMMA, NONE, ALL, 0},
    {"mlp.up_proj", "ffn_up", RLHF__GGUF_AS_IS, GEMMA, NONE, ALL, 0},
    {"mlp.down_proj", "ffn_down", RLHF__GGUF_AS_IS, GEMMA, NONE, ALL, 0},
    {"post_feedforward_layernorm", "post_ffw_norm", RLHF__GGUF_PLUS_ONE, GEMMA, NONE, ALL, 0},
    {0},
};
static const struct rlhf__gguf_stem gemma_outside[] = {
    {"embed_tokens", "token_embd", RLHF__GGUF_AS_IS, GEMMA, NONE, ALL, 0},
    {"norm", "output_norm", RLHF__GGUF_PLUS_ONE, GEMMA, NONE, ALL, 0},
    {"lm_head", "output", RLHF__GGUF_AS_IS, GEMMA3, NONE, ALL, 0},
    {0},
};
static const struct rlhf__gguf_stem gpt2_block[] = {
    {"ln_1", "attn_norm", RLHF__GGUF_AS_IS, GPT2, GPT2, ALL, 0},
    {"attn.c_attn", "attn_qkv", RLHF__GGUF_TRANSPOSED, GPT2, GPT2, ALL, 0},
    {"attn.c_proj", "attn_output", RLHF__GGUF_TRANSPOSED, GPT2, GPT2, ALL, 0},
    {"ln_2", "ffn_norm", RLHF__GGUF_AS_IS, GPT2, GPT2, ALL, 0},
    {"mlp.c_fc", "ffn_up", RLHF__GGUF_TRANSPOSED, GPT2, GPT2, ALL, 0},
    {"mlp.c_proj", "ffn_down", RLHF__GGUF_TRANSPOSED, GPT2, GPT2, ALL, 0},
    {0},
};
static const struct rlhf__gguf_stem gpt2_outside[] = {
    {"wte", "token_embd", RLHF__GGUF_AS_IS, GPT2, NONE, ALL, 0},
    {"wpe", "position_embd", RLHF__GGUF_AS_IS, GPT2, NONE, ALL, 0},
    {"ln_f", "output_norm", RLHF__GGUF_AS_IS, GPT2, GPT2, ALL, 0},
    {"lm_head", "output", RLHF__GGUF_AS_IS, GPT2, NONE, ALL, 0},
    {0},
};

// The names of Qwen3.5 and LFM2, some of whose layers have a state and no attention.
static const struct rlhf__gguf_stem qwen35_block[] = {
    {"input_layernorm", "attn_norm", RLHF__GGUF_PLUS_ONE, QWEN35, NONE, ALL, 0},
    {"self_attn.q_proj", "attn_q", RLHF__GGUF_AS_IS, QWEN35, NONE, ATTENTION, 0},
    {"self_attn.k_proj", "attn_k", RLHF__GGUF_AS_IS, QWEN35, NONE, ATTENTION, 0},
    {"self_attn.v_proj", "attn_v", RLHF__GGUF_AS_IS, QWEN35, NONE, ATTENTION, 0},
    {"self_attn.o_proj", "attn_output", RLHF__GGUF_AS_IS, QWEN35, NONE, ATTENTION, 0},
    {"self_attn.q_norm", "attn_q_norm", RLHF__GGUF_PLUS_ONE, QWEN35, NONE, ATTENTION, 0},
    {"self_attn.k_norm", "attn_k_norm", RLHF__GGUF_PLUS_ONE, QWEN35, NONE, ATTENTION, 0},
    {"linear_attn.in_proj_qkv", "attn_qkv", RLHF__GGUF_TILED_QKV, QWEN35, NONE, STATE, 0},
    {"linear_attn.in_proj_z", "attn_gate", RLHF__GGUF_TILED_VALUES, QWEN35, NONE, STATE, 0},
    {"linear_attn.in_proj_b", "ssm_beta", RLHF__GGUF_TILED_HEADS, QWEN35, NONE, STATE, 0},
    {"linear_attn.in_proj_a", "ssm_alpha", RLHF__GGUF_TILED_HEADS, QWEN35, NONE, STATE, 0},
    {"linear_attn.conv1d", "ssm_conv1d", RLHF__GGUF_TILED_TAPS, QWEN35, NONE, STATE, 0},
    {"linear_attn.A_log", "ssm_a", RLHF__GGUF_DECAYS, QWEN35, NONE, STATE, 1},
    {"linear_attn.dt_bias", "ssm_dt.bias", RLHF__GGUF_TILED_HEADS, QWEN35, NONE, STATE, 1},
    {"linear_attn.norm", "ssm_norm", RLHF__GGUF_AS_IS, QWEN35, NONE, STATE, 0},
    {"linear_attn.out_proj", "ssm_out", RLHF__GGUF_TILED_COLUMNS, QWEN35, NONE, STATE, 0},
    {"post_attention_layernorm", "post_attention_norm", RLHF__GGUF_PLUS_ONE, QWEN35, NONE, ALL, 0},
    {"mlp.gate_proj", "ffn_gate", RLHF__GGUF_AS_IS, QWEN35, NONE, ALL, 0},
    {"mlp.up_proj", "ffn_up", RLHF__GGUF_AS_IS, QWEN35, NONE, ALL, 0},
    {"mlp.down_proj", "ffn_down", RLHF__GGUF_AS_IS, QWEN35, NONE, ALL, 0},
    {0},
};
static const struct rlhf__gguf_stem qwen35_outside[] = {
    {"embed_tokens", "token_embd", RLHF__GGUF_AS_IS, QWEN35, NONE, ALL, 0},
    {"norm", "output_norm", RLHF__GGUF_PLUS_ONE, QWEN35, NONE, ALL, 0},
    {"lm_head", "output", RLHF__GGUF_AS_IS, QWEN35, NONE, ALL, 0},
    {0},
};
static const struct rlhf__gguf_stem lfm2_block[] = {
    {"operator_norm", "attn_norm", RLHF__GGUF_AS_IS, LFM2, NONE, ALL, 0},
    {"self_attn.q_proj", "attn_q", RLHF__GGUF_AS_IS, LFM2, NONE, ATTENTION, 0},
    {"self_attn.k_proj", "attn_k", RLHF__GGUF_AS_IS, LFM2, NONE, ATTENTION, 0},
    {"self_attn.v_proj", "attn_v", RLHF__GGUF_AS_IS, LFM2, NONE, ATTENTION, 0},
    {"self_attn.out_proj", "attn_output", RLHF__GGUF_AS_IS, LFM2, NONE, ATTENTION, 0},
    {"self_attn.q_layernorm", "attn_q_norm", RLHF__GGUF_AS_IS, LFM2, NONE, ATTENTION, 0},
    {"self_attn.k_layernorm", "attn_k_norm", RLHF__GGUF_AS_IS, LFM2, NONE, ATTENTION, 0},
    {"conv.in_proj", "shortconv.in_proj", RLHF__GGUF_AS_IS, LFM2, NONE, STATE, 0},
    {"conv.conv", "shortconv.conv", RLHF__GGUF_TAPS, LFM2, NONE, STATE, 0},
    {"conv.out_proj", "shortconv.out_proj", RLHF__GGUF_AS_IS, LFM2, NONE, STATE, 0},
    {"ffn_norm", "ffn_norm", RLHF__GGUF_AS_IS, LFM2, NONE, ALL, 0},
    {"feed_forward.w1", "ffn_gate", RLHF__GGUF_AS_IS, LFM2, NONE, ALL, 0},
    {"feed_forward.w3", "ffn_up", RLHF__GGUF_AS_IS, LFM2, NONE, ALL, 0},
    {"feed_forward.w2", "ffn_down", RLHF__GGUF_AS_IS, LFM2, NONE, ALL, 0},
    {0},
};
// The last norm has this name in llama.cpp's files.
static const struct rlhf__gguf_stem lfm2_outside[] = {
    {"embed_tokens", "token_embd", RLHF__GGUF_AS_IS, LFM2, NONE, ALL, 0},
    {"embedding_norm", "token_embd_norm", RLHF__GGUF_AS_IS, LFM2, NONE, ALL, 0},
    {"lm_head", "output", RLHF__GGUF_AS_IS, LFM2, NONE, ALL, 0},
    {0},
};

const struct rlhf__gguf_naming rlhf__gguf_namings[RLHF__GGUF_N_FAMILIES] = {
    [RLHF__GGUF_LLAMA] = {"model.", "layers.", rotary_block, rotary_outside, "llama"},
    [RLHF__GGUF_QWEN2] = {"model.", "layers.", rotary_block, rotary_outside, "qwen2"},
    [RLHF__GGUF_QWEN3] = {"model.", "layers.", rotary_block, rotary_outside, "qwen3"},
    [RLHF__GGUF_SMOLLM3] = {"model.", "layers.", rotary_block, rotary_outside, "smollm3"},
    [RLHF__GGUF_GRANITE] = {"model.", "layers.", rotary_block, rotary_outside, "granite"},
    [RLHF__GGUF_PHI3] = {"model.", "layers.", rotary_block, rotary_outside, "phi3"},
    [RLHF__GGUF_GEMMA2] = {"model.", "layers.", gemma_block, gemma_outside, "gemma2"},
    [RLHF__GGUF_GEMMA3] = {"model.", "layers.", gemma_block, gemma_outside, "gemma3"},
    [RLHF__GGUF_OLMO2] = {"model.", "layers.", olmo_block, rotary_outside, "olmo2"},
    [RLHF__GGUF_QWEN35] = {"model.", "layers.", qwen35_block, qwen35_outside, "qwen35"},
    [RLHF__GGUF_LFM2] = {"model.", "layers.", lfm2_block, lfm2_outside, "lfm2"},
    [RLHF__GGUF_GPT2] = {"transformer.", "h.", gpt2_block, gpt2_outside, "gpt2"},
};
