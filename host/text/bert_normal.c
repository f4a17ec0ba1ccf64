// bert_normal.c: see bert_normal.h. Categories, decompositions and case come from utf8proc.
#include "text/bert_normal.h"

#include "text/utf8.h"

#include <stdlib.h>
#include <utf8proc.h>

static utf8proc_category_t category(uint32_t cp) { return utf8proc_category((utf8proc_int32_t)cp); }

int rlhf__bert_is_space(uint32_t cp) {
    if (cp < 0x80) return cp == ' ' || (cp >= '\t' && cp <= '\r');
    if (cp == 0x85) return 1;
    utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP;
}

int rlhf__bert_is_punct(uint32_t cp) {
    if (cp < 0x80)
        return (cp >= '!' && cp <= '/') || (cp >= ':' && cp <= '@') || (cp >= '[' && cp <= '`') ||
               (cp >= '{' && cp <= '~');
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

// Control characters in BERT's sense: the C categories but tab, newline and carriage return.
static int is_control(uint32_t cp) {
    if (cp < 0x80) return (cp < ' ' && cp != '\t' && cp != '\n' && cp != '\r') || cp == 0x7F;
    utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO;
}

static int is_cjk(uint32_t cp) {
    return (cp >= 0x4E00 && cp <= 0x9FFF) || (cp >= 0x3400 && cp <= 0x4DBF) ||
           (cp >= 0x20000 && cp <= 0x2A6DF) || (cp >= 0x2A700 && cp <= 0x2B73F) ||
           (cp >= 0x2B740 && cp <= 0x2B81F) || (cp >= 0x2B920 && cp <= 0x2CEAF) ||
           (cp >= 0xF900 && cp <= 0xFAFF) || (cp >= 0x2F800 && cp <= 0x2FA1F);
}

static rlhf_status push(struct rlhf__codepoints *out, uint32_t cp, struct rlhf__error *err) {
    if (out->n == out->cap) {
        size_t cap = out->cap ? out->cap * 2 : 256;
        uint32_t *grown =
            cap <= SIZE_MAX / sizeof *grown / 2 ? realloc(out->cp, cap * sizeof *grown) : NULL;
        if (!grown) {
            rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a text");
            return RLHF_E_NOMEM;
        }
        out->cp = grown;
        out->cap = cap;
    }
    out->cp[out->n++] = cp;
    return RLHF_OK;
}

static rlhf_status push_lower(const struct rlhf__bert_opts *opts, struct rlhf__codepoints *out,
                              uint32_t cp, struct rlhf__error *err) {
    if (!opts->lower) return push(out, cp, err);
    if (cp < 0x80) return push(out, cp >= 'A' && cp <= 'Z' ? cp + 32 : cp, err);
    if (cp == 0x130) { // the one character whose lower case is two
        RLHF_TRY(push(out, 'i', err));
        return push(out, 0x307, err);
    }
    return push(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp), err);
}

static int combining(uint32_t cp) {
    return utf8proc_get_property((utf8proc_int32_t)cp)->combining_class;
}

// Append the canonical decomposition of cp, its marks moved to canonical order among those before.
static rlhf_status push_nfd(struct rlhf__codepoints *out, uint32_t cp, struct rlhf__error *err) {
    utf8proc_int32_t part[16];
    int boundary = UTF8PROC_BOUNDCLASS_START;
    utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)cp, part, 16, UTF8PROC_DECOMPOSE, &boundary);
    if (n < 1 || n > 16) return push(out, cp, err);
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        uint32_t c = (uint32_t)part[i];
        RLHF_TRY(push(out, c, err));
        int class = combining(c);
        for (size_t k = out->n - 1; class && k > 0 && combining(out->cp[k - 1]) > class; k--) {
            out->cp[k] = out->cp[k - 1];
            out->cp[k - 1] = c;
        }
    }
    return RLHF_OK;
}

// One cleaned character through decomposition, or straight on.
static rlhf_status put(const struct rlhf__bert_opts *opts, struct rlhf__codepoints *out,
                       uint32_t cp, struct rlhf__error *err) {
    return opts->strip_accents && cp >= 0x80 ? push_nfd(out, cp, err) : push(out, cp, err);
}

// Drop the marks of cp[from..n) when asked, then lower the rest.
static rlhf_status finish(const struct rlhf__bert_opts *opts, const struct rlhf__codepoints *in,
                          struct rlhf__codepoints *out, struct rlhf__error *err) {
    for (size_t i = 0; i < in->n; i++) {
        uint32_t cp = in->cp[i];
        if (opts->strip_accents && cp >= 0x300 && category(cp) == UTF8PROC_CATEGORY_MN) continue;
        RLHF_TRY(push_lower(opts, out, cp, err));
    }
    return RLHF_OK;
}

static rlhf_status clean(const struct rlhf__bert_opts *opts, const char *s, size_t n,
                         struct rlhf__codepoints *out, struct rlhf__error *err) {
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0xFFFD;
        size_t bad = 1, step = rlhf__utf8_next(s + i, n - i, &cp, &bad);
        i += step ? step : bad;
        if (!step || cp == 0 || cp == 0xFFFD || is_control(cp)) continue;
        if (rlhf__bert_is_space(cp)) cp = ' ';
        int apart = opts->split_cjk && is_cjk(cp);
        if (apart) RLHF_TRY(push(out, ' ', err));
        RLHF_TRY(put(opts, out, cp, err));
        if (apart) RLHF_TRY(push(out, ' ', err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__bert_normalise(const struct rlhf__bert_opts *opts, const char *s, size_t n,
                                 struct rlhf__codepoints *out, struct rlhf__error *err) {
    struct rlhf__codepoints cleaned = {0};
    rlhf_status st = clean(opts, s, n, &cleaned, err);
    if (st == RLHF_OK) st = finish(opts, &cleaned, out, err);
    free(cleaned.cp);
    return st;
}
