// surplus.c: see surplus.h.
#include "model/surplus.h"

#include "weights/beside.h"

#include <stdio.h>
#include <string.h>

// Heads: a tensor of that name, or (with a dot at the end) all below it.
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
                      "%s: %s is not %s, but %s/config.json ties them; tie_word_embeddings must be "
                      "false for a head of its own",
                      head->file, head->name, embedding->name, m->dir);
}

rlhf_status rlhf__surplus_check(const struct rlhf__model *m, const struct rlhf__weights *w,
                                const uint8_t *taken, const struct rlhf__tensor *embedding,
                                struct rlhf__error *err) {
    const struct rlhf__tensor *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < rlhf__weights_count(w); i++) {
        const struct rlhf__tensor *t = rlhf__weights_at(w, i);
        if (taken[i]) continue;
        if (!strcmp(t->name, "lm_head.weight")) RLHF_TRY(check_tied(m, t, embedding, err));
        if (may_be_left(t->name)) continue;
        if (!first) first = t;
        n++;
    }
    if (!first) return RLHF_OK;
    char more[64] = "";
    if (n > 1) snprintf(more, sizeof more, " and %zu more", n - 1);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s holds the tensor %s%s, for which the model that %s/config.json describes "
                      "has no place",
                      first->file, first->name, more, m->dir);
}
