// model_config.c: see model_config.h.
#include "model/model_config.h"

#include "base/json.h"
#include "model/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- fields of every architecture ----

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

// Returns the use in an architecture's name, e.g. "ForCausalLM" for "LlamaForCausalLM", or NULL if
// the name contains none.
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

// ---- reading ----

static rlhf_status read_pooling(const struct rlhf__model *m, const struct rlhf__model_spec *spec,
                                int32_t *out, struct rlhf__error *err) {
    static const char *const names[] = {"mean", "first", "last"};
    *out = spec->pooling;
    const json_t *v = json_object_get(m->config, "rlhf_pooling");
    if (*out || !v) return RLHF_OK;
    for (int32_t i = 0; i < 3; i++)
        if (json_is_string(v) && strcmp(json_string_value(v), names[i]) == 0) *out = i + 1;
    if (*out) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s/config.json: rlhf_pooling must be one of mean, first, last", m->dir);
}

// A classifier's head has one output per label in config.json.
static rlhf_status check_labels(const struct rlhf__model *m, const struct rlhf__model_spec *spec,
                                struct rlhf__error *err) {
    const int reads = spec->start == RLHF__START_WEIGHTS || spec->start == RLHF__START_HEADS;
    if (!reads || !rlhf__model_is_classifier(m->config)) return RLHF_OK;
    if (m->labels.n == m->n_labels) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the %s '%s' is a classifier of %d label%s, whose head would be trained "
                      "further, but %d %s needed; start from a language model, or from a "
                      "classifier of as many labels",
                      m->role, m->dir, (int)m->labels.n, m->labels.n == 1 ? "" : "s",
                      (int)m->n_labels, m->n_labels == 1 ? "is" : "are");
}

rlhf_status rlhf__model_read_config(struct rlhf__model *m, const struct rlhf__model_spec *spec,
                                    struct rlhf__error *err) {
    const char *model_type;
    rlhf_status st = rlhf__adapter_config(m->dir, &m->peft, &m->config, err);
    if (st == RLHF_OK) st = rlhf__hf_model_type(m->config, m->dir, &model_type, err);
    if (st == RLHF_OK) st = rlhf__config_common(m->config, m->dir, err);
    if (st == RLHF_OK && spec->language) st = rlhf__model_has_language(m, err);
    if (st != RLHF_OK) return st;
    m->n_labels = spec->n_labels;
    if (m->n_labels < 0 && !rlhf__model_is_classifier(m->config)) m->n_labels = 0;
    if (m->n_labels == 0) return RLHF_OK;
    st = rlhf__hf_labels(m->config, m->dir, &m->labels, err);
    if (st != RLHF_OK) return st;
    if (m->n_labels < 0) m->n_labels = m->labels.n;
    if (m->n_labels < 1)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s/config.json names a classifier, but num_labels is 0 and id2label is missing",
            m->dir);
    RLHF_TRY(check_labels(m, spec, err));
    RLHF_TRY(rlhf__config_labels(m->config, m->dir, m->n_labels, err));
    return read_pooling(m, spec, &m->pooling, err);
}

// ---- labels of a score head ----

static rlhf_status add(struct rlhf__labels *l, const char *text, size_t n,
                       struct rlhf__error *err) {
    char **more = realloc(l->name, ((size_t)l->n + 1) * sizeof *more);
    if (more) l->name = more;
    char *copy = more ? strndup(text, n) : NULL;
    if (!copy) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for labels");
    if (n == 0 || rlhf__labels_find(l, copy) >= 0) {
        free(copy);
        return rlhf__fail(err, RLHF_E_INVALID,
                          "score.labels has an empty or repeated name; give one name a class, "
                          "separated by commas");
    }
    l->name[l->n++] = copy;
    return RLHF_OK;
}

rlhf_status rlhf__score_labels(const char *list, struct rlhf__labels *out,
                               struct rlhf__error *err) {
    memset(out, 0, sizeof *out);
    if (!list[0]) return RLHF_OK;
    for (;;) {
        size_t n = strcspn(list, ",");
        rlhf_status st = add(out, list, n, err);
        if (st != RLHF_OK) return st;
        if (!list[n]) break;
        list += n + 1;
    }
    if (out->n >= 2) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "score.labels names one class; give two or more");
}

rlhf_status rlhf__score_labels_numbered(int32_t n, struct rlhf__labels *out,
                                        struct rlhf__error *err) {
    for (int32_t i = 0; i < n; i++) {
        char name[32];
        int len = snprintf(name, sizeof name, "LABEL_%d", i);
        rlhf_status st = add(out, name, (size_t)len, err);
        if (st != RLHF_OK) return st;
    }
    return RLHF_OK;
}

// Returns the length of an architecture's name without its use, e.g. the length of "GPT2" for
// "GPT2LMHeadModel".
static size_t stem_length(const char *name) {
    static const char *const endings[] = {"ForSequenceClassification", "ForMaskedLM", "ForCausalLM",
                                          "LMHeadModel", "Model"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t m = strlen(endings[i]);
        if (n > m && strcmp(name + n - m, endings[i]) == 0) return n - m;
    }
    return n;
}

static const char *known_stem(const json_t *config) {
    const char *name =
        json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    const char *type = json_string_value(json_object_get(config, "model_type"));
    // Gemma3ForSequenceClassification and Qwen3_5ForSequenceClassification also read images.
    if (type && strcmp(type, "gemma3_text") == 0) return "Gemma3Text";
    if (type && strcmp(type, "qwen3_5_text") == 0) return "Qwen3_5Text";
    if (name) return name;
    if (type && strcmp(type, "gpt2") == 0) return "GPT2";
    if (type && strcmp(type, "distilbert") == 0) return "DistilBert";
    return type ? type : "";
}

rlhf_status rlhf__classifier_architecture(json_t *config, struct rlhf__error *err) {
    char name[256];
    const char *stem = known_stem(config);
    snprintf(name, sizeof name, "%.*sForSequenceClassification", (int)stem_length(stem), stem);
    json_t *list = json_array();
    json_array_append_new(list, json_string(name));
    if (json_object_set_new(config, "architectures", list) == 0) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for config.json");
}

rlhf_status rlhf__classifier_config(struct rlhf__model *m, const struct rlhf__labels *labels,
                                    struct rlhf__error *err) {
    static const char *const pooling[] = {NULL, "mean", "first", "last"};
    RLHF_TRY(rlhf__classifier_architecture(m->config, err));
    if (m->pooling > 0)
        json_object_set_new(m->config, "rlhf_pooling", json_string(pooling[m->pooling]));
    // transformers needs this id to find the last token before padding.
    if (!json_object_get(m->config, "pad_token_id") &&
        json_is_integer(json_object_get(m->config, "eos_token_id")))
        json_object_set(m->config, "pad_token_id", json_object_get(m->config, "eos_token_id"));
    rlhf__labels_finish(&m->labels);
    rlhf_status st = rlhf__hf_set_labels(m->config, labels, err);
    return st == RLHF_OK ? rlhf__hf_labels(m->config, m->dir, &m->labels, err) : st;
}
