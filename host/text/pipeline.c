// pipeline.c: see pipeline.h.
#include "text/pipeline.h"

rlhf_status rlhf__pipeline_normal(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                                  const char *s, size_t n, const char **out, size_t *len,
                                  struct rlhf__error *err) {
    *out = s;
    *len = n;
    if (!tok->normaliser || !n) return RLHF_OK;
    RLHF_TRY(rlhf__normaliser_apply(tok->normaliser, s, n, &work->normal, &work->spare, err));
    *out = rlhf__buf_text(&work->normal);
    *len = work->normal.len;
    return RLHF_OK;
}

rlhf_status rlhf__pipeline_words(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                                 const char *s, size_t n, int at_start, size_t stop_at,
                                 struct rlhf__ids *out, struct rlhf__error *err) {
    if (!n) return RLHF_OK;
    RLHF_TRY(rlhf__pre_tokenizer_cut(tok->pre_tokenizer, work, s, n, at_start, err));
    const struct rlhf__pieces *words = &work->pieces;
    for (size_t i = 0; i < words->n && out->n < stop_at; i++) {
        const char *word = words->text + words->item[i].at;
        RLHF_TRY(tok->bpe ? rlhf__bpe_encode(tok->bpe, word, words->item[i].n, out, err)
                          : rlhf__wordpiece_encode(&tok->piece, word, words->item[i].n, out, err));
    }
    return RLHF_OK;
}
