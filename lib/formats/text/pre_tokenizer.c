// pre_tokenizer.c: see pre_tokenizer.h. The list of steps: reading it and running it.
#include "text/pre_tokenizer_impl.h"

#include "base/json.h"
#include "text/tokenizer_part.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

static rlhf_status add_all(struct rlhf__pre_tokenizer *pre, const json_t *part, int depth,
                           struct rlhf__error *err) {
    if (!part || json_is_null(part)) return RLHF_OK;
    if (!rlhf__part_is(part, "Sequence")) return rlhf__cut_steps_read(part, pre, err);
    const json_t *inner = json_object_get(part, "pretokenizers"), *item;
    if (depth == RLHF__PART_DEPTH_MAX)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the pre_tokenizer has sequences inside sequences");
    if (!json_is_array(inner))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the pre_tokenizer Sequence: pretokenizers: expected an array, found %s",
                          rlhf__json_kind(inner));
    size_t i;
    json_array_foreach(inner, i, item) RLHF_TRY(add_all(pre, item, depth + 1, err));
    return RLHF_OK;
}

rlhf_status rlhf__pre_tokenizer_create(const json_t *part, struct rlhf__pre_tokenizer **out,
                                       struct rlhf__error *err) {
    struct rlhf__pre_tokenizer *pre = calloc(1, sizeof *pre);
    *out = NULL;
    if (!pre) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    rlhf_status st = add_all(pre, part, 0, err);
    if (st < 0 || (!pre->n && !pre->bytes))
        rlhf__pre_tokenizer_destroy(pre);
    else
        *out = pre;
    return st;
}

void rlhf__pre_tokenizer_destroy(struct rlhf__pre_tokenizer *pre) {
    if (!pre) return;
    for (size_t i = 0; i < pre->n; i++)
        rlhf__pattern_destroy(pre->step[i].pattern);
    free(pre);
}

int rlhf__pre_tokenizer_bytes(const struct rlhf__pre_tokenizer *pre) { return pre && pre->bytes; }

// The runs of well-formed and of ill-formed bytes.
static rlhf_status cut_runs(const char *s, size_t n, struct rlhf__pieces *out,
                            struct rlhf__error *err) {
    uint32_t on = 0;
    for (size_t at = 0; at < n;) {
        size_t good = rlhf__utf8_valid(s + at, n - at), bad = 0;
        RLHF_TRY(rlhf__pieces_push(out, at, good, on, err));
        at += good;
        while (at + bad < n) {
            size_t part = 1;
            if (rlhf__utf8_next(s + at + bad, n - at - bad, NULL, &part)) break;
            bad += part;
        }
        RLHF_TRY(rlhf__pieces_push(out, at, bad, RLHF__PIECE_RAW, err));
        at += bad;
        on = RLHF__PIECE_ON;
    }
    return RLHF_OK;
}

// The text of a piece with spaces replaced and a space in front, behind what is in `text`.
static void put_changed(const struct rlhf__cut_step *step, const char *s,
                        const struct rlhf__piece *p, int first, struct rlhf__buf *text) {
    const char *from = s + p->at, *end = from + p->n;
    int has = p->n >= step->n_space && memcmp(from, step->space, step->n_space) == 0;
    if (step->replaces && *from == ' ') has = 1;
    int wanted =
        step->prefix == RLHF__PREFIX_ALWAYS || (step->prefix == RLHF__PREFIX_FIRST && first);
    if (wanted && !has && !(p->flags & RLHF__PIECE_ON))
        rlhf__buf_put(text, step->space, step->n_space);
    while (step->replaces && from < end) {
        const char *space = memchr(from, ' ', (size_t)(end - from));
        if (!space) break;
        rlhf__buf_put(text, from, (size_t)(space - from));
        rlhf__buf_put(text, step->space, step->n_space);
        from = space + 1;
    }
    rlhf__buf_put(text, from, (size_t)(end - from));
}

// out becomes the pieces of `in` over a text of its own, which the step's spaces are in.
static rlhf_status change(const struct rlhf__cut_step *step, const struct rlhf__pieces *in,
                          struct rlhf__pieces *out, struct rlhf__buf *text, int at_start,
                          struct rlhf__error *err) {
    rlhf__buf_clear(text);
    out->n = 0;
    for (size_t i = 0; i < in->n; i++) {
        const struct rlhf__piece *p = &in->item[i];
        size_t at = text->len;
        if (p->flags & RLHF__PIECE_RAW)
            rlhf__buf_put(text, in->text + p->at, p->n);
        else
            put_changed(step, in->text, p, at_start && i == 0, text);
        RLHF_TRY(rlhf__pieces_push(out, at, text->len - at, p->flags, err));
    }
    RLHF_TRY(rlhf__buf_ok(text, err));
    struct rlhf__buf old = out->own; // what out->text was made of is not needed any more
    out->own = *text;
    *text = old;
    out->text = rlhf__buf_text(&out->own);
    return RLHF_OK;
}

static rlhf_status cut_all(const struct rlhf__cut_step *step, const struct rlhf__pieces *in,
                           struct rlhf__pieces *out, struct rlhf__search *match,
                           struct rlhf__error *err) {
    out->n = 0;
    out->text = in->text;
    for (size_t i = 0; i < in->n; i++) {
        const struct rlhf__piece *p = &in->item[i];
        if (p->flags & RLHF__PIECE_RAW)
            RLHF_TRY(rlhf__pieces_push(out, p->at, p->n, p->flags, err));
        else
            RLHF_TRY(rlhf__cut_piece(step, in->text, p->at, p->n, p->flags, match, out, err));
    }
    return RLHF_OK;
}

static void swap(struct rlhf__work *work) {
    struct rlhf__pieces last = work->pieces;
    work->pieces = work->cut;
    work->cut = last;
}

rlhf_status rlhf__pre_tokenizer_cut(const struct rlhf__pre_tokenizer *pre, struct rlhf__work *work,
                                    const char *s, size_t n, int at_start,
                                    struct rlhf__error *err) {
    work->pieces.n = 0;
    work->pieces.text = s;
    RLHF_TRY(cut_runs(s, n, &work->pieces, err));
    for (size_t i = 0; pre && i < pre->n; i++) {
        const struct rlhf__cut_step *step = &pre->step[i];
        if (step->prefix || step->replaces) {
            swap(work);
            RLHF_TRY(change(step, &work->cut, &work->pieces, &work->spare, at_start, err));
        }
        if (!step->is && !step->pattern) continue;
        swap(work);
        RLHF_TRY(cut_all(step, &work->cut, &work->pieces, &work->search, err));
    }
    return RLHF_OK;
}
