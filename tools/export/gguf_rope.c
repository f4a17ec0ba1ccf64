// gguf_rope.c: see gguf_rope.h.
#include "export/gguf_rope.h"

#include "base/json.h"

#include <math.h>
#include <rlhf/exact.h>
#include <stdio.h>
#include <string.h>

#define ORIGINAL "original_max_position_embeddings"

static const double pi = 3.14159265358979323846;

// The fields from which the GGUF keys are made, with all defaults filled in. If a config has
// several fields of the same meaning, the struct has the one that transformers and this program's
// models use.
struct rope {
    const json_t *o; // the object with the fields; NULL = none
    const char *type;
    double theta, factor, context; // context: before stretching
};

static double number(const json_t *o, const char *name, double fallback) {
    const json_t *v = json_object_get(o, name);
    return json_is_number(v) && json_number_value(v) != 0 ? json_number_value(v) : fallback;
}

// Returns 1 if the object describes rotary positions. If rope_scaling (in older files) describes
// them, rope_of() ignores rope_parameters.
static int given(const json_t *o) {
    return json_is_string(json_object_get(o, "rope_type")) ||
           json_is_string(json_object_get(o, "type")) || number(o, "rope_theta", 0) != 0 ||
           number(o, "factor", 0) != 0;
}

static struct rope rope_of(const json_t *config) {
    const char *model = json_string_value(json_object_get(config, "model_type"));
    const double theta = model && strcmp(model, "smollm3") == 0 ? 2e6 : 10000;
    const json_t *old = json_object_get(config, "rope_scaling");
    struct rope r = {.o = given(old) ? old : json_object_get(config, "rope_parameters")};
    const double context = number(config, "max_position_embeddings", 0);
    r.type = json_string_value(json_object_get(r.o, "rope_type"));
    if (!r.type) r.type = json_string_value(json_object_get(r.o, "type"));
    if (!r.type) r.type = "default";
    r.theta = number(r.o, "rope_theta", number(config, "rope_theta", theta));
    r.context = number(config, ORIGINAL, number(r.o, ORIGINAL, context));
    r.factor = number(r.o, "factor", 0);
    if (r.factor == 0 && strcmp(r.type, "yarn") == 0 && r.context > 0)
        r.factor = context / r.context;
    return r;
}

static rlhf_status bad(const char *dir, const char *name, const json_t *v,
                       struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (v) rlhf__json_write(&text, v, 0);
    rlhf_status st = rlhf__fail(err, RLHF_E_INVALID,
                                "%s/config.json: %s of the rotary positions is %.200s, which a "
                                "GGUF file of this architecture cannot say",
                                dir, name, v ? rlhf__buf_text(&text) : "missing");
    rlhf__buf_finish(&text);
    return st;
}

// Checks that the numbers that a rope type requires are present and above 0.
static rlhf_status check_numbers(const struct rope *r, const char *dir, const char *const *names,
                                 struct rlhf__error *err) {
    for (; *names; names++) {
        const json_t *v = json_object_get(r->o, *names);
        if (!json_is_number(v) || !(json_number_value(v) > 0)) return bad(dir, *names, v, err);
    }
    return RLHF_OK;
}

// Refuse a field that is neither absent nor a number from 0 to `max`, as the model loader does.
// Without this check, a field of the wrong JSON type would count as absent.
static rlhf_status check_number(const json_t *o, const char *dir, const char *name, double max,
                                struct rlhf__error *err) {
    const json_t *v = json_object_get(o, name);
    const double x = json_number_value(v);
    if (!v || json_is_null(v) || (json_is_number(v) && x >= 0 && x <= max)) return RLHF_OK;
    return bad(dir, name, v, err);
}

static rlhf_status check_kinds(const json_t *o, const char *dir, struct rlhf__error *err) {
    static const char *const texts[] = {"rope_type", "type"};
    static const char *const numbers[] = {"factor",    "low_freq_factor", "high_freq_factor",
                                          "beta_fast", "beta_slow",       ORIGINAL};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const json_t *v = json_object_get(o, texts[i]);
        if (v && !json_is_null(v) && !json_is_string(v)) return bad(dir, texts[i], v, err);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        RLHF_TRY(check_number(o, dir, numbers[i], 1e9, err));
    RLHF_TRY(check_number(o, dir, "rope_theta", 1e15, err));
    const json_t *part = json_object_get(o, "partial_rotary_factor");
    if (part && !json_is_null(part) && !(json_is_number(part) && json_number_value(part) == 1))
        return bad(dir, "partial_rotary_factor", part, err);
    return RLHF_OK;
}

