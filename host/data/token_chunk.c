// token_chunk.c: see token_chunk.h.
#include "data/token_chunk.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 128 };

static rlhf_status no_memory(struct rlhf__error *err) {
    return RLHF__NOMEM(err, "out of memory for the tokens of the dataset");
}

static rlhf_status add_row(struct rlhf__token_chunk *c, int64_t source, int32_t len,
                           struct rlhf__error *err) {
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : FIRST_ROWS;
        int32_t *lens = realloc(c->len, cap * sizeof *lens);
        if (lens) c->len = lens;
        int64_t *sources = realloc(c->source, cap * sizeof *sources);
        if (sources) c->source = sources;
        if (!lens || !sources) return no_memory(err);
        c->cap = cap;
    }
    c->len[c->n] = len;
    c->source[c->n++] = source;
    return RLHF_OK;
}

// All ids of one dataset row behind ids->n: bos, text, eos, cut to what can be used.
static rlhf_status encode_row(const struct rlhf__token_cut *how, rlhf_str text,
                              struct rlhf__ids *ids, int *cut, struct rlhf__error *err) {
    const struct rlhf__token_opts *o = how->opts;
    size_t max = (size_t)o->max_len, before = ids->n;
    *cut = 0;
    if (o->long_rows == RLHF__LONG_SPLIT)
        return rlhf__tokenizer_encode(how->tok, text, o->encode_flags, 0, ids, err);
    // One token more than fits tells whether the row is cut. A row that is cut has no eos, since
    // its text does not end there; [SEP] stays.
    RLHF_TRY(rlhf__tokenizer_encode(how->tok, text, o->encode_flags & ~(uint32_t)RLHF__ENCODE_EOS,
                                    max + 1, ids, err));
    if (o->encode_flags & RLHF__ENCODE_EOS)
        RLHF_TRY(rlhf__ids_push(ids, rlhf__tokenizer_info(how->tok)->eos, err));
    *cut = ids->n - before > max;
    if (!*cut) return RLHF_OK;
    ids->n = before;
    uint32_t flags =
        how->template ? o->encode_flags : o->encode_flags & ~(uint32_t)RLHF__ENCODE_EOS;
    return rlhf__tokenizer_encode(how->tok, text, flags, max, ids, err);
}

// Turn the n ids at ids->data[at] into rows; windows that overlap by one token are moved apart.
static rlhf_status cut_row(const struct rlhf__token_cut *how, struct rlhf__token_chunk *c,
                           int64_t source, struct rlhf__ids *ids, size_t at,
                           struct rlhf__error *err) {
    size_t n = ids->n - at, max = (size_t)how->opts->max_len;
    size_t min = how->opts->min_len > 0 ? (size_t)how->opts->min_len : 1;
    if (n <= max) {
        if (n >= min) return add_row(c, source, (int32_t)n, err);
        ids->n = at;
        c->dropped++;
        return RLHF_OK;
    }
    size_t windows = (n - 2) / (max - 1) + 1; // n > max >= 2; the last has 2 tokens or more
    RLHF_TRY(rlhf__ids_reserve(ids, windows, err));
    int32_t *data = ids->data + at;
    size_t end = n + windows - 1; // the last window is moved furthest, so it goes first
    for (size_t w = windows; w-- > 0;) {
        size_t begin = w * (max - 1), len = n - begin < max ? n - begin : max;
        memmove(data + w * max, data + begin, len * sizeof *data);
    }
    for (size_t w = 0; w < windows; w++) {
        size_t len = w + 1 < windows ? max : end - w * max;
        if (len < min) { // only the last one can be short
            end -= len;
            c->dropped++;
        } else {
            RLHF_TRY(add_row(c, source, (int32_t)len, err));
        }
    }
    ids->n = at + end;
    return RLHF_OK;
}

rlhf_status rlhf__token_chunk_add(struct rlhf__token_chunk *c, const struct rlhf__token_cut *how,
                                  int64_t source, rlhf_str text, struct rlhf__ids *ids,
                                  struct rlhf__error *err) {
    size_t at = ids->n;
    int cut = 0;
    RLHF_TRY(encode_row(how, text, ids, &cut, err));
    c->truncated += cut;
    return cut_row(how, c, source, ids, at, err);
}

rlhf_status rlhf__token_chunk_store(struct rlhf__token_chunk *c, const struct rlhf__token_cut *how,
                                    const struct rlhf__ids *ids, struct rlhf__error *err) {
    size_t width = how->narrow ? sizeof(uint16_t) : sizeof(int32_t);
    c->total = (int64_t)ids->n;
    c->ids = malloc((ids->n ? ids->n : 1) * width);
    if (!c->ids) return no_memory(err);
    if (!how->narrow) {
        if (ids->n) memcpy(c->ids, ids->data, ids->n * width);
        return RLHF_OK;
    }
    uint16_t *out = c->ids;
    for (size_t i = 0; i < ids->n; i++)
        out[i] = (uint16_t)ids->data[i];
    return RLHF_OK;
}

void rlhf__token_chunk_finish(struct rlhf__token_chunk *c) {
    free(c->len);
    free(c->source);
    free(c->ids);
    *c = (struct rlhf__token_chunk){0};
}
