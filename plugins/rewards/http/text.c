// text.c: see text.h.
#include "http/text.h"

#include <stdio.h>

// Room for n more bytes; 0 when there is none.
static int grow(struct rlhf__text *t, size_t n) {
    if (t->failed || n > SIZE_MAX / 4 - t->len) {
        t->failed = 1;
        return 0;
    }
    if (t->len + n <= t->cap) return 1;
    size_t cap = t->cap ? t->cap * 2 : 4096;
    while (cap < t->len + n)
        cap *= 2;
    char *more = t->host->alloc(t->host, cap);
    if (!more) {
        t->failed = 1;
        return 0;
    }
    if (t->len) memcpy(more, t->at, t->len);
    t->host->free(t->host, t->at);
    t->at = more;
    t->cap = cap;
    return 1;
}

void rlhf__text_put(struct rlhf__text *t, const char *bytes, size_t n) {
    if (!n || !grow(t, n)) return;
    memcpy(t->at + t->len, bytes, n);
    t->len += n;
}

void rlhf__text_puts(struct rlhf__text *t, const char *s) { rlhf__text_put(t, s, strlen(s)); }

// Bytes of the UTF-8 character at p, of n left; 0: it is none (RFC 3629: no overlong forms, no
// surrogates, nothing beyond U+10FFFF).
static size_t utf8_length(const unsigned char *p, size_t n) {
    if (p[0] < 0x80) return 1;
    const size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || len > n) return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f)) return 0;
    if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)) return 0;
    return len;
}

// One character that cannot stand in a JSON string as it is.
static void put_escaped(struct rlhf__text *t, unsigned char c) {
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const char *known = memchr(plain, c, sizeof plain - 1);
    char text[8];
    if (known)
        snprintf(text, sizeof text, "\\%c", letter[known - plain]);
    else
        snprintf(text, sizeof text, "\\u%04x", c);
    rlhf__text_puts(t, text);
}

void rlhf__text_json(struct rlhf__text *t, rlhf_str s) {
    const unsigned char *p = (const unsigned char *)s.ptr;
    rlhf__text_puts(t, "\"");
    size_t from = 0, i = 0;
    while (i < s.len) {
        const size_t len = utf8_length(p + i, (size_t)s.len - i);
        const int plain = len > 1 || (len == 1 && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\');
        if (plain) {
            i += len;
            continue;
        }
        rlhf__text_put(t, s.ptr + from, i - from);
        if (len)
            put_escaped(t, p[i]);
        else
            rlhf__text_puts(t, "\xef\xbf\xbd");
        from = ++i;
    }
    rlhf__text_put(t, s.ptr + from, i - from);
    rlhf__text_puts(t, "\"");
}

void rlhf__text_clear(struct rlhf__text *t) {
    t->len = 0;
    t->failed = 0;
}

void rlhf__text_finish(struct rlhf__text *t) {
    if (t->at) t->host->free(t->host, t->at);
    t->at = NULL;
    t->len = t->cap = 0;
}

const char *rlhf__excerpt(const char *bytes, size_t n, char out[260]) {
    enum { SHOWN = 60 };
    size_t at = 0;
    out[at++] = '"';
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c < 0x7f)
            out[at++] = (char)c;
        else
            at += (size_t)snprintf(out + at, 260 - at, "\\x%02x", c);
    }
    snprintf(out + at, 260 - at, n > SHOWN ? "...\"" : "\"");
    return out;
}
