// surplus.c: see surplus.h.
#include "model/surplus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Names of heads. A name that ends in a dot means all tensors below it.
static const char *const heads[] = {"score.weight",      "classifier.",      "pre_classifier.",
                                    "vocab_transform.",  "vocab_projector.", "qa_outputs.",
                                    "vocab_layer_norm.", "lm_head.weight"};

static int may_be_left(const char *name) {
    if (rlhf__tensor_is_buffer(name) || rlhf__tensor_is_value_head(name)) return 1;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const size_t n = strlen(heads[i]);
        if (heads[i][n - 1] == '.' ? !strncmp(name, heads[i], n) : !strcmp(name, heads[i]))
            return 1;
    }
    return 0;
}

static rlhf_status check_tied(const struct rlhf__model *m, const struct rlhf__tensor *head,
                              const struct rlhf__tensor *embedding, struct rlhf__error *err) {
    int same = 1;
    if (m->n_labels > 0 || !embedding || embedding == head) return RLHF_OK;
    RLHF_TRY(rlhf__tensor_same(head, embedding, &same, err));
    if (same) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: %s differs from %s, but %s/config.json ties them; set "
                      "tie_word_embeddings to false for a separate head",
                      head->file, head->name, embedding->name, m->dir);
}

// ---- layers that the config does not describe ----

static const char *without_prefix(const struct rlhf__model *m, const char *name) {
    const char *prefix = m->info.base_prefix;
    const size_t n = prefix ? strlen(prefix) : 0;
    return n && strncmp(name, prefix, n) == 0 ? name + n : name;
}

// The names of the parameters, without the prefix of the base model. NULL if memory runs out.
static json_t *names_of(const struct rlhf__model *m) {
    json_t *names = json_object();
    for (uint32_t i = 0; names && i < m->n_tensors; i++)
        if (json_object_set_new(names, without_prefix(m, m->params[i].name), json_true()) != 0) {
            json_decref(names);
            names = NULL;
        }
    return names;
}

// The number of the layer to which a tensor belongs, if the model lacks this layer but its first
// layer has such a tensor. Otherwise -1.
static int64_t layer_beyond(const struct rlhf__model *m, const json_t *names, const char *name) {
    const char *s = without_prefix(m, name), *at = s, *end = s;
    char first[512];
    if (json_object_get(names, s)) return -1;
    for (; at; at = strchr(at, '.') ? strchr(at, '.') + 1 : NULL) {
        end = at + strspn(at, "0123456789");
        if (end > at && end - at < 10 && *end == '.') break;
    }
    if (!at) return -1;
    const int n = snprintf(first, sizeof first, "%.*s0%s", (int)(at - s), s, end);
    if (n < 0 || (size_t)n >= sizeof first || !json_object_get(names, first)) return -1;
    return strtoll(at, NULL, 10);
}

// ---- the check ----

struct surplus {
    const struct rlhf__tensor *first; // the first tensor for which there is no place
    size_t n;                         // number of such tensors
    int64_t from, to;                 // numbers of layers that are left out; from > to: none
};

static rlhf_status look(const struct rlhf__model *m, const struct rlhf__weights *w,
                        const uint8_t *taken, const struct rlhf__tensor *embedding,
                        const json_t *names, struct surplus *s, struct rlhf__error *err) {
    for (size_t i = 0; i < rlhf__weights_count(w); i++) {
        const struct rlhf__tensor *t = rlhf__weights_at(w, i);
        if (taken[i]) continue;
        if (!strcmp(t->name, "lm_head.weight")) RLHF_TRY(check_tied(m, t, embedding, err));
        if (may_be_left(t->name)) continue;
        const int64_t layer = layer_beyond(m, names, t->name);
        if (layer >= 0) {
            if (layer < s->from) s->from = layer;
            if (layer > s->to) s->to = layer;
            continue;
        }
        if (!s->first) s->first = t;
        s->n++;
    }
    return RLHF_OK;
}

rlhf_status rlhf__surplus_check(const struct rlhf__model *m, const struct rlhf__weights *w,
                                const uint8_t *taken, const struct rlhf__tensor *embedding,
                                struct rlhf__error *err) {
    struct surplus s = {.from = INT64_MAX, .to = -1};
    json_t *names = names_of(m);
    if (!names) return RLHF__NOMEM(err, "out of memory reading '%s'", m->dir);
    const rlhf_status st = look(m, w, taken, embedding, names, &s, err);
    json_decref(names);
    if (st != RLHF_OK) return st;
    char more[64] = "";
    if (s.n > 1) snprintf(more, sizeof more, " and %zu more", s.n - 1);
    if (s.first)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s holds the tensor %s%s, for which the model that %s/config.json "
                          "describes has no place",
                          s.first->file, s.first->name, more, m->dir);
    if (rlhf__weights_left_out(w) > 0)
        rlhf__logf(
            m->env->services->log, RLHF_LOG_INFO,
            "the %s '%s' has other parts, for images or for predicting further tokens; only its "
            "language model is used, and their %zu tensors are left out, also of checkpoints and "
            "exports",
            m->role, m->dir, rlhf__weights_left_out(w));
    if (s.from <= s.to)
        rlhf__logf(
            m->env->services->log, RLHF_LOG_WARN,
            "the %s '%s': config.json describes the layers 0 to %lld, the weights have more, "
            "up to %lld; they are left out, as in transformers",
            m->role, m->dir, (long long)s.from - 1, (long long)s.to);
    return RLHF_OK;
}
