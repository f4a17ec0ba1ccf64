// gguf_family.c: see gguf_family.h.
#include "weights/gguf_family.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

rlhf_status rlhf__gguf_field_put(struct rlhf__gguf_reader *r, const char *field, json_t *v,
                                 struct rlhf__error *err) {
    return json_object_set_new(r->config, field, v) == 0
               ? RLHF_OK
               : RLHF__NOMEM(err, "out of memory for the config of %s", rlhf__gguf_path(r->file));
}

const struct rlhf__gguf_value *rlhf__gguf_key_find(const struct rlhf__gguf_reader *r,
                                                   const char *name) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", r->arch, name);
    return rlhf__gguf_find(r->file, key);
}

int rlhf__gguf_has_tensor(const struct rlhf__gguf_reader *r, const char *name) {
    return rlhf__gguf_tensor_find(r->file, name) != NULL;
}

// The kinds of layers: `state` for those with a state.
static rlhf_status put_kinds(struct rlhf__gguf_reader *r, const char *state,
                             struct rlhf__error *err) {
    const struct rlhf__gguf_shape *s = &r->shape;
    json_t *types = json_array();
    int bad = !types;
    for (int32_t i = 0; i < s->layers && !bad; i++)
        bad = json_array_append_new(
            types, json_string(rlhf__gguf_has_state(&s->mix, i) ? state : "full_attention"));
    const rlhf_status st = rlhf__gguf_field_put(r, "layer_types", bad ? NULL : types, err);
    if (bad) json_decref(types);
    return st;
}

static rlhf_status put_lfm(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    RLHF_TRY(put_kinds(r, "conv", err));
    RLHF_TRY(rlhf__gguf_field_put(r, "num_key_value_heads", json_integer(r->shape.kv_heads), err));
    RLHF_TRY(rlhf__gguf_field_put(r, "conv_bias", json_false(), err));
    return rlhf__gguf_field_put(r, "block_auto_adjust_ff_dim", json_false(),
                                err); // the file has the real width
}

static rlhf_status put_qwen35(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    RLHF_TRY(put_kinds(r, "linear_attention", err));
    return rlhf__gguf_field_put(r, "linear_value_head_dim", json_integer(r->shape.mix.value_dim),
                                err);
}

static rlhf_status put_windows(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    const struct rlhf__gguf_shape *s = &r->shape;
    json_t *types = json_array();
    int bad = !types;
    for (int32_t i = 0; i < s->layers && !bad; i++)
        bad = json_array_append_new(types, json_string(rlhf__gguf_has_window(s->family, i)
                                                           ? "sliding_attention"
                                                           : "full_attention"));
    const rlhf_status st = rlhf__gguf_field_put(r, "layer_types", bad ? NULL : types, err);
    if (bad) json_decref(types);
    return st;
}

static rlhf_status put_gemma(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    const struct rlhf__gguf_shape *s = &r->shape;
    const double divisor =
        rlhf__gguf_score_divisor(s->family, s->layers, (double)s->width, s->heads, s->head_dim);
    RLHF_TRY(put_windows(r, err));
    const struct rlhf__gguf_value *cap = rlhf__gguf_key_find(r, "final_logit_softcapping");
    double x = 0; // the table has the cap of gemma2
    if (cap) RLHF_TRY(rlhf__gguf_value_num(cap, &x, err));
    if (x > 0) RLHF_TRY(rlhf__gguf_field_put(r, "final_logit_softcapping", json_real(x), err));
    RLHF_TRY(rlhf__gguf_field_put(r, "hidden_activation", json_string("gelu_pytorch_tanh"), err));
    return rlhf__gguf_field_put(
        r, "query_pre_attn_scalar",
        divisor == floor(divisor) ? json_integer((json_int_t)divisor) : json_real(divisor), err);
}

// The window of Phi-3; 0: none.
static rlhf_status put_phi(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_key_find(r, "attention.sliding_window");
    int64_t n = 0;
    if (v) RLHF_TRY(rlhf__gguf_value_int(v, 0, RLHF__GGUF_SIZE, &n, err));
    return rlhf__gguf_field_put(r, "sliding_window", n > 0 ? json_integer(n) : json_null(), err);
}

