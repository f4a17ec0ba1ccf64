// gguf_rotary.c: see gguf_rotary.h.
#include "weights/gguf_rotary.h"

#include "weights/gguf_llama3.h"
#include "weights/gguf_names.h"

#include <math.h>
#include <rlhf/exact.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORIGINAL "original_max_position_embeddings"

// ---- keys ----

static const struct rlhf__gguf_value *find(const struct rlhf__gguf_positions *p, const char *name) {
    char key[96];
    snprintf(key, sizeof key, "%s.rope.%s", p->arch, name);
    return rlhf__gguf_find(p->file, key);
}

// Reads a number above 0. If the key is missing, *out keeps its value.
static rlhf_status number(const struct rlhf__gguf_positions *p, const char *name, double *out,
                          struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = find(p, name);
    double x = 0;
    if (!v) return RLHF_OK;
    RLHF_TRY(rlhf__gguf_value_num(v, &x, err));
    if (!(x > 0))
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the key %s.rope.%s is %g, expected more than 0",
                          rlhf__gguf_path(p->file), p->arch, name, x);
    *out = x;
    return RLHF_OK;
}

static rlhf_status put(json_t *o, const char *field, json_t *v, struct rlhf__error *err) {
    return json_object_set_new(o, field, v) == 0
               ? RLHF_OK
               : RLHF__NOMEM(err, "out of memory for the rotary positions");
}

// A whole number becomes an integer of JSON.
static json_t *whole(double x) {
    return x == floor(x) && x < 1e9 ? json_integer((json_int_t)x) : json_real(x);
}

// ---- divisors ----

// Reads a vector of n divisors, each above 0. *out is NULL if the file lacks the tensor. The
// caller frees it.
static rlhf_status divisors(const struct rlhf__gguf_positions *p, const char *name, int32_t n,
                            float **out, struct rlhf__error *err) {
    const struct rlhf__tensor *t = rlhf__gguf_tensor_find(p->file, name);
    *out = NULL;
    if (!t) return RLHF_OK;
    if (t->count != n)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s: the tensor %s has %lld elements, expected %d, one for each pair that "
            "is rotated",
            rlhf__gguf_path(p->file), name, (long long)t->count, (int)n);
    float *x = calloc((size_t)n, sizeof *x);
    if (!x) return RLHF__NOMEM(err, "out of memory for %s", name);
    rlhf_status st = rlhf__tensor_read_f32(t, 0, n, x, err);
    for (int32_t i = 0; i < n && st == RLHF_OK; i++)
        if (!(x[i] > 0) || isinf(x[i]))
            st = rlhf__fail(err, RLHF_E_INVALID,
                            "%s: element %d of the tensor %s is %g, expected a number above 0",
                            rlhf__gguf_path(p->file), (int)i, name, (double)x[i]);
    if (st != RLHF_OK) {
        free(x);
        return st;
    }
    *out = x;
    return RLHF_OK;
}

static rlhf_status put_llama3(const struct rlhf__gguf_positions *p, json_t *o, double theta,
                              const float *x, struct rlhf__error *err) {
    struct rlhf__gguf_llama3 r = {theta, 8192, 1, 1, 4, p->head_dim};
    for (int32_t i = 0; i < r.dim / 2; i++)
        if ((double)x[i] > r.factor) r.factor = (double)x[i];
    if (r.factor == 1) return RLHF_OK; // nothing is scaled
    if (!rlhf__gguf_llama3_find(&r, x))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: the divisors in rope_freqs.weight are not those of the type llama3, "
                          "the only type with such a tensor that is read",
                          rlhf__gguf_path(p->file));
    RLHF_TRY(put(o, "rope_type", json_string("llama3"), err));
    RLHF_TRY(put(o, "factor", json_real(r.factor), err));
    RLHF_TRY(put(o, "low_freq_factor", json_real(r.low), err));
    RLHF_TRY(put(o, "high_freq_factor", json_real(r.high), err));
    return put(o, ORIGINAL, whole(r.context), err);
}

// ---- Phi-3 ----

static rlhf_status put_list(json_t *o, const char *field, const float *x, int32_t n,
                            struct rlhf__error *err) {
    json_t *list = json_array();
    int bad = !list;
    for (int32_t i = 0; i < n && !bad; i++)
        bad = json_array_append_new(list, json_real((double)x[i]));
    if (bad) json_decref(list);
    return put(o, field, bad ? NULL : list, err);
}