// llama.cpp scales the attention by 0.1 ln(factor) + 1, and supports no other scale.
static rlhf_status check_yarn(const struct rope *r, const char *dir, struct rlhf__error *err) {
    static const char *const none[] = {"mscale", "mscale_all_dim", "attention_factor"};
    const double own = r->factor > 1 ? 0.1 * rlhf_log(r->factor) + 1 : 1;
    for (size_t i = 0; i < 3; i++) {
        const json_t *v = json_object_get(r->o, none[i]);
        const int same = i == 2 && json_is_number(v) && fabs(json_number_value(v) - own) < 1e-6;
        if (v && !json_is_null(v) && !same) return bad(dir, none[i], v, err);
    }
    const json_t *cut = json_object_get(r->o, "truncate");
    return cut && !json_is_true(cut) ? bad(dir, "truncate", cut, err) : RLHF_OK;
}

rlhf_status rlhf__gguf_rope_check(const json_t *config, const char *dir, const char *arch,
                                  int32_t *llama3, struct rlhf__error *err) {
    static const char *const linear[] = {"factor", NULL};
    static const char *const bands[] = {"factor", "low_freq_factor", "high_freq_factor", NULL};
    *llama3 = 0;
    RLHF_TRY(check_number(config, dir, "rope_theta", 1e15, err));
    RLHF_TRY(check_number(config, dir, ORIGINAL, 1e9, err));
    RLHF_TRY(check_kinds(json_object_get(config, "rope_scaling"), dir, err));
    RLHF_TRY(check_kinds(json_object_get(config, "rope_parameters"), dir, err));
    const struct rope r = rope_of(config);
    if (strcmp(r.type, "default") == 0) return RLHF_OK;
    if (strcmp(r.type, "linear") == 0) return check_numbers(&r, dir, linear, err);
    *llama3 = strcmp(r.type, "llama3") == 0 && strcmp(arch, "llama") == 0;
    if (!*llama3 && strcmp(r.type, "yarn") != 0) {
        const json_t *v = json_object_get(r.o, "rope_type");
        return bad(dir, "rope_type", v ? v : json_object_get(r.o, "type"), err);
    }
    if (!(r.context > 0)) return bad(dir, ORIGINAL, json_object_get(r.o, ORIGINAL), err);
    if (!*llama3) return check_yarn(&r, dir, err);
    RLHF_TRY(check_numbers(&r, dir, bands, err));
    if (number(r.o, "high_freq_factor", 0) > number(r.o, "low_freq_factor", 0)) return RLHF_OK;
    return bad(dir, "high_freq_factor", json_object_get(r.o, "high_freq_factor"), err);
}

void rlhf__gguf_rope_put(struct rlhf__gguf *g, const json_t *config, const char *arch) {
    const struct rope r = rope_of(config);
    const int yarn = strcmp(r.type, "yarn") == 0;
    char key[96];
#define KEY(name) (snprintf(key, sizeof key, "%s.rope.%s", arch, name), key)
    rlhf__gguf_f32(g, KEY("freq_base"), r.theta);
    if (!yarn && strcmp(r.type, "linear") != 0) return;
    rlhf__gguf_str(g, KEY("scaling.type"), r.type);
    rlhf__gguf_f32(g, KEY("scaling.factor"), r.factor);
    if (!yarn) return;
    rlhf__gguf_u32(g, KEY("scaling.original_context_length"), (uint32_t)r.context);
    rlhf__gguf_f32(g, KEY("scaling.yarn_beta_fast"), number(r.o, "beta_fast", 32));
    rlhf__gguf_f32(g, KEY("scaling.yarn_beta_slow"), number(r.o, "beta_slow", 1));
#undef KEY
}

void rlhf__gguf_llama3_rope(const json_t *config, int32_t head_dim, float *out) {
    const struct rope r = rope_of(config);
    const double low = number(r.o, "low_freq_factor", 1), high = number(r.o, "high_freq_factor", 4);
    for (int32_t i = 0; i < head_dim / 2; i++) {
        // The number of tokens in one full turn.
        const double length = 2 * pi * rlhf_pow(r.theta, 2.0 * i / head_dim);
        const double share = (r.context / length - low) / (high - low);
        if (length < r.context / high)
            out[i] = 1;
        else if (length > r.context / low)
            out[i] = (float)r.factor;
        else
            out[i] = (float)(1 / ((1 - share) / r.factor + share));
    }
}