// An OLMo 2 with windows is an olmo3 of transformers.
static rlhf_status put_olmo(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_key_find(r, "attention.sliding_window");
    int64_t n = 0;
    if (v) RLHF_TRY(rlhf__gguf_value_int(v, 0, RLHF__GGUF_SIZE, &n, err));
    if (!n) return RLHF_OK;
    r->by_kind = 1;
    RLHF_TRY(rlhf__gguf_field_put(r, "model_type", json_string("olmo3"), err));
    RLHF_TRY(rlhf__gguf_field_put(r, "architectures", json_pack("[s]", "Olmo3ForCausalLM"), err));
    RLHF_TRY(rlhf__gguf_field_put(r, "sliding_window", json_integer(n), err));
    return put_windows(r, err);
}

// In transformers, a Granite 4 without rotary positions is a granitemoehybrid.
static rlhf_status put_granite(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_key_find(r, "rope.scaling.finetuned");
    int rotates = 1;
    if (v) RLHF_TRY(rlhf__gguf_value_bool(v, &rotates, err));
    r->shape.hybrid = !rotates;
    if (rotates) return RLHF_OK;
    json_t *types = json_array();
    int bad = !types;
    for (int32_t i = 0; i < r->shape.layers && !bad; i++)
        bad = json_array_append_new(types, json_string("attention"));
    const rlhf_status st = rlhf__gguf_field_put(r, "layer_types", bad ? NULL : types, err);
    if (bad) json_decref(types);
    RLHF_TRY(st);
    RLHF_TRY(rlhf__gguf_field_put(r, "model_type", json_string("granitemoehybrid"), err));
    RLHF_TRY(rlhf__gguf_field_put(r, "architectures",
                                  json_pack("[s]", "GraniteMoeHybridForCausalLM"), err));
    RLHF_TRY(rlhf__gguf_field_put(r, "num_local_experts", json_integer(0), err));
    RLHF_TRY(rlhf__gguf_field_put(r, "position_embedding_type", json_null(), err));
    json_t *width = json_object_get(r->config, "intermediate_size");
    return rlhf__gguf_field_put(r, "shared_intermediate_size", json_incref(width), err);
}

static rlhf_status put_biases(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    const int32_t f = r->shape.family;
    const int attention = f == RLHF__GGUF_LLAMA || f == RLHF__GGUF_GRANITE;
    if (attention && rlhf__gguf_has_tensor(r, "blk.0.attn_q.bias"))
        RLHF_TRY(rlhf__gguf_field_put(r, "attention_bias", json_true(), err));
    if (attention && rlhf__gguf_has_tensor(r, "blk.0.ffn_gate.bias"))
        RLHF_TRY(rlhf__gguf_field_put(r, "mlp_bias", json_true(), err));
    return RLHF_OK;
}

rlhf_status rlhf__gguf_family_put(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    const int32_t f = r->shape.family;
    if (rlhf__gguf_is_gemma(f)) return put_gemma(r, err);
    if (f == RLHF__GGUF_GPT2)
        return rlhf__gguf_field_put(r, "activation_function", json_string("gelu_new"), err);
    if (f == RLHF__GGUF_LFM2) return put_lfm(r, err);
    RLHF_TRY(rlhf__gguf_field_put(r, "hidden_act", json_string("silu"), err));
    if (f == RLHF__GGUF_QWEN35) return put_qwen35(r, err);
    if (f == RLHF__GGUF_PHI3) return put_phi(r, err);
    if (f == RLHF__GGUF_OLMO2) return put_olmo(r, err);
    if (f == RLHF__GGUF_SMOLLM3)
        RLHF_TRY(rlhf__gguf_field_put(r, "no_rope_layer_interval", json_integer(4), err));
    if (f == RLHF__GGUF_GRANITE) RLHF_TRY(put_granite(r, err));
    return put_biases(r, err);
}
