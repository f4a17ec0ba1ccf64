// printable.c: see printable.h.
#include "base/printable.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

size_t rlhf__char_at(const char *s, size_t n, uint32_t *c) {
    const unsigned char *p = (const unsigned char *)s;
    *c = p[0];
    if (p[0] < 0x80) return 1;
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || len > n) return 0;
    *c = p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        *c = *c << 6 | (p[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return *c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff) ? 0 : len;
}

int rlhf__is_printable(uint32_t c) {
    if (c < 0x7f) return c >= 0x20;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return 0;
    default:
        return 1;
    }
}

// The character (or bad byte) at s as it is shown, NUL-ended; returns the bytes it takes of s.
static size_t show(const char *s, size_t n, const char *keep, char out[16]) {
    uint32_t c;
    size_t len = rlhf__char_at(s, n, &c);
    if (len && (rlhf__is_printable(c) || (c && c < 0x80 && strchr(keep, (int)c)))) {
        memcpy(out, s, len);
        out[len] = '\0';
    } else if (len && (c == '\n' || c == '\t' || c == '\r')) {
        snprintf(out, 16, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
    } else if (len == 0 || c < 0x100) {
        snprintf(out, 16, "\\x%02x", len ? c : (unsigned char)*s);
    } else {
        snprintf(out, 16, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    }
    return len ? len : 1;
}

void rlhf__put_printable(struct rlhf__buf *out, const char *s, size_t n, const char *keep) {
    char shown[16];
    for (size_t at = 0; at < n;) {
        at += show(s + at, n - at, keep, shown);
        rlhf__buf_puts(out, shown);
    }
}

const char *rlhf__printable(const char *s, char *out, size_t cap) {
    char shown[16];
    size_t n = strlen(s), used = 0;
    if (cap == 0) return "";
    for (size_t at = 0; at < n;) {
        at += show(s + at, n - at, "", shown);
        size_t len = strlen(shown);
        if (used + len >= cap) break;
        memcpy(out + used, shown, len);
        used += len;
    }
    out[used] = '\0';
    return out;
}

void rlhf__put_shell(struct rlhf__buf *out, const char *s) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "._/+=@%:,-";
    if (*s && !s[strspn(s, plain)]) {
        rlhf__buf_puts(out, s);
        return;
    }
    rlhf__buf_putc(out, '\'');
    for (; *s; s++)
        if (*s == '\'')
            rlhf__buf_puts(out, "'\\''");
        else
            rlhf__buf_putc(out, *s);
    rlhf__buf_putc(out, '\'');
}
