// added_tokens.c: see added_tokens.h.
#include "text/added_tokens.h"

#include <stdlib.h>
#include <string.h>

// ---- the list
// --------------------------------------------------------------------------------------

const char *rlhf__added_text(const struct rlhf__added *a, const struct rlhf__added_token *t) {
    return rlhf__buf_text(&a->text) + t->at;
}

static size_t probe(const struct rlhf__added *a, const char *s, size_t len) {
    size_t mask = a->n_slots - 1, i = (size_t)rlhf__vocab_hash_bytes(s, len) & mask;
    for (; a->slot[i] != UINT32_MAX; i = (i + 1) & mask) {
        const struct rlhf__added_token *t = &a->item[a->slot[i]];
        if (t->len == len && !memcmp(rlhf__added_text(a, t), s, len)) break;
    }
    return i;
}

struct rlhf__added_token *rlhf__added_find(const struct rlhf__added *a, const char *s, size_t len) {
    if (!a->n) return NULL;
    size_t i = probe(a, s, len);
    return a->slot[i] == UINT32_MAX ? NULL : &a->item[a->slot[i]];
}

static rlhf_status grow(struct rlhf__added *a, struct rlhf__error *err) {
    size_t cap = a->cap ? a->cap * 2 : 16, slots = cap * 2;
    struct rlhf__added_token *item = realloc(a->item, cap * sizeof *item);
    if (item) a->item = item;
    uint32_t *slot = item ? realloc(a->slot, slots * sizeof *slot) : NULL;
    if (!slot) return RLHF__NOMEM(err, "out of memory for the added tokens");
    a->slot = slot;
    a->cap = cap;
    a->n_slots = slots;
    memset(slot, 0xFF, slots * sizeof *slot);
    for (size_t i = 0; i < a->n; i++)
        slot[probe(a, rlhf__added_text(a, &item[i]), item[i].len)] = (uint32_t)i;
    return RLHF_OK;
}

rlhf_status rlhf__added_append(struct rlhf__added *a, const char *s, size_t len,
                               const struct rlhf__added_token *token, struct rlhf__error *err) {
    if (len > UINT32_MAX - a->text.len)
        return rlhf__fail(err, RLHF_E_INVALID, "the added tokens are larger than 4 GiB");
    if (a->n == a->cap) RLHF_TRY(grow(a, err));
    struct rlhf__added_token *t = &a->item[a->n];
    *t = *token;
    t->at = (uint32_t)a->text.len;
    t->len = (uint32_t)len;
    rlhf__buf_put(&a->text, s, len);
    RLHF_TRY(rlhf__buf_ok(&a->text, err));
    a->slot[probe(a, s, len)] = (uint32_t)a->n++;
    if (t->id > a->largest) a->largest = t->id;
    return RLHF_OK;
}

void rlhf__added_finish(struct rlhf__added *a) {
    rlhf__buf_free(&a->text);
    rlhf__matcher_finish(&a->plain);
    rlhf__matcher_finish(&a->normal);
    free(a->item);
    free(a->slot);
    *a = (struct rlhf__added){0};
}

rlhf_str rlhf__added_content(const struct rlhf__added *a, int32_t id) {
    for (size_t i = 0; i < a->n; i++)
        if (a->item[i].id == id)
            return (rlhf_str){rlhf__added_text(a, &a->item[i]), a->item[i].len};
    return (rlhf_str){NULL, 0};
}

rlhf_str rlhf__added_shown(const struct rlhf__added *a, const struct rlhf__vocab *vocab,
                           int32_t id) {
    rlhf_str b = rlhf__vocab_bytes(vocab, id);
    for (size_t i = 0; b.ptr && vocab->token[id].shown && i < a->n; i++)
        if (a->item[i].id == id)
            return (rlhf_str){rlhf__buf_text(&a->text) + a->item[i].shown_at, a->item[i].shown_len};
    return b;
}
