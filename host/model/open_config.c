// open_config.c: what a model's config.json says of labels, pooling and use (open_inner.h).
#include "model/open_inner.h"

#include "model/adapter.h"
#include "model/config_common.h"

#include <string.h>

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

// The head of a classifier is read with it: it has as many outputs as its config.json has labels.
static rlhf_status check_labels(const struct rlhf__model *m, const struct rlhf__model_spec *spec,
                                struct rlhf__error *err) {
    const int reads = spec->start == RLHF__START_WEIGHTS || spec->start == RLHF__START_HEADS;
    if (!reads || !rlhf__model_is_classifier(m->config)) return RLHF_OK;
    if (m->labels.n == m->n_labels) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the %s '%s' is a classifier of %d label%s, whose head would be trained on, "
                      "and %d %s wanted; start from a language model, or from a classifier of as "
                      "many",
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
            "%s/config.json names a classifier but num_labels is 0 and there is no id2label",
            m->dir);
    RLHF_TRY(check_labels(m, spec, err));
    RLHF_TRY(rlhf__config_labels(m->config, m->dir, m->n_labels, err));
    return read_pooling(m, spec, &m->pooling, err);
}
