// added.c: see added.h. A text is split as the tokenizers library splits it: by the tokens that are
// looked for in the text itself, then, between them, the normal text by those that are normalized.
#include "text/added.h"

#include "text/pipeline.h"
#include "text/unicode.h"
#include "text/utf8.h"

struct splitting {
    const struct rlhf__tokenizer *tok;
    struct rlhf__work *work;
    uint32_t flags;
    size_t stop_at;
    struct rlhf__ids *out;
    struct rlhf__error *err;
};

typedef rlhf_status piece_fn(const struct splitting *sp, const char *s, size_t n, int at_start);

// ---- characters
// ------------------------------------------------------------------------------------

// The character that ends at s + n; 0 where there is none or bytes that are none.
static uint32_t last_char(const char *s, size_t n, size_t *len) {
    for (size_t back = 1; back <= 4 && back <= n; back++) {
        uint32_t cp = 0;
        *len = back;
        if (rlhf__utf8_next(s + n - back, back, &cp, NULL) == back) return cp;
    }
    return 0;
}

// What \w means to the library: letters, marks, decimal numbers, connecting punctuation, joiners
// and what else counts as alphabetic.
static int is_word(uint32_t cp) {
    if ((cp >= 0x24B6 && cp <= 0x24E9) || (cp >= 0x1F130 && cp <= 0x1F149) ||
        (cp >= 0x1F150 && cp <= 0x1F169) || (cp >= 0x1F170 && cp <= 0x1F189) || cp == 0x200C ||
        cp == 0x200D)
        return 1;
    switch (rlhf__unicode_category(cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return 1;
    default:
        return 0;
    }
}

static int within_word(const char *s, size_t n, const struct rlhf__match *m) {
    size_t len;
    uint32_t next = 0;
    if (m->begin && is_word(last_char(s, m->begin, &len))) return 1;
    if (m->end < n) rlhf__utf8_next(s + m->end, n - m->end, &next, NULL);
    return m->end < n && is_word(next);
}

static size_t space_before(const char *s, size_t at) {
    size_t len = 0;
    while (at && rlhf__unicode_is_space(last_char(s, at, &len)))
        at -= len;
    return at;
}

static size_t space_behind(const char *s, size_t n, size_t at) {
    while (at < n) {
        uint32_t cp = 0;
        size_t len = rlhf__utf8_next(s + at, n - at, &cp, NULL);
        if (!len || !rlhf__unicode_is_space(cp)) break;
        at += len;
    }
    return at;
}

// ---- splitting
// -------------------------------------------------------------------------------------

// Cut s at the tokens of m; what lies between goes to `piece`. A match that does not count is
// passed over as a whole. A token's white space may be another's too, as in the library.
static rlhf_status split(const struct splitting *sp, const struct rlhf__matcher *m, int ordinary,
                         const char *s, size_t n, int at_start, piece_fn *piece) {
    const struct rlhf__added *added = &sp->tok->added;
    int specials = (sp->flags & RLHF__ENCODE_SPECIAL) != 0;
    size_t from = 0;
    struct rlhf__match at = {0};
    while ((ordinary || specials) && sp->out->n < sp->stop_at &&
           rlhf__matcher_next(m, s, n, at.end, &at)) {
        const struct rlhf__added_token *t = &added->item[at.value];
        if ((t->special && !specials) || (t->single_word && within_word(s, n, &at))) continue;
        size_t begin = t->lstrip ? space_before(s, at.begin) : at.begin;
        if (from < begin) RLHF_TRY(piece(sp, s + from, begin - from, at_start && !from));
        if (sp->out->n < sp->stop_at) RLHF_TRY(rlhf__ids_push(sp->out, t->id, sp->err));
        from = t->rstrip ? space_behind(s, n, at.end) : at.end;
    }
    return from < n ? piece(sp, s + from, n - from, at_start && !from) : RLHF_OK;
}

static rlhf_status words(const struct splitting *sp, const char *s, size_t n, int at_start) {
    return rlhf__pipeline_words(sp->tok, sp->work, s, n, at_start, sp->stop_at, sp->out, sp->err);
}

static rlhf_status normal_text(const struct splitting *sp, const char *s, size_t n, int at_start) {
    const struct rlhf__added *added = &sp->tok->added;
    const char *normal;
    size_t len;
    if (sp->out->n >= sp->stop_at) return RLHF_OK;
    RLHF_TRY(rlhf__pipeline_normal(sp->tok, sp->work, s, n, &normal, &len, sp->err));
    return split(sp, &added->normal, added->normal_ordinary, normal, len, at_start, words);
}

rlhf_status rlhf__added_encode(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                               const char *s, size_t n, uint32_t flags, size_t stop_at,
                               struct rlhf__ids *out, struct rlhf__error *err) {
    struct splitting sp = {tok, work, flags, stop_at, out, err};
    return split(&sp, &tok->added.plain, tok->added.plain_ordinary, s, n, 1, normal_text);
}
