// config_common.c: see config_common.h.
#include "model/config_common.h"

#include "base/json.h"

#include <string.h>

static int is_one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (!strcmp(name, *names)) return 1;
    return 0;
}

static rlhf_status check_quantization(const json_t *config, const char *dir,
                                      struct rlhf__error *err) {
    const json_t *v = json_object_get(config, "quantization_config");
    if (!v || json_is_null(v)) return RLHF_OK;
    const char *method = json_string_value(json_object_get(v, "quant_method"));
    if (!method && json_is_true(json_object_get(v, "load_in_4bit"))) method = "bitsandbytes, 4 bit";
    if (!method && json_is_true(json_object_get(v, "load_in_8bit"))) method = "bitsandbytes, 8 bit";
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s/config.json: quantization_config: quantized weights (%.60s) are not "
                      "read; take the model in float32, float16 or bfloat16",
                      dir, method ? method : "by no method that it names");
}

static rlhf_status check_dtype(const json_t *config, const char *dir, const char *key,
                               const char **found, struct rlhf__error *err) {
    static const char *const known[] = {"float32", "float16", "bfloat16", "auto", NULL};
    const json_t *v = json_object_get(config, key);
    const char *name = json_string_value(v);
    *found = NULL;
    if (!v || json_is_null(v)) return RLHF_OK;
    if (name && !strncmp(name, "torch.", 6)) name += 6;
    *found = name;
    if (name && is_one_of(name, known)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s/config.json: %s is %s%.40s%s; allowed: float32, float16, bfloat16", dir,
                      key, name ? "'" : "", name ? name : rlhf__json_kind(v), name ? "'" : "");
}

static rlhf_status check_dtypes(const json_t *config, const char *dir, struct rlhf__error *err) {
    const char *now, *before;
    RLHF_TRY(check_dtype(config, dir, "dtype", &now, err));
    RLHF_TRY(check_dtype(config, dir, "torch_dtype", &before, err));
    if (!now || !before || !strcmp(now, before)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s/config.json: dtype is '%s' but torch_dtype '%s'; one thing has two names",
                      dir, now, before);
}

// "LlamaForCausalLM" -> "ForCausalLM": what the architecture is used for; NULL: it does not say.
static const char *use_of(const char *name) {
    for (const char *s = name; (s = strstr(s, "For")); s++)
        if (s > name && s[3] >= 'A' && s[3] <= 'Z') return s;
    const size_t n = strlen(name), m = strlen("DoubleHeadsModel");
    return n > m && !strcmp(name + n - m, "DoubleHeadsModel") ? name + n - m : NULL;
}

static rlhf_status check_architectures(const json_t *config, const char *dir,
                                       struct rlhf__error *err) {
    static const char *const uses[] = {"ForCausalLM", "ForSequenceClassification", "ForMaskedLM",
                                       NULL};
    const json_t *v = json_object_get(config, "architectures");
    if (!v || json_is_null(v)) return RLHF_OK;
    if (!json_is_array(v))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: architectures is %s, expected a list of names", dir,
                          rlhf__json_kind(v));
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *name = json_string_value(json_array_get(v, i));
        if (!name)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s/config.json: architectures holds %s, expected names", dir,
                              rlhf__json_kind(json_array_get(v, i)));
        const char *use = use_of(name);
        if (use && !is_one_of(use, uses))
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "%s/config.json: architectures: a %.80s is not used here; what is "
                              "ends in ForCausalLM, LMHeadModel or ForSequenceClassification (to "
                              "start from: ForMaskedLM, Model)",
                              dir, name);
    }
    return RLHF_OK;
}

rlhf_status rlhf__config_common(const json_t *config, const char *dir, struct rlhf__error *err) {
    RLHF_TRY(check_quantization(config, dir, err));
    RLHF_TRY(check_dtypes(config, dir, err));
    RLHF_TRY(check_architectures(config, dir, err));
    if (json_is_true(json_object_get(config, "is_encoder_decoder")))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s/config.json: is_encoder_decoder true is not implemented", dir);
    const json_t *pruned = json_object_get(config, "pruned_heads");
    if (json_object_size(pruned) || json_array_size(pruned))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s/config.json: pruned_heads is not implemented; it must be empty", dir);
    return RLHF_OK;
}

rlhf_status rlhf__config_labels(const json_t *config, const char *dir, int32_t labels,
                                struct rlhf__error *err) {
    const json_t *problem = json_object_get(config, "problem_type");
    const json_t *names = json_object_get(config, "id2label"),
                 *number = json_object_get(config, "num_labels");
    if (json_is_object(names) && json_is_integer(number) &&
        json_integer_value(number) != (json_int_t)json_object_size(names))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: num_labels is %lld but id2label has %zu entries", dir,
                          (long long)json_integer_value(number), json_object_size(names));
    const char *name = json_string_value(problem);
    if (problem && !json_is_null(problem) && !name)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: problem_type is %s, expected a name", dir,
                          rlhf__json_kind(problem));
    if (name && labels > 1 && strcmp(name, "single_label_classification") != 0)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s/config.json: problem_type '%.60s' with %d labels is not implemented; "
                          "of several labels a text has one (single_label_classification)",
                          dir, name, (int)labels);
    return RLHF_OK;
}
