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

// The ids of a word, or of a part of one that no merge goes beyond.
static rlhf_status encode_part(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                               const char *s, size_t n, struct rlhf__ids *out,
                               struct rlhf__error *err) {
    rlhf_status st = rlhf__word_cache_get(work->cache, s, n, out, err);
    if (st != 0) return st < 0 ? st : RLHF_OK;
    size_t from = out->n;
    RLHF_TRY(tok->bpe ? rlhf__bpe_encode(tok->bpe, s, n, out, err)
                      : rlhf__wordpiece_encode(&tok->piece, s, n, out, err));
    rlhf__word_cache_put(work->cache, s, n, out->data + from, out->n - from);
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
        size_t len = words->item[i].n;
        for (size_t at = 0, end; at < len && out->n < stop_at; at = end) {
            end = tok->bpe ? rlhf__bpe_part_end(tok->bpe, word, len, at) : len;
            RLHF_TRY(encode_part(tok, work, word + at, end - at, out, err));
        }
    }
    return RLHF_OK;
}
