// pre_tokenizer_cut.c: one step over one piece: where the delimiters are, and what becomes of them.
#include "text/pre_tokenizer_impl.h"

#include "text/utf8.h"
#include "text/word_rule.h"

// The spans of a piece, delimiters and others, in order, to pieces.
struct joiner {
    const struct rlhf__cut_step *step;
    struct rlhf__pieces *out;
    struct rlhf__error *err;
    size_t base;        // of the piece in the text
    size_t begin, end;  // a span that may still grow
    int waits, matched; // there is one; it ends with a delimiter
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

// Whether a span goes with the one that waits.
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

// The words of a rule, each alone: the way of nearly every text.
static rlhf_status by_rule(struct joiner *j, const char *s, size_t n, int32_t rule) {
    for (size_t at = 0, end; at < n; at = end) {
        end = rlhf__word_end(rule, s, n, at);
        RLHF_TRY(push(j, at, end));
    }
    return RLHF_OK;
}

rlhf_status rlhf__cut_piece(const struct rlhf__cut_step *step, const char *s, size_t at, size_t n,
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
