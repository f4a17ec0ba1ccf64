// gguf_rope.c: see gguf_rope.h.
#include "gguf_write/gguf_rope.h"

#include "base/json.h"
#include "weights/gguf_llama3.h"

#include <math.h>
#include <rlhf/exact.h>
#include <stdio.h>
#include <string.h>

#define ORIGINAL "original_max_position_embeddings"
#define PART     "partial_rotary_factor"

#define LOCAL_BASE 1e4 // Gemma 3's rope_theta in layers with a window
#define OLMO3_BASE 5e5

// The fields from which the GGUF keys are made, with all defaults filled in. If a config has
// several fields of the same meaning, the struct has the one that transformers and this program's
// models use.
struct rope {
    const json_t *o; // the object with the fields; NULL = none
    const char *type;
    double theta, factor, context; // context: before stretching
    double part;                   // of a head that is rotated
};

static int is_type(const json_t *config, const char *type) {
    const char *model = json_string_value(json_object_get(config, "model_type"));
    return model && strcmp(model, type) == 0;
}

static int is_phi(const json_t *config) { return is_type(config, "phi3"); }
static int is_qwen35(const json_t *config) { return is_type(config, "qwen3_5_text"); }

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

static int is_olmo3(const json_t *config) { return is_type(config, "olmo3"); }

// Returns 1 if layers with a window have positions of their own.
static int has_kinds(const json_t *config) {
    return is_type(config, "gemma3_text") || is_olmo3(config);
}

// The positions of the layers of that kind.
static const json_t *kind_of(const json_t *config, const char *kind) {
    return json_object_get(json_object_get(config, "rope_parameters"), kind);
}

static struct rope rope_of(const json_t *config) {
    const int kinds = has_kinds(config);
    const double theta = is_type(config, "smollm3")         ? 2e6
                         : is_olmo3(config)                 ? OLMO3_BASE
                         : kinds || is_type(config, "lfm2") ? 1e6
                                                            : 10000;
    const json_t *old = json_object_get(config, "rope_scaling");
    const json_t *now =
        kinds ? kind_of(config, "full_attention") : json_object_get(config, "rope_parameters");
    struct rope r = {.o = given(old) ? old : now};
    const double context = number(config, "max_position_embeddings", 0);
    r.type = json_string_value(json_object_get(r.o, "rope_type"));
    if (!r.type) r.type = json_string_value(json_object_get(r.o, "type"));
    if (!r.type) r.type = "default";
    r.theta = number(kinds ? now : r.o, "rope_theta", number(config, "rope_theta", theta));
    r.context = number(config, ORIGINAL, is_phi(config) ? 4096 : number(r.o, ORIGINAL, context));
    r.factor = number(r.o, "factor", 0);
    if (is_phi(config) && (strcmp(r.type, "su") == 0 || strcmp(r.type, "yarn") == 0))
        r.type = "longrope";
    if (r.factor == 0 && r.context > 0) r.factor = context / r.context;
    r.part = number(r.o, PART, number(config, PART, is_qwen35(config) ? 0.25 : 1));
    return r;
}

