// tests/models/test_decoder_config.c: the fields of config.json that Llama and its descendants
// support. Other fields are refused with a message that has the field's value.
#include "decoders.h"

#include <string.h>

enum { N_SHAPE = 7, MAX_MORE = 6 };
static const struct setting shape[N_SHAPE] = {{"vocab_size", "61"},
                                              {"hidden_size", "16"},
                                              {"intermediate_size", "20"},
                                              {"num_hidden_layers", "2"},
                                              {"num_attention_heads", "4"},
                                              {"num_key_value_heads", "2"},
                                              {"max_position_embeddings", "24"}};

#define MISSING "-2147483648" // RLHF_TF_MISSING
#define WINDOW_MISSING                                                                             \
    "sliding_window is null or 0, but layer 0 has a window, because layer_types is missing"

struct a_case {
    const char *plugin;
    struct setting more[MAX_MORE]; // added to the shape
    const char *text;              // NULL: the config is accepted
};

static void check(const struct a_case *c) {
    struct setting all[N_SHAPE + MAX_MORE] = {{NULL, NULL}};
    int32_t n = 0;
    memcpy(all, shape, sizeof shape);
    for (n = 0; c->more[n].key; n++)
        all[N_SHAPE + n] = c->more[n];
    struct model m;
    const rlhf_status st = model_create(c->plugin, all, &m);
    if (!c->text && st < 0) fail_msg("refused: %s", host_failure());
    if (c->text && st >= 0) fail_msg("accepted, expected \"%s\"", c->text);
    if (c->text && !strstr(host_failure(), c->text))
        fail_msg("\"%s\" does not say \"%s\"", host_failure(), c->text);
    if (c->text) assert_null(m.self);
    model_close(&m);
}