// The scale of cosines and sines is left out if it is the one that follows from the contexts.
static rlhf_status put_scale(const struct rlhf__gguf_positions *p, json_t *o, double original,
                             struct rlhf__error *err) {
    const double factor = p->context / original;
    const double own = factor > 1 ? sqrt(1 + rlhf_log(factor) / rlhf_log(original)) : 1;
    double scale = own;
    RLHF_TRY(number(p, "scaling.attn_factor", &scale, err));
    if ((float)scale == (float)own) return RLHF_OK;
    return put(o, "attention_factor", json_real(scale), err);
}

static rlhf_status put_longrope(const struct rlhf__gguf_positions *p, json_t *o, int32_t pairs,
                                double original, struct rlhf__error *err) {
    float *far = NULL, *near = NULL;
    rlhf_status st = divisors(p, "rope_factors_long.weight", pairs, &far, err);
    if (st == RLHF_OK) st = divisors(p, "rope_factors_short.weight", pairs, &near, err);
    if (st == RLHF_OK && !far != !near)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "%s: it has only one of the tensors rope_factors_long.weight and "
                        "rope_factors_short.weight",
                        rlhf__gguf_path(p->file));
    if (st == RLHF_OK && far && near) {
        st = put(o, "rope_type", json_string("longrope"), err);
        if (st == RLHF_OK) st = put_list(o, "long_factor", far, pairs, err);
        if (st == RLHF_OK) st = put_list(o, "short_factor", near, pairs, err);
        if (st == RLHF_OK) st = put_scale(p, o, original, err);
    }
    free(far);
    free(near);
    return st;
}

static rlhf_status put_phi(const struct rlhf__gguf_positions *p, json_t *config, json_t *o,
                           int32_t dim, struct rlhf__error *err) {
    double original = p->context;
    RLHF_TRY(number(p, "scaling.original_context_length", &original, err));
    RLHF_TRY(put(config, ORIGINAL, whole(original), err));
    if (dim != p->head_dim)
        RLHF_TRY(put(o, "partial_rotary_factor", json_real((double)dim / p->head_dim), err));
    return put_longrope(p, o, dim / 2, original, err);
}

// ---- Qwen3.5 ----

// The part of a head that is rotated, and which of its pairs are of which axis of an image. In a
// text, all axes have the same position.
static rlhf_status put_part(const struct rlhf__gguf_positions *p, json_t *o, int32_t dim,
                            struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = find(p, "dimension_sections");
    size_t n = 0;
    RLHF_TRY(put(o, "partial_rotary_factor", json_real((double)dim / p->head_dim), err));
    if (!v) return RLHF_OK;
    RLHF_TRY(rlhf__gguf_value_count(v, RLHF__GGUF_I64, &n, err));
    json_t *list = json_array();
    int bad = !list;
    for (size_t i = 0; i < n && i < 3 && !bad; i++)
        bad = json_array_append_new(list, json_integer(rlhf__gguf_item_int(v, i)));
    if (bad) json_decref(list);
    RLHF_TRY(put(o, "mrope_section", bad ? NULL : list, err));
    return put(o, "mrope_interleaved", json_true(), err);
}

// ---- the others ----

// Refuses factors that this program's models do not have.
static rlhf_status check_factors(const struct rlhf__gguf_positions *p, struct rlhf__error *err) {
    static const char *const names[] = {"scaling.yarn_ext_factor", "scaling.yarn_attn_factor",
                                        "scaling.attn_factor"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double x = 1;
        RLHF_TRY(number(p, names[i], &x, err));
        if (x != 1)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "%s: the key %s.rope.%s is %g; only 1 is read",
                              rlhf__gguf_path(p->file), p->arch, names[i], x);
    }
    return RLHF_OK;
}

static rlhf_status put_yarn(const struct rlhf__gguf_positions *p, json_t *o,
                            struct rlhf__error *err) {
    double original = p->context, fast = 32, slow = 1;
    RLHF_TRY(number(p, "scaling.original_context_length", &original, err));
    RLHF_TRY(number(p, "scaling.yarn_beta_fast", &fast, err));
    RLHF_TRY(number(p, "scaling.yarn_beta_slow", &slow, err));
    RLHF_TRY(put(o, ORIGINAL, whole(original), err));
    if (fast != 32) RLHF_TRY(put(o, "beta_fast", json_real(fast), err));
    if (slow != 1) RLHF_TRY(put(o, "beta_slow", json_real(slow), err));
    return RLHF_OK;
}

