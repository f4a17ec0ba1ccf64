// gguf_rope.c: see gguf_rope.h.
#include "weights/gguf_rope.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

// The object with the scaling's fields; NULL = none.
static const json_t *scaling_of(const json_t *config) {
    const json_t *v = json_object_get(config, "rope_parameters");
    if (!json_is_object(v)) v = json_object_get(config, "rope_scaling");
    return json_is_object(v) ? v : NULL;
}

static const char *type_of(const json_t *scaling) {
    const char *type = json_string_value(json_object_get(scaling, "rope_type"));
    if (!type) type = json_string_value(json_object_get(scaling, "type"));
    return type ? type : "default";
}

static double theta_of(const json_t *config) {
    const json_t *v = json_object_get(scaling_of(config), "rope_theta");
    if (!json_is_number(v)) v = json_object_get(config, "rope_theta");
    return json_is_number(v) ? json_number_value(v) : 10000;
}

static double number(const json_t *scaling, const char *name, double fallback) {
    const json_t *v = json_object_get(scaling, name);
    return json_is_number(v) ? json_number_value(v) : fallback;
}

static rlhf_status bad(const char *dir, const char *name, const json_t *v,
                       struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (v) rlhf__json_write(&text, v, 0);
    rlhf_status st = rlhf__fail(err, RLHF_E_INVALID,
                                "%s/config.json: %s of the rotary positions is %.200s, which a "
                                "GGUF file of this architecture cannot say",
                                dir, name, v ? rlhf__buf_text(&text) : "missing");
    rlhf__buf_free(&text);
    return st;
}

// Numbers above 0 that a type must have.
static rlhf_status check_numbers(const json_t *scaling, const char *dir, const char *const *names,
                                 struct rlhf__error *err) {
    for (; *names; names++) {
        const json_t *v = json_object_get(scaling, *names);
        if (!json_is_number(v) || !(json_number_value(v) > 0) || json_number_value(v) > 1e9)
            return bad(dir, *names, v, err);
    }
    return RLHF_OK;
}

// llama.cpp takes 0.1 ln(factor) + 1, and no other scale of the attention.
static rlhf_status check_yarn(const json_t *scaling, const char *dir, struct rlhf__error *err) {
    static const char *const need[] = {"factor", "original_max_position_embeddings", NULL};
    static const char *const none[] = {"mscale", "mscale_all_dim", "attention_factor"};
    RLHF_TRY(check_numbers(scaling, dir, need, err));
    const double own = 0.1 * log(number(scaling, "factor", 1)) + 1;
    for (size_t i = 0; i < 3; i++) {
        const json_t *v = json_object_get(scaling, none[i]);
        const int same = i == 2 && json_is_number(v) && fabs(json_number_value(v) - own) < 1e-6;
        if (v && !json_is_null(v) && !same) return bad(dir, none[i], v, err);
    }
    const json_t *cut = json_object_get(scaling, "truncate");
    return cut && !json_is_true(cut) ? bad(dir, "truncate", cut, err) : RLHF_OK;
}

rlhf_status rlhf__gguf_rope_check(const json_t *config, const char *dir, const char *arch,
                                  int32_t *llama3, struct rlhf__error *err) {
    static const char *const linear[] = {"factor", NULL};
    static const char *const bands[] = {"factor", "low_freq_factor", "high_freq_factor",
                                        "original_max_position_embeddings", NULL};
    const json_t *scaling = scaling_of(config);
    const char *type = type_of(scaling);
    const double theta = theta_of(config);
    const json_t *part = json_object_get(scaling, "partial_rotary_factor");
    *llama3 = 0;
    if (!(theta > 0) || theta > 1e12)
        return rlhf__fail(err, RLHF_E_INVALID, "%s/config.json: rope_theta is %g", dir, theta);
    if (json_is_number(part) && json_number_value(part) != 1)
        return bad(dir, "partial_rotary_factor", part, err);
    if (strcmp(type, "default") == 0) return RLHF_OK;
    if (strcmp(type, "linear") == 0) return check_numbers(scaling, dir, linear, err);
    if (strcmp(type, "yarn") == 0) return check_yarn(scaling, dir, err);
    *llama3 = strcmp(type, "llama3") == 0 && strcmp(arch, "llama") == 0;
    if (!*llama3) {
        const json_t *v = json_object_get(scaling, "rope_type");
        return bad(dir, "rope_type", v ? v : json_object_get(scaling, "type"), err);
    }
    RLHF_TRY(check_numbers(scaling, dir, bands, err));
    if (number(scaling, "high_freq_factor", 0) > number(scaling, "low_freq_factor", 0))
        return RLHF_OK;
    return bad(dir, "high_freq_factor", json_object_get(scaling, "high_freq_factor"), err);
}

void rlhf__gguf_rope_put(struct rlhf__gguf *g, const json_t *config, const char *arch) {
    const json_t *scaling = scaling_of(config);
    const char *type = type_of(scaling);
    const int yarn = strcmp(type, "yarn") == 0;
    char key[96];
#define KEY(name) (snprintf(key, sizeof key, "%s.rope.%s", arch, name), key)
    rlhf__gguf_f32(g, KEY("freq_base"), theta_of(config));
    if (!yarn && strcmp(type, "linear") != 0) return;
    rlhf__gguf_str(g, KEY("scaling.type"), type);
    rlhf__gguf_f32(g, KEY("scaling.factor"), number(scaling, "factor", 1));
    if (!yarn) return;
    rlhf__gguf_u32(g, KEY("scaling.original_context_length"),
                   (uint32_t)number(scaling, "original_max_position_embeddings", 1));
    rlhf__gguf_f32(g, KEY("scaling.yarn_beta_fast"), number(scaling, "beta_fast", 32));
    rlhf__gguf_f32(g, KEY("scaling.yarn_beta_slow"), number(scaling, "beta_slow", 1));
#undef KEY
}

void rlhf__gguf_llama3_rope(const json_t *config, int32_t head_dim, float *out) {
    const json_t *scaling = scaling_of(config);
    const double theta = theta_of(config), factor = number(scaling, "factor", 1);
    const double low = number(scaling, "low_freq_factor", 1);
    const double high = number(scaling, "high_freq_factor", 4);
    const double old = number(scaling, "original_max_position_embeddings", 8192);
    for (int32_t i = 0; i < head_dim / 2; i++) {
        const double length = 2 * pi * pow(theta, 2.0 * i / head_dim); // of one turn
        const double share = (old / length - low) / (high - low);
        if (length < old / high)
            out[i] = 1;
        else if (length > old / low)
            out[i] = (float)factor;
        else
            out[i] = (float)(1 / ((1 - share) / factor + share));
    }
}