static void test_refused(void **state) {
    (void)state;
    static const struct a_case cases[] = {
        {"llama", {{"hidden_act", "mish"}}, "hidden_act \"mish\" is not implemented; known: silu"},
        {"llama", {{"pretraining_tp", "2"}}, "pretraining_tp 2 is not implemented"},
        {"llama", {{"attn_logit_softcapping", "50"}}, "attn_logit_softcapping 50 is not"},
        {"qwen2", {{"final_logit_softcapping", "30"}}, "final_logit_softcapping 30 is not"},
        {"gemma2",
         {{"final_logit_softcapping", "30"}},
         "attn_logit_softcapping is missing, null or 0; it must be a number above 0 (if it is "
         "missing, transformers uses 50.0: write this number into the file)"},
        {"gemma2",
         {{"attn_logit_softcapping", "50"}},
         "final_logit_softcapping is missing, null or 0; it must be a number above 0 (if it is "
         "missing, transformers uses 30.0: write this number into the file)"},
        {"gemma3_text", {{"attn_logit_softcapping", "50"}}, "attn_logit_softcapping 50 is not"},
        {"gemma2",
         {{"attn_logit_softcapping", "50"},
          {"final_logit_softcapping", "30"},
          {"use_bidirectional_attention", "1"}},
         "use_bidirectional_attention true is not implemented"},
        {"gemma2",
         {{"attn_logit_softcapping", "50"},
          {"final_logit_softcapping", "30"},
          {"rope_parameters.sliding_attention.rope_theta", "100"}},
         "positions by kind of layer are not implemented for this model_type"},
        {"qwen2", {{"num_experts", "8"}}, "num_experts 8 is not implemented"},
        {"llama", {{"num_local_experts", "8"}}, "num_local_experts 8 is not implemented"},
        {"llama", {{"partial_rotary_factor", "0.5"}}, "partial_rotary_factor 0.5 is not"},
        {"llama",
         {{"rope_parameters.partial_rotary_factor", "0.5"}},
         "rope_parameters.partial_rotary_factor 0.5 is not"},
        {"llama", {{"num_attention_heads", "3"}}, "num_attention_heads"},
        {"llama",
         {{"num_attention_heads", "3"}, {"head_dim", "8"}},
         "num_attention_heads (3) must be a multiple of num_key_value_heads (2)"},
        {"llama",
         {{"hidden_size", "18"}},
         "hidden_size (18) must be a multiple of num_attention_heads (4)"},
        {"llama", {{"head_dim", "7"}}, "head_dim (7) must be even"},
        {"llama", {{"vocab_size", "0"}}, "vocab_size must be an integer of at least 1"},
        {"mistral",
         {{"num_key_value_heads", MISSING}},
         "num_key_value_heads is missing; this model_type needs it"},
        {"qwen2",
         {{"use_sliding_window", "1"}, {"layer_types", "full_attention"}},
         "layer_types has items for 1 of the 2 layers; it must have one for each"},
        {"qwen2",
         {{"layer_types", "full_attention,sliding_attention"}},
         "layer_types has \"sliding_attention\" for layer 1, but use_sliding_window is false; "
         "allowed is \"full_attention\""},
        {"qwen3",
         {{"layer_types", "sliding_attention,full_attention"},
          {"use_sliding_window", "1"},
          {"sliding_window", "0"}},
         "for layer 0, but sliding_window is null"},
        {"llama",
         {{"layer_types", "full_attention,sliding_attention"}},
         "for layer 1, but this model_type has no windows"},
        {"qwen2",
         {{"num_key_value_heads", MISSING}},
         "num_key_value_heads is missing; this model_type needs it"},
        {"llama", {{"intermediate_size", "0"}}, "intermediate_size is missing; it must be"},
        {"qwen3",
         {{"layer_types", "conv,full_attention"}},
         "layer_types has \"conv\" for layer 0, which this model_type does not have; known: "
         "full_attention"},
        {"lfm2",
         {{"layer_types", "conv,linear_attention"}},
         "layer_types has \"linear_attention\" for layer 1, which this model_type does not have; "
         "known: full_attention, conv"},
        {"lfm2",
         {{"layer_types", "conv,attention"}},
         "layer_types has \"attention\" for layer 1, which this model_type does not have"},
        {"lfm2",
         {{"layer_types", "conv"}},
         "layer_types has items for 1 of the 2 layers; it must have one for each"},
        {"lfm2", {{"conv_L_cache", "9"}}, "conv_L_cache 9 is not implemented; known: 2 to 8"},
        {"lfm2", {{"block_ffn_dim_multiplier", "0"}}, "block_* make the MLP 0 wide"},
        {"qwen3_5_text",
         {{"layer_types", "full_attention,conv"}},
         "layer_types has \"conv\" for layer 1, which this model_type does not have; known: "
         "full_attention, linear_attention"},
        {"qwen3_5_text",
         {{"linear_conv_kernel_dim", "1"}},
         "linear_conv_kernel_dim 1 is not implemented; known: 2 to 8"},
        {"qwen3_5_text",
         {{"linear_num_value_heads", "24"}},
         "linear_num_value_heads (24) must be a multiple of linear_num_key_heads (16)"},
        {"llama",
         {{"rope_parameters.rope_type", "dynamic"}},
         "rope_parameters.rope_type \"dynamic\" is not implemented; known: default, linear"},
        {"llama",
         {{"rope_scaling.type", "longrope"},
          {"rope_scaling.short_factor", "1,2"},
          {"head_dim", "8"}},
         "rope_scaling.short_factor has 2 numbers; it must have one for each of the 4 pairs"},
        {"phi3",
         {{"rope_scaling.type", "longrope"},
          {"rope_scaling.short_factor", "1,1"},
          {"original_max_position_embeddings", "12"},
          {"long_factors", "1"}},
         "rope_scaling.long_factor has 0 numbers; it must have one for each of the 2 pairs"},
        {"phi3",
         {{"rope_parameters.rope_type", "longrope"},
          {"rope_parameters.long_factor", "1,1"},
          {"rope_parameters.original_max_position_embeddings", "12"}, // only the config's counts
          {"long_factors", "1"}},
         "long_factors is true, but max_position_embeddings (24) is not above "
         "original_max_position_embeddings (4096)"},
        {"phi3",
         {{"rope_parameters.rope_type", "linear"}, {"rope_parameters.factor", "2"}},
         "rope_parameters.rope_type \"linear\" is not implemented for this model_type; known: "
         "default, longrope"},
        {"phi3",
         {{"partial_rotary_factor", "0.75"}}, // of a head of 4
         "partial_rotary_factor 0.75 rotates 3 elements of a head of 4; known: an even number"},
        {"phi3",
         {{"rope_parameters.partial_rotary_factor", "0"}, {"partial_rotary_factor", "0.5"}},
         "partial_rotary_factor 0 rotates 0 elements"},
        {"gemma3_text",
         {{"rope_scaling.rope_type", "longrope"}},
         "rope_scaling.short_factor has 0 numbers"},
        {"llama", {{"rope_scaling.rope_type", "linear"}}, "rope_scaling.factor is missing"},
        {"llama",
         {{"rope_parameters.rope_type", "llama3"}, {"rope_parameters.factor", "2"}},
         "rope_parameters.low_freq_factor is missing"},
        {"llama",
         {{"rope_parameters.rope_type", "llama3"},
          {"rope_parameters.factor", "2"},
          {"rope_parameters.low_freq_factor", "2"},
          {"rope_parameters.high_freq_factor", "2"}},
         "rope_parameters.high_freq_factor must be above low_freq_factor"},
        {"smollm3",
         {{"no_rope_layers", "1"}},
         "no_rope_layers has items for 1 of the 2 layers; it must have one for each"},
        {"smollm3",
         {{"use_sliding_window", "1"}, {"sliding_window", "8"}},
         "use_sliding_window true, with a sliding_window of 8 in the layers that do not"},
        {"smollm3",
         {{"num_key_value_heads", MISSING}},
         "num_key_value_heads is missing; this model_type needs it"},
        {"granitemoehybrid",
         {{"layer_types", "attention,attention"}},
         "num_local_experts is missing, which means 8 experts; known: 0"},
        {"granitemoehybrid",
         {{"layer_types", "attention,attention"}, {"num_local_experts", "4"}},
         "num_local_experts 4 is not implemented"},
        {"granitemoehybrid",
         {{"layer_types", "attention"}, {"num_local_experts", "0"}},
         "layer_types has items for 1 of the 2 layers"},
        {"granitemoehybrid",
         {{"num_local_experts", "0"}},
         "layer_types is missing, which means that all layers are of Mamba; known: attention"},
        {"granitemoehybrid",
         {{"layer_types", "attention,attention"},
          {"num_local_experts", "0"},
          {"position_embedding_type", "alibi"}},
         "position_embedding_type \"alibi\" is not implemented; known: rope, null"},
        {"llama",
         {{"rope_parameters.rope_type", "yarn"}, {"rope_parameters.rope_theta", "1"}},
         "rope_parameters.rope_theta must be above 1"},
        {"mistral",
         {{"sliding_window", "-1"}},
         "sliding_window is -1; it must be null or an integer of at least 1"},
        {"olmo2",
         {{"num_key_value_heads", "-1"}},
         "num_key_value_heads is -1; it must be null or an integer of at least 1"},
        {"granitemoehybrid",
         {{"layer_types", "attention,attention"}, {"num_local_experts", "-1"}},
         "num_local_experts -1 is not implemented"},
        {"llama", {{"partial_rotary_factor", "-1"}}, "partial_rotary_factor -1 is not"},
        {"llama",
         {{"rope_scaling.partial_rotary_factor", "-0.5"}},
         "rope_scaling.partial_rotary_factor -0.5 is not"},
        {"phi3",
         {{"partial_rotary_factor", "-1"}},
         "partial_rotary_factor -1 rotates -4 elements of a head of 4; known: an even number"},
        {"olmo3",
         {{"rope_theta", "100"}},
         "rope_theta is 100, and it is not clear whether it is that of the layers with a window"},
        {"olmo3",
         {{"rope_parameters.full_attention.rope_type", "llama3"}},
         "full_attention.rope_type \"llama3\" is not implemented; known: default, linear, yarn"},
        {"olmo3",
         {{"rope_parameters.sliding_attention.rope_type", "yarn"}},
         "sliding_attention.rope_type \"yarn\" is not implemented; known: default, linear"},
        {"olmo3",
         {{"sliding_window", "0"}, {"layer_types", "sliding_attention,full_attention"}},
         "layer_types has \"sliding_attention\" for layer 0, but sliding_window is null or 0"},
        {"olmo3", {{"sliding_window", "0"}}, WINDOW_MISSING},
        {"gemma3_text", {{"sliding_window", "0"}}, WINDOW_MISSING},
        {"vaultgemma", {{"sliding_window", "0"}}, WINDOW_MISSING},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

// Fields that are set but do not change anything.
static void test_accepted(void **state) {
    (void)state;
    static const struct a_case cases[] = {
        {"llama", {{"pretraining_tp", "1"}, {"sliding_window", "8"}}, NULL},
        {"llama", {{"num_key_value_heads", "0"}}, NULL},
        {"llama", {{"num_key_value_heads", MISSING}}, NULL},
        {"qwen2", {{"num_key_value_heads", "0"}}, NULL}, // null
        {"mistral", {{"sliding_window", "24"}}, NULL},
        {"mistral",
         {{"sliding_window", "8"}, {"layer_types", "full_attention,full_attention"}},
         NULL},
        {"mistral", {{"sliding_window", "0"}, {"max_position_embeddings", "9999"}}, NULL}, // null
        {"qwen2", {{"use_sliding_window", "1"}, {"sliding_window", "24"}}, NULL},
        {"qwen2",
         {{"use_sliding_window", "1"}, {"sliding_window", "8"}, {"max_window_layers", "2"}},
         NULL},
        {"qwen2", {{"sliding_window", "8"}, {"max_window_layers", "0"}}, NULL},
        {"qwen2", {{"rope_parameters.rope_type", "yarn"}}, NULL}, // factor: ratio of the contexts
        {"qwen2", {{"hidden_size", "18"}, {"head_dim", "4"}}, NULL},
        {"olmo3", {{"sliding_window", "8"}, {"rope_theta", "500000"}}, NULL},
        {"olmo3",
         {{"rope_theta", "100"}, {"rope_parameters.sliding_attention.rope_theta", "100"}},
         NULL},
        {"phi3", {{"num_key_value_heads", MISSING}, {"rope_parameters.rope_theta", "500"}}, NULL},
        {"llama", {{"partial_rotary_factor", "1"}}, NULL},
        {"smollm3", {{"no_rope_layers", "1,1,0,1"}}, NULL}, // more than layers
        {"vaultgemma", {{"sliding_window", "8"}}, NULL},    // without caps
        {"gemma3_text",
         {{"sliding_window", "0"}, {"sliding_window_pattern", "1"}},
         NULL}, // no layer
        {"gemma3_text",
         {{"sliding_window", "0"}, {"layer_types", "full_attention,full_attention"}},
         NULL},
        {"smollm3", {{"sliding_window", "8"}}, NULL},
        {"smollm3", {{"use_sliding_window", "1"}, {"sliding_window", "24"}}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

// Without the long factors, a longrope model has the context that it was first trained with.
static void test_context(void **state) {
    (void)state;
    struct backend b = backend_open("reference", 1, 0);
    const rlhf_model_open o = open_args(&b, RLHF_F32, 0);
    for (int32_t more = 0; more < 2; more++) {
        struct setting all[N_SHAPE + 5] = {{NULL, NULL}};
        memcpy(all, shape, sizeof shape);
        all[N_SHAPE] = (struct setting){"original_max_position_embeddings", "9"};
        all[N_SHAPE + 1] = (struct setting){"rope_scaling.type", "longrope"};
        all[N_SHAPE + 2] = (struct setting){"rope_scaling.short_factor", "1,1"};
        all[N_SHAPE + 3] = (struct setting){"rope_scaling.long_factor", "1,1"};
        if (more) all[N_SHAPE + 3] = (struct setting){"rope_scaling.short_factor", "1,2"};
        struct model m = model_open(more ? "llama" : "phi3", all, &o);
        assert_int_equal(m.info.n_ctx, 9);
        model_close(&m);
    }
    backend_close(&b);
}

// If config.json lacks head_dim, qwen3 has heads of width 128, and qwen2 divides the model's width.
static void test_head_dim(void **state) {
    (void)state;
    struct backend b = backend_open("reference", 1, 0);
    const rlhf_model_open o = open_args(&b, RLHF_F32, 0);
    for (int32_t three = 0; three < 2; three++) {
        struct setting all[N_SHAPE + 1] = {{NULL, NULL}};
        memcpy(all, shape, sizeof shape);
        struct model m = model_open(three ? "qwen3" : "qwen2", all, &o);
        rlhf_param p = {.size = sizeof p};
        must(&m,
             m.ops->param(m.self, model_find(&m, "model.layers.0.self_attn.k_proj.weight"), &p));
        assert_int_equal(p.shape[0], three ? 2 * 128 : 2 * 4);
        model_close(&m);
    }
    backend_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused), cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_context), cmocka_unit_test(test_head_dim)};
    return cmocka_run_group_tests_name("decoders' config.json", tests, NULL, NULL);
}