// Reads the key scaling.type: default, linear or yarn.
static rlhf_status put_type(const struct rlhf__gguf_positions *p, json_t *o,
                            struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = find(p, "scaling.type");
    const char *text = "none";
    size_t n = 4;
    double factor = 1;
    if (v) RLHF_TRY(rlhf__gguf_value_str(v, &text, &n, err));
    RLHF_TRY(number(p, "scaling.factor", &factor, err));
    const int linear = n == 6 && memcmp(text, "linear", 6) == 0;
    const int yarn = n == 4 && memcmp(text, "yarn", 4) == 0;
    const int phi = p->family == RLHF__GGUF_PHI3 && n == 8 && memcmp(text, "longrope", 8) == 0;
    if (phi || (n == 4 && memcmp(text, "none", 4) == 0)) return RLHF_OK;
    if (!linear && (!yarn || rlhf__gguf_is_gemma(p->family)))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: the key %s.rope.scaling.type is neither none nor linear%s",
                          rlhf__gguf_path(p->file), p->arch,
                          rlhf__gguf_is_gemma(p->family) ? "" : " nor yarn");
    RLHF_TRY(put(o, "rope_type", json_string(linear ? "linear" : "yarn"), err));
    RLHF_TRY(put(o, "factor", json_real(factor), err));
    return yarn ? put_yarn(p, o, err) : RLHF_OK;
}

static rlhf_status read_dim(const struct rlhf__gguf_positions *p, int32_t *dim,
                            struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = find(p, "dimension_count");
    const int part = p->family == RLHF__GGUF_PHI3 || p->family == RLHF__GGUF_QWEN35;
    int64_t n = p->head_dim;
    if (v) RLHF_TRY(rlhf__gguf_value_int(v, part ? 2 : p->head_dim, p->head_dim, &n, err));
    *dim = (int32_t)n;
    return RLHF_OK;
}

static rlhf_status put_all(const struct rlhf__gguf_positions *p, json_t *config, json_t *o,
                           struct rlhf__error *err) {
    double theta = 10000;
    int32_t dim = 0;
    float *x = NULL;
    RLHF_TRY(read_dim(p, &dim, err));
    RLHF_TRY(number(p, "freq_base", &theta, err));
    RLHF_TRY(put(o, "rope_type", json_string("default"), err));
    RLHF_TRY(put(o, "rope_theta", json_real(theta), err));
    RLHF_TRY(put_type(p, o, err));
    if (p->family == RLHF__GGUF_PHI3) return put_phi(p, config, o, dim, err);
    if (p->family == RLHF__GGUF_QWEN35) RLHF_TRY(put_part(p, o, dim, err));
    RLHF_TRY(check_factors(p, err));
    RLHF_TRY(divisors(p, "rope_freqs.weight", dim / 2, &x, err));
    const rlhf_status st = x ? put_llama3(p, o, theta, x, err) : RLHF_OK;
    free(x);
    return st;
}

// Layers with a window have plain positions. Their base is 10,000 for Gemma 3, and that of the
// other layers for OLMo 3, if the file gives only one.
static rlhf_status put_kinds(const struct rlhf__gguf_positions *p, json_t *full, json_t *kinds,
                             struct rlhf__error *err) {
    double theta = p->family == RLHF__GGUF_GEMMA3
                       ? 10000
                       : json_number_value(json_object_get(full, "rope_theta"));
    RLHF_TRY(number(p, "freq_base_swa", &theta, err));
    RLHF_TRY(put(kinds, "full_attention", json_incref(full), err));
    return put(kinds, "sliding_attention",
               json_pack("{s:s, s:f}", "rope_type", "default", "rope_theta", theta), err);
}

rlhf_status rlhf__gguf_rotary(const struct rlhf__gguf_positions *p, json_t *config,
                              struct rlhf__error *err) {
    json_t *o = json_object(), *kinds = json_object();
    rlhf_status st =
        o && kinds ? put_all(p, config, o, err) : RLHF__NOMEM(err, "out of memory for a config");
    if (st == RLHF_OK && p->by_kind) st = put_kinds(p, o, kinds, err);
    if (st == RLHF_OK)
        st = put(config, "rope_parameters", json_incref(p->by_kind ? kinds : o), err);
    json_decref(o);
    json_decref(kinds);
    return st;
}