static rlhf_status bad(const char *dir, const char *name, const json_t *v,
                       struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (v) rlhf__json_write(&text, v, 0);
    rlhf_status st = rlhf__fail(err, RLHF_E_INVALID,
                                "%s/config.json: %s of the rotary positions is %.200s, which a "
                                "GGUF file of this architecture cannot represent",
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

static rlhf_status check_kinds(const json_t *o, const char *dir, int has_part,
                               struct rlhf__error *err) {
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
    const json_t *part = json_object_get(o, PART);
    if (has_part) return check_number(o, dir, PART, 1, err);
    if (part && !json_is_null(part) && !(json_is_number(part) && json_number_value(part) == 1))
        return bad(dir, PART, part, err);
    return RLHF_OK;
}

// In layers with a window, llama.cpp's positions are plain. Their base is 10,000 for Gemma 3, and
// that of the other layers for OLMo 3.
static rlhf_status check_local(const json_t *config, const char *dir, struct rlhf__error *err) {
    const int olmo = is_olmo3(config);
    const double want = olmo ? rope_of(config).theta : LOCAL_BASE;
    const json_t *o = kind_of(config, "sliding_attention");
    const json_t *type = json_object_get(o, "rope_type");
    const char *name = json_string_value(type);
    const double base = number(
        o, "rope_theta", olmo ? OLMO3_BASE : number(config, "rope_local_base_freq", LOCAL_BASE));
    RLHF_TRY(check_kinds(kind_of(config, "full_attention"), dir, 0, err));
    RLHF_TRY(check_kinds(o, dir, 0, err));
    RLHF_TRY(check_number(config, dir, "rope_local_base_freq", 1e15, err));
    if (name && strcmp(name, "default") != 0) return bad(dir, "rope_type", type, err);
    if (base == want) return RLHF_OK;
    const json_t *v = json_object_get(o, "rope_theta");
    if (olmo && !v) return bad(dir, "rope_theta", json_object_get(config, "rope_theta"), err);
    return v ? bad(dir, "rope_theta", v, err)
             : bad(dir, "rope_local_base_freq", json_object_get(config, "rope_local_base_freq"),
                   err);
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

static rlhf_status bad_type(const struct rope *r, const char *dir, struct rlhf__error *err) {
    const json_t *v = json_object_get(r->o, "rope_type");
    return bad(dir, "rope_type", v ? v : json_object_get(r->o, "type"), err);
}

// Phi-3: the part of each head and, for longrope, two lists with a number above 0 for each pair.
static rlhf_status check_phi(const struct rope *r, const char *dir, int32_t head_dim,
                             struct rlhf__gguf_rope *out, struct rlhf__error *err) {
    static const struct rlhf__gguf_divisors lists[] = {
        {"rope_factors_long.weight", "long_factor"}, {"rope_factors_short.weight", "short_factor"}};
    out->dim = (int32_t)(head_dim * r->part);
    if (out->dim < 2 || out->dim % 2)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: " PART " %g rotates %d elements of a head of %d, which "
                          "is not an even number of at least 2",
                          dir, r->part, (int)out->dim, (int)head_dim);
    if (strcmp(r->type, "default") == 0) return RLHF_OK;
    if (strcmp(r->type, "longrope") != 0) return bad_type(r, dir, err);
    RLHF_TRY(check_number(r->o, dir, "attention_factor", 1e6, err));
    for (; out->n < 2; out->n++) {
        const json_t *list = json_object_get(r->o, lists[out->n].list);
        int fine = json_array_size(list) == (size_t)out->dim / 2;
        for (size_t k = 0; k < json_array_size(list); k++)
            fine = fine && json_number_value(json_array_get(list, k)) > 0;
        if (!fine) return bad(dir, lists[out->n].list, list, err);
        out->divisors[out->n] = lists[out->n];
    }
    return RLHF_OK;
}

// The part of Qwen3.5's heads that is rotated, and the axes of its pairs.
static rlhf_status check_part(const json_t *config, const struct rope *r, const char *dir,
                              int32_t head_dim, struct rlhf__gguf_rope *out,
                              struct rlhf__error *err) {
    const json_t *list = json_object_get(r->o, "mrope_section");
    out->dim = (int32_t)(head_dim * r->part); // rounded down, as in transformers
    if (out->dim < 2 || out->dim % 2) {
        const json_t *v = json_object_get(r->o, PART);
        return bad(dir, PART, v ? v : json_object_get(config, PART), err);
    }
    static const int32_t usual[] = {11, 11, 10};
    out->has_sections = 1;
    for (size_t i = 0; i < 3; i++)
        out->sections[i] = json_array_size(list) == 3
                               ? (int32_t)json_integer_value(json_array_get(list, i))
                               : usual[i];
    const int fine = !list || json_is_null(list) || json_array_size(list) == 3;
    return fine ? RLHF_OK : bad(dir, "mrope_section", list, err);
}

rlhf_status rlhf__gguf_rope_check(const json_t *config, const char *dir, const char *arch,
                                  int32_t head_dim, struct rlhf__gguf_rope *out,
                                  struct rlhf__error *err) {
    static const char *const linear[] = {"factor", NULL};
    static const char *const bands[] = {"factor", "low_freq_factor", "high_freq_factor", NULL};
    const int phi = is_phi(config), has_part = phi || is_qwen35(config);
    *out = (struct rlhf__gguf_rope){.dim = head_dim};
    RLHF_TRY(check_number(config, dir, "rope_theta", 1e15, err));
    RLHF_TRY(check_number(config, dir, ORIGINAL, 1e9, err));
    RLHF_TRY(check_kinds(json_object_get(config, "rope_scaling"), dir, has_part, err));
    RLHF_TRY(check_kinds(json_object_get(config, "rope_parameters"), dir, has_part, err));
    const int gemma = is_type(config, "gemma3_text");
    if (has_kinds(config)) RLHF_TRY(check_local(config, dir, err));
    const struct rope r = rope_of(config);
    if (has_part) RLHF_TRY(check_number(config, dir, PART, 1, err));
    if (is_qwen35(config)) RLHF_TRY(check_part(config, &r, dir, head_dim, out, err));
    if (phi) return check_phi(&r, dir, head_dim, out, err);
    if (strcmp(r.type, "default") == 0) return RLHF_OK;
    if (strcmp(r.type, "linear") == 0) return check_numbers(&r, dir, linear, err);
    const int llama3 = strcmp(r.type, "llama3") == 0 && strcmp(arch, "llama") == 0;
    if (!llama3 && (gemma || strcmp(r.type, "yarn") != 0)) return bad_type(&r, dir, err);
    if (!(r.context > 0)) return bad(dir, ORIGINAL, json_object_get(r.o, ORIGINAL), err);
    if (!llama3) return check_yarn(&r, dir, err);
    out->divisors[out->n++].name = "rope_freqs.weight";
    RLHF_TRY(check_numbers(&r, dir, bands, err));
    if (number(r.o, "high_freq_factor", 0) > number(r.o, "low_freq_factor", 0)) return RLHF_OK;
    return bad(dir, "high_freq_factor", json_object_get(r.o, "high_freq_factor"), err);
}

// The scale of cosines and sines of longrope.
static double longrope_scale(const struct rope *r) {
    const double own = r->factor > 1 ? sqrt(1 + rlhf_log(r->factor) / rlhf_log(r->context)) : 1;
    return number(r->o, "attention_factor", own);
}

void rlhf__gguf_rope_put(struct rlhf__gguf *g, const json_t *config, const char *arch,
                         const struct rlhf__gguf_rope *of) {
    const struct rope r = rope_of(config);
    const int yarn = strcmp(r.type, "yarn") == 0;
    char key[96];
#define KEY(name) (snprintf(key, sizeof key, "%s.rope.%s", arch, name), key)
    if (strncmp(arch, "gemma", 5) != 0) // as llama.cpp's converter
        rlhf__gguf_u32(g, KEY("dimension_count"), (uint32_t)of->dim);
    rlhf__gguf_f32(g, KEY("freq_base"), r.theta);
    if (of->has_sections) { // llama.cpp wants a fourth
        rlhf__gguf_array(g, KEY("dimension_sections"), RLHF__GGUF_I32, 4);
        for (size_t i = 0; i < 4; i++)
            rlhf__gguf_item_i32(g, i < 3 ? of->sections[i] : 0);
    }
    if (is_phi(config))
        rlhf__gguf_u32(g, KEY("scaling.original_context_length"), (uint32_t)r.context);
    if (strcmp(r.type, "longrope") == 0)
        rlhf__gguf_f32(g, KEY("scaling.attn_factor"), longrope_scale(&r));
    if (is_type(config, "gemma3_text")) rlhf__gguf_f32(g, KEY("freq_base_swa"), LOCAL_BASE);
    if (!yarn && strcmp(r.type, "linear") != 0) return;
    rlhf__gguf_str(g, KEY("scaling.type"), r.type);
    rlhf__gguf_f32(g, KEY("scaling.factor"), r.factor);
    if (!yarn) return;
    rlhf__gguf_u32(g, KEY("scaling.original_context_length"), (uint32_t)r.context);
    rlhf__gguf_f32(g, KEY("scaling.yarn_beta_fast"), number(r.o, "beta_fast", 32));
    rlhf__gguf_f32(g, KEY("scaling.yarn_beta_slow"), number(r.o, "beta_slow", 1));
#undef KEY
}

void rlhf__gguf_rope_divisors(const json_t *config, const struct rlhf__gguf_rope *of, int32_t k,
                              float *out) {
    const struct rope r = rope_of(config);
    const json_t *list = of->divisors[k].list ? json_object_get(r.o, of->divisors[k].list) : NULL;
    const struct rlhf__gguf_llama3 bands = {r.theta,
                                            r.context,
                                            r.factor,
                                            number(r.o, "low_freq_factor", 1),
                                            number(r.o, "high_freq_factor", 4),
                                            of->dim};
    for (int32_t i = 0; i < of->dim / 2; i++)
        out[i] = list ? (float)json_number_value(json_array_get(list, (size_t)i))
                      : rlhf__gguf_llama3_divisor(&bands, i);
}
