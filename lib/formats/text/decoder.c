// decoder.c: see decoder.h.
#include "text/decoder.h"

#include "base/json.h"
#include "text/tokenizer_part.h"

#include <stdlib.h>

struct rlhf__decoder {
    json_t *json; // what the steps borrow from
    struct rlhf__decoder_step *step;
    size_t n;
    int bytes;                // tokens are bytes: each stands for itself
    struct rlhf__spans piece; // [n_vocab] of the other kind
};

static rlhf_status add_step(struct rlhf__decoder *d, const json_t *part, struct rlhf__error *err) {
    struct rlhf__decoder_step *step = realloc(d->step, (d->n + 1) * sizeof *step);
    if (!step) return RLHF__NOMEM(err, "out of memory for a decoder");
    d->step = step;
    RLHF_TRY(rlhf__decoder_step_read(part, &d->step[d->n], err));
    int first = d->n++ == 0;
    if (d->step[d->n - 1].bytes == (first && d->bytes)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the decoder '%s' is not supported %s",
                      rlhf__part_type(part),
                      d->bytes && first ? "for tokens of bytes; allowed: ByteLevel"
                      : d->bytes        ? "behind another one"
                                        : "for tokens that are not bytes");
}

// A Sequence may hold another.
static rlhf_status add_part(struct rlhf__decoder *d, const json_t *part, int depth,
                            struct rlhf__error *err) {
    const json_t *inner = json_object_get(part, "decoders"), *item;
    if (!rlhf__part_is(part, "Sequence")) return add_step(d, part, err);
    if (!json_is_array(inner) || depth == 8)
        return rlhf__fail(err, RLHF_E_INVALID, "the decoder Sequence: decoders is %s",
                          json_is_array(inner) ? "nested too deep" : rlhf__json_kind(inner));
    size_t i;
    json_array_foreach(inner, i, item) RLHF_TRY(add_part(d, item, depth + 1, err));
    return RLHF_OK;
}

rlhf_status rlhf__decoder_create(const json_t *part, int bytes, struct rlhf__decoder **out,
                                 struct rlhf__error *err) {
    struct rlhf__decoder *d = calloc(1, sizeof *d);
    if (!d) return RLHF__NOMEM(err, "out of memory for a decoder");
    d->bytes = bytes;
    rlhf_status st = RLHF_OK;
    if (part && !json_is_null(part))
        d->json = json_deep_copy(part);
    else if (bytes)
        d->json = json_pack("{s:s}", "type", "ByteLevel");
    else
        st = add_step(d, NULL, err);
    if (st == RLHF_OK && d->json)
        st = add_part(d, d->json, 0, err);
    else if (st == RLHF_OK && !d->n)
        st = RLHF__NOMEM(err, "out of memory for a decoder");
    if (st == RLHF_OK) {
        *out = d;
        return RLHF_OK;
    }
    rlhf__decoder_destroy(d);
    return st;
}

void rlhf__decoder_destroy(struct rlhf__decoder *d) {
    if (!d) return;
    rlhf__spans_finish(&d->piece);
    json_decref(d->json);
    free(d->step);
    free(d);
}

rlhf_status rlhf__decoder_run(const struct rlhf__decoder *d, struct rlhf__spans *list,
                              struct rlhf__spans *spare, int inside, struct rlhf__error *err) {
    struct rlhf__decoding how = {.inside = inside};
    for (size_t i = 0; i < d->n; i++) {
        rlhf__spans_clear(spare);
        d->step[i].apply(&d->step[i], list, &how, spare);
        struct rlhf__spans swap = *list;
        *list = *spare;
        *spare = swap;
    }
    RLHF_TRY(rlhf__buf_ok(&spare->bytes, err));
    return rlhf__buf_ok(&list->bytes, err);
}

// ---- single tokens
// ------------------------------------------------------------------------------------

rlhf_status rlhf__decoder_prepare(struct rlhf__decoder *d, const struct rlhf__added *added,
                                  const struct rlhf__vocab *vocab, struct rlhf__error *err) {
    struct rlhf__spans one = {0}, spare = {0};
    rlhf_status st = RLHF_OK;
    rlhf__spans_clear(&d->piece);
    for (int32_t id = 0; !d->bytes && id < vocab->n && st == RLHF_OK; id++) {
        rlhf_str s = rlhf__added_shown(added, vocab, id);
        rlhf__spans_clear(&one);
        rlhf__spans_put(&one, s.ptr, (size_t)s.len);
        if (s.ptr) rlhf__spans_end(&one);
        st = rlhf__decoder_run(d, &one, &spare, 1, err);
        rlhf__spans_put(&d->piece, rlhf__buf_text(&one.bytes), one.bytes.len);
        rlhf__spans_end(&d->piece);
    }
    rlhf__spans_finish(&one);
    rlhf__spans_finish(&spare);
    return st == RLHF_OK ? rlhf__buf_ok(&d->piece.bytes, err) : st;
}

rlhf_str rlhf__decoder_piece(const struct rlhf__decoder *d, const struct rlhf__added *added,
                             const struct rlhf__vocab *vocab, int32_t id) {
    if (d->bytes) return rlhf__added_shown(added, vocab, id);
    if (id < 0 || (size_t)id >= d->piece.n) return (rlhf_str){NULL, 0};
    return rlhf__spans_get(&d->piece, (size_t)id);
}
