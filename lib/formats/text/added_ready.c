// added_ready.c: see added_ready.h.
#include "text/added_ready.h"

#include "text/added_id.h"
#include "text/tokenizer_impl.h"

#include <stdlib.h>

// From now on the token decodes as s[0..n), its normal form.
static rlhf_status show(struct rlhf__tokenizer *tok, struct rlhf__added_token *t, const char *s,
                        size_t n, struct rlhf__error *err) {
    struct rlhf__buf *text = &tok->added.text;
    char *bytes;
    int stands;
    RLHF_TRY(rlhf__added_bytes(tok, s, n, &bytes, &n, &stands, err));
    t->shown_at = (uint32_t)text->len;
    t->shown_len = (uint32_t)n;
    rlhf_status st = RLHF_OK;
    if (n > UINT32_MAX - text->len)
        st = rlhf__fail(err, RLHF_E_INVALID, "the added tokens are larger than 4 GiB");
    else
        rlhf__buf_put(text, bytes, n);
    tok->vocab.token[t->id].shown = 1;
    free(bytes);
    return st == RLHF_OK ? rlhf__buf_ok(text, err) : st;
}

static rlhf_status add_needle(struct rlhf__tokenizer *tok, size_t i, struct rlhf__buf *normal,
                              struct rlhf__buf *spare, struct rlhf__error *err) {
    struct rlhf__added *a = &tok->added;
    struct rlhf__added_token *t = &a->item[i];
    if (!t->normalized || !tok->normaliser)
        return rlhf__matcher_add(t->normalized ? &a->normal : &a->plain, rlhf__added_text(a, t),
                                 t->len, (uint32_t)i, err);
    RLHF_TRY(rlhf__normaliser_apply(tok->normaliser, rlhf__added_text(a, t), t->len, normal, spare,
                                    err));
    RLHF_TRY(show(tok, t, rlhf__buf_text(normal), normal->len, err));
    // As in the library, what is left out of a text is what looks like a special token.
    const struct rlhf__added_token *like = rlhf__added_find(a, rlhf__buf_text(normal), normal->len);
    tok->vocab.token[t->id].special |= like && like->special;
    return rlhf__matcher_add(&a->normal, rlhf__buf_text(normal), normal->len, (uint32_t)i, err);
}

rlhf_status rlhf__added_ready(struct rlhf__tokenizer *tok, struct rlhf__error *err) {
    struct rlhf__added *a = &tok->added;
    struct rlhf__buf normal = RLHF__BUF_INIT, spare = RLHF__BUF_INIT;
    rlhf_status st = RLHF_OK;
    // Of two with the same normal form the first counts (the library takes either, by chance).
    for (size_t i = 0; i < a->n && st == RLHF_OK; i++)
        st = add_needle(tok, i, &normal, &spare, err);
    for (size_t i = 0; i < a->n; i++) {
        const struct rlhf__added_token *t = &a->item[i];
        struct rlhf__vocab_token *v = &tok->vocab.token[t->id];
        if (!v->shown) v->special |= t->special;
        *(t->normalized ? &a->normal_ordinary : &a->plain_ordinary) |= !t->special;
    }
    if (st == RLHF_OK) { // or a needle may have no bytes
        rlhf__matcher_sort(&a->plain);
        rlhf__matcher_sort(&a->normal);
    }
    rlhf__buf_free(&normal);
    rlhf__buf_free(&spare);
    return st;
}
