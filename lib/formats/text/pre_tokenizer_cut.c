// pre_tokenizer_cut.c: see pre_tokenizer_cut.h.
#include "text/pre_tokenizer_cut.h"

#include "text/pattern.h"
#include "text/unicode.h"

// ---- one step over one piece: finding the delimiters and attaching them ----

// The spans of a piece, delimiters and others, in order, to pieces.
struct joiner {
    const struct rlhf__cut_step *step;
    struct rlhf__pieces *out;
    struct rlhf__error *err;
    size_t base;        // of the piece in the text
    size_t begin, end;  // a span that may still grow
    int waits, matched; // a span is pending; it ends with a delimiter
    uint32_t flags;     // of the next piece
};

static rlhf_status push(struct joiner *j, size_t begin, size_t end) {
    uint32_t flags = j->flags;
    if (end > begin) j->flags = 0;
    return rlhf__pieces_push(j->out, j->base + begin, end - begin, flags, j->err);
}

static rlhf_status flush(struct joiner *j) {
    int waits = j->waits;
    j->waits = 0;
    return waits ? push(j, j->begin, j->end) : RLHF_OK;
}

// Whether a span joins the pending one.
static int joins(const struct joiner *j, int matched) {
    switch (j->step->behaviour) {
    case RLHF__CUT_PREVIOUS:
        return matched && !j->matched;
    case RLHF__CUT_NEXT:
        return !matched && j->matched;
    default:
        return matched == j->matched;
    }
}

static rlhf_status put(struct joiner *j, size_t begin, size_t end, int matched) {
    if (j->step->invert) matched = !matched;
    if (j->step->behaviour == RLHF__CUT_ISOLATED) return push(j, begin, end);
    if (j->step->behaviour == RLHF__CUT_REMOVED) return matched ? RLHF_OK : push(j, begin, end);
    if (j->waits && joins(j, matched)) {
        j->end = end;
    } else {
        RLHF_TRY(flush(j));
        j->begin = begin;
        j->end = end;
        j->waits = 1;
    }
    j->matched = matched;
    return RLHF_OK;
}

static rlhf_status by_character(struct joiner *j, const char *s, size_t n) {
    size_t from = 0;
    for (size_t at = 0, len; at < n; at += len) {
        uint32_t cp = (uint8_t)s[at];
        len = cp < 0x80 ? 1 : rlhf__utf8_next(s + at, n - at, &cp, NULL);
        if (!j->step->is(cp)) continue;
        if (from < at) RLHF_TRY(put(j, from, at, 0));
        RLHF_TRY(put(j, at, at + len, 1));
        from = at + len;
    }
    return from < n ? put(j, from, n, 0) : RLHF_OK;
}

static rlhf_status by_pattern(struct joiner *j, const char *s, size_t n,
                              struct rlhf__search *match) {
    size_t from = 0;
    rlhf_status st;
    rlhf__search_reset(match);
    while ((st = rlhf__pattern_next(j->step->pattern, s, n, match, j->err)) == 1) {
        if (from < match->begin) RLHF_TRY(put(j, from, match->begin, 0));
        RLHF_TRY(put(j, match->begin, match->end, 1));
        from = match->end;
    }
    if (st < 0) return st;
    return from < n ? put(j, from, n, 0) : RLHF_OK;
}

// The words of a rule, each alone: the path of nearly every text.
static rlhf_status by_rule(struct joiner *j, const char *s, size_t n, int32_t rule) {
    for (size_t at = 0, end; at < n; at = end) {
        end = rlhf__word_end(rule, s, n, at);
        RLHF_TRY(push(j, at, end));
    }
    return RLHF_OK;
}

// Append the pieces of s[at..at + n), well-formed UTF-8, to out.
static rlhf_status cut_piece(const struct rlhf__cut_step *step, const char *s, size_t at, size_t n,
                             uint32_t flags, struct rlhf__search *match, struct rlhf__pieces *out,
                             struct rlhf__error *err) {
    struct joiner j = {.step = step, .out = out, .err = err, .base = at, .flags = flags};
    int32_t rule = step->pattern ? rlhf__pattern_rule(step->pattern) : 0;
    if (rule && step->behaviour == RLHF__CUT_ISOLATED)
        RLHF_TRY(by_rule(&j, s + at, n, rule));
    else if (step->is)
        RLHF_TRY(by_character(&j, s + at, n));
    else if (step->pattern)
        RLHF_TRY(by_pattern(&j, s + at, n, match));
    else
        RLHF_TRY(push(&j, 0, n));
    return flush(&j);
}

// ---- all steps over a text ----

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

// Append a piece's text to `text`, with spaces replaced and a space in front.
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

// out becomes the pieces of `in` over its own copy of the text, with the step's spaces.
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
    struct rlhf__buf old = out->own; // the source of out->text is no longer needed
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
            RLHF_TRY(cut_piece(step, in->text, p->at, p->n, p->flags, match, out, err));
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
