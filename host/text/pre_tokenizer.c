// pre_tokenizer.c: see pre_tokenizer.h. The list of steps: reading it and running it.
#include "text/pre_tokenizer_impl.h"

#include "text/tokenizer_part.h"
#include "text/utf8.h"

#include <stdlib.h>

static rlhf_status add_all(struct rlhf__pre_tokenizer *pre, const json_t *part, int depth,
                           struct rlhf__error *err) {
    if (!part || json_is_null(part)) return RLHF_OK;
    if (!rlhf__part_is(part, "Sequence")) return rlhf__cut_steps_read(part, pre, err);
    const json_t *inner = json_object_get(part, "pretokenizers"), *item;
    if (depth == RLHF__PART_DEPTH_MAX)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the pre_tokenizer has sequences inside sequences");
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

static rlhf_status run(const struct rlhf__cut_step *step, const struct rlhf__pieces *in,
                       struct rlhf__pieces *out, struct rlhf__error *err) {
    out->n = 0;
    out->text = in->text;
    for (size_t i = 0; i < in->n; i++) {
        const struct rlhf__piece *p = &in->item[i];
        if (p->flags & RLHF__PIECE_RAW)
            RLHF_TRY(rlhf__pieces_push(out, p->at, p->n, p->flags, err));
        else
            RLHF_TRY(step->cut(step, in->text, p->at, p->n, out, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__pre_tokenizer_cut(const struct rlhf__pre_tokenizer *pre, struct rlhf__work *work,
                                    const char *s, size_t n, int at_start,
                                    struct rlhf__error *err) {
    (void)at_start;
    work->pieces.n = 0;
    work->pieces.text = s;
    RLHF_TRY(cut_runs(s, n, &work->pieces, err));
    for (size_t i = 0; pre && i < pre->n; i++) {
        struct rlhf__pieces last = work->pieces;
        work->pieces = work->cut;
        work->cut = last;
        RLHF_TRY(run(&pre->step[i], &work->cut, &work->pieces, err));
    }
    return RLHF_OK;
}
