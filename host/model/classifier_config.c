// classifier_config.c: see classifier_config.h.
#include "model/classifier_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

// "GPT2LMHeadModel" -> "GPT2": the architecture's name without what it is used for.
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
    if (name) return name;
    const char *type = json_string_value(json_object_get(config, "model_type"));
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
    // transformers looks for the last token before padding by this id.
    if (!json_object_get(m->config, "pad_token_id") &&
        json_is_integer(json_object_get(m->config, "eos_token_id")))
        json_object_set(m->config, "pad_token_id", json_object_get(m->config, "eos_token_id"));
    rlhf__labels_finish(&m->labels);
    rlhf_status st = rlhf__hf_set_labels(m->config, labels, err);
    return st == RLHF_OK ? rlhf__hf_labels(m->config, m->dir, &m->labels, err) : st;
}
