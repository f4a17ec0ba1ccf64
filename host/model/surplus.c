// surplus.c: see surplus.h.
#include "model/surplus.h"

#include "model/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What transformers once stored and computes itself today, by the end of its name.
static const char *const buffers[] = {"attn.bias", "attn.masked_bias", "rotary_emb.inv_freq",
                                      "embeddings.position_ids"};

// Heads: a tensor of that name, or (with a dot at the end) all below it.
static const char *const heads[] = {"score.weight",      "classifier.",      "pre_classifier.",
                                    "vocab_transform.",  "vocab_projector.", "qa_outputs.",
                                    "vocab_layer_norm.", "v_head.summary.",  "lm_head.weight"};

// At a dot or the beginning of name.
static int ends_with(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0 && (n == m || name[n - m - 1] == '.');
}

static int may_be_left(const char *name) {
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (ends_with(name, buffers[i])) return 1;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const size_t n = strlen(heads[i]);
        if (heads[i][n - 1] == '.' ? !strncmp(name, heads[i], n) : !strcmp(name, heads[i]))
            return 1;
    }
    return 0;
}

// Both as floats, a chunk at a time: a checkpoint may store them in two dtypes.
static rlhf_status compare(const struct rlhf__tensor *a, const struct rlhf__tensor *b, int *same,
                           struct rlhf__error *err) {
    float *x = malloc(2 * RLHF__PARAM_CHUNK * sizeof *x), *y = x ? x + RLHF__PARAM_CHUNK : NULL;
    rlhf_status st = x ? RLHF_OK : RLHF__NOMEM(err, "out of memory comparing %s", a->name);
    *same = a->ndim == b->ndim && !memcmp(a->shape, b->shape, sizeof a->shape);
    for (int64_t at = 0; st == RLHF_OK && *same && at < a->count; at += RLHF__PARAM_CHUNK) {
        const int64_t left = a->count - at, n = left < RLHF__PARAM_CHUNK ? left : RLHF__PARAM_CHUNK;
        st = rlhf__tensor_read_f32(a, at, n, x, err);
        if (st == RLHF_OK) st = rlhf__tensor_read_f32(b, at, n, y, err);
        if (st == RLHF_OK) *same = !memcmp(x, y, (size_t)n * sizeof *x);
    }
    free(x);
    return st;
}

static rlhf_status check_tied(const struct rlhf__model *m, const struct rlhf__tensor *head,
                              const struct rlhf__tensor *embedding, struct rlhf__error *err) {
    int same = 1;
    if (m->n_labels > 0 || !embedding || embedding == head) return RLHF_OK;
    RLHF_TRY(compare(head, embedding, &same, err));
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
