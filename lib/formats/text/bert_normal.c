// bert_normal.c: see bert_normal.h.
#include "text/bert_normal.h"

#include "text/unicode.h"
#include "text/utf8.h"

static int is_cjk(uint32_t cp) {
    return (cp >= 0x4E00 && cp <= 0x9FFF) || (cp >= 0x3400 && cp <= 0x4DBF) ||
           (cp >= 0x20000 && cp <= 0x2A6DF) || (cp >= 0x2A700 && cp <= 0x2B73F) ||
           (cp >= 0x2B740 && cp <= 0x2B81F) || (cp >= 0x2B920 && cp <= 0x2CEAF) ||
           (cp >= 0xF900 && cp <= 0xFAFF) || (cp >= 0x2F800 && cp <= 0x2FA1F);
}

static void put(struct rlhf__buf *out, uint32_t cp) {
    char c[4];
    rlhf__buf_put(out, c, rlhf__utf8_put(cp, c));
}

void rlhf__bert_clean(const struct rlhf__bert_opts *opts, const char *s, size_t n,
                      struct rlhf__buf *out) {
    for (size_t at = 0; at < n;) {
        uint32_t cp = 0xFFFD;
        size_t bad = 1, len = rlhf__utf8_next(s + at, n - at, &cp, &bad);
        at += len ? len : bad;
        if (!len) cp = 0xFFFD;
        if (opts->clean && (cp == 0 || cp == 0xFFFD || rlhf__unicode_is_control(cp))) continue;
        if (opts->clean && rlhf__unicode_is_space(cp)) cp = ' ';
        int apart = opts->split_cjk && is_cjk(cp);
        if (apart) put(out, ' ');
        put(out, cp);
        if (apart) put(out, ' ');
    }
}

void rlhf__bert_finish(const struct rlhf__bert_opts *opts, const char *s, size_t n,
                       struct rlhf__buf *out) {
    for (size_t at = 0, len; at < n; at += len) {
        uint32_t cp = 0, lower[2];
        len = rlhf__utf8_next(s + at, n - at, &cp, NULL);
        if (!len) len = 1; // none is left
        if (opts->strip_accents && rlhf__unicode_is_accent(cp)) continue;
        size_t k = 1;
        lower[0] = cp;
        if (opts->lower) k = rlhf__unicode_lower(cp, lower);
        for (size_t i = 0; i < k; i++)
            put(out, lower[i]);
    }
}
