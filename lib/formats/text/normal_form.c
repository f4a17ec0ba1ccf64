// normal_form.c: see normal_form.h. utf8proc computes NFC, NFD, NFKC and NFKD, but only for
// characters that are in the tables of the tokenizers library (unicode.h). All other characters
// stay unchanged, and nothing is composed across them.
#include "text/normal_form.h"

#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

enum { DECOMPOSED_MAX = 32, FEW = 16 };

rlhf_status rlhf__normal_room(const struct rlhf__buf *out, size_t n, struct rlhf__error *err) {
    if (out->len <= RLHF__NORMAL_BYTES_MAX && n <= RLHF__NORMAL_BYTES_MAX - out->len)
        return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "the normalizer makes a text longer than %d MiB, the most that is allowed",
                      RLHF__NORMAL_BYTES_MAX >> 20);
}

struct chars {
    utf8proc_int32_t *cp;
    size_t n, cap;
};

static rlhf_status reserve(struct chars *c, const struct rlhf__buf *out, struct rlhf__error *err) {
    if (c->cap - c->n >= DECOMPOSED_MAX) return RLHF_OK;
    // There are already more characters than a text may have bytes, so fail.
    if (c->n > RLHF__NORMAL_BYTES_MAX) return rlhf__normal_room(out, c->n, err);
    size_t cap = c->cap ? c->cap * 2 : 256;
    utf8proc_int32_t *cp =
        cap <= SIZE_MAX / 2 / sizeof *cp ? realloc(c->cp, cap * sizeof *cp) : NULL;
    if (!cp) return RLHF__NOMEM(err, "out of memory for a text");
    c->cp = cp;
    c->cap = cap;
    return RLHF_OK;
}

static int class_of(utf8proc_int32_t cp) { return utf8proc_get_property(cp)->combining_class; }

// Stable sort of cp[0..n) by combining class. If n is large, this is a counting sort, because a
// whole text may be a single run of marks.
static rlhf_status sort_marks(utf8proc_int32_t *cp, size_t n, struct rlhf__error *err) {
    if (n <= FEW) {
        for (size_t i = 1; i < n; i++) {
            utf8proc_int32_t c = cp[i];
            size_t k = i;
            for (int class = class_of(c); k > 0 && class_of(cp[k - 1]) > class; k--)
                cp[k] = cp[k - 1];
            cp[k] = c;
        }
        return RLHF_OK;
    }
    size_t start[257] = {0};
    utf8proc_int32_t *copy = malloc(n * sizeof *copy);
    if (!copy) return RLHF__NOMEM(err, "out of memory for a text");
    memcpy(copy, cp, n * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        start[class_of(copy[i]) + 1]++;
    for (size_t i = 0; i < 256; i++)
        start[i + 1] += start[i];
    for (size_t i = 0; i < n; i++)
        cp[start[class_of(copy[i])]++] = copy[i];
    free(copy);
    return RLHF_OK;
}

// Put the gathered characters into canonical order, compose them if the form requires it, and write
// them.
static rlhf_status flush(int32_t form, struct chars *c, struct rlhf__buf *out,
                         struct rlhf__error *err) {
    if (!c->cp || c->n == 0) return RLHF_OK;
    for (size_t i = 0, end; i < c->n; i = end) {
        for (end = i; end < c->n && class_of(c->cp[end]);)
            end++;
        if (end > i) RLHF_TRY(sort_marks(c->cp + i, end - i, err));
        if (end == i) end++;
    }
    utf8proc_ssize_t n = utf8proc_normalize_utf32(c->cp, (utf8proc_ssize_t)c->n, form);
    c->n = 0;
    if (n < 0) return rlhf__fail(err, RLHF_E_INTERNAL, "utf8proc: %s", utf8proc_errmsg(n));
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        char bytes[4];
        rlhf__buf_put(out, bytes, rlhf__utf8_put((uint32_t)c->cp[i], bytes));
    }
    return RLHF_OK;
}

static rlhf_status put_region(int32_t form, const char *s, size_t n, struct chars *c,
                              struct rlhf__buf *out, struct rlhf__error *err) {
    for (size_t at = 0, len; at < n; at += len) {
        uint32_t cp = 0;
        size_t bad = 1;
        len = rlhf__utf8_next(s + at, n - at, &cp, &bad);
        if (!len || rlhf__unicode_is_young(cp)) {
            RLHF_TRY(flush(form, c, out, err));
            if (!len) len = bad;
            rlhf__buf_put(out, s + at, len);
            continue;
        }
        RLHF_TRY(reserve(c, out, err));
        utf8proc_ssize_t k = utf8proc_decompose_char((utf8proc_int32_t)cp, c->cp + c->n,
                                                     DECOMPOSED_MAX, (utf8proc_option_t)form, NULL);
        if (k < 0 || k > DECOMPOSED_MAX) {
            c->cp[c->n] = (utf8proc_int32_t)cp;
            k = 1;
        }
        c->n += (size_t)k;
    }
    return flush(form, c, out, err);
}

// Returns the offset of the first byte at or after `at` that is not below `limit`, or n.
// Normalization does not change the characters before that offset, except that the last one may
// combine with the character at the offset.
static size_t easy_end(const char *s, size_t n, size_t at, uint8_t limit) {
    while (at < n) {
        uint64_t w;
        if (n - at >= sizeof w) {
            memcpy(&w, s + at, sizeof w);
            if (!(w & 0x8080808080808080u)) {
                at += sizeof w;
                continue;
            }
        }
        if ((uint8_t)s[at] >= limit) break;
        at++;
    }
    return at;
}

rlhf_status rlhf__normal_form(int32_t form, const char *s, size_t n, struct rlhf__buf *out,
                              struct rlhf__error *err) {
    // NFC does not change characters below U+0300 (0xCC 0x80); the other forms do not change ASCII.
    // Continuation bytes are below the limit of NFC, too. But easy_end skips a continuation byte
    // only after a lead byte below the limit, i.e. within a character that does not change.
    int nfc = form == (UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    uint8_t limit = nfc ? 0xCC : 0x80;
    struct chars c = {0};
    rlhf_status st = RLHF_OK;
    for (size_t at = 0; at < n && st == RLHF_OK;) {
        size_t end = easy_end(s, n, at, limit);
        if (end == n) {
            rlhf__buf_put(out, s + at, n - at);
            break;
        }
        size_t from = end; // the next character may combine with the last unchanged one
        if (from > at) from--;
        while (from > at && ((uint8_t)s[from] & 0xC0) == 0x80)
            from--;
        rlhf__buf_put(out, s + at, from - at);
        while (end < n && (uint8_t)s[end] >= 0x80 &&
               ((uint8_t)s[end] >= limit || ((uint8_t)s[end] & 0xC0) == 0x80))
            end++;
        st = put_region(form, s + from, end - from, &c, out, err);
        at = end;
    }
    free(c.cp);
    return st;
}
