// utf8.c: see utf8.h. The table of well-formed byte sequences is Unicode's table 3-7.
#include "text/utf8.h"

#include <string.h>

// Number of continuation bytes after lead byte c, -1 when c cannot start a character; [*lo, *hi] is
// the range of the first continuation byte.
static int lead(uint8_t c, uint8_t *lo, uint8_t *hi) {
    *lo = 0x80;
    *hi = 0xBF;
    if (c >= 0xC2 && c <= 0xDF) return 1;
    if (c >= 0xE0 && c <= 0xEF) {
        if (c == 0xE0) *lo = 0xA0;
        if (c == 0xED) *hi = 0x9F;
        return 2;
    }
    if (c >= 0xF0 && c <= 0xF4) {
        if (c == 0xF0) *lo = 0x90;
        if (c == 0xF4) *hi = 0x8F;
        return 3;
    }
    return -1;
}

size_t rlhf__utf8_next(const char *s, size_t n, uint32_t *cp, size_t *bad) {
    uint8_t c = (uint8_t)s[0], lo, hi;
    if (c < 0x80) {
        if (cp) *cp = c;
        return 1;
    }
    int more = lead(c, &lo, &hi);
    uint32_t v = more < 0 ? 0 : c & (0x3Fu >> more);
    for (int i = 1; i <= more; i++) {
        uint8_t d = (size_t)i < n ? (uint8_t)s[i] : 0;
        if (d < lo || d > hi) {
            if (bad) *bad = (size_t)i;
            return 0;
        }
        v = (v << 6) | (d & 0x3F);
        lo = 0x80;
        hi = 0xBF;
    }
    if (more < 0) {
        if (bad) *bad = 1;
        return 0;
    }
    if (cp) *cp = v;
    return (size_t)more + 1;
}

size_t rlhf__utf8_valid(const char *s, size_t n) {
    size_t i = 0;
    while (i < n) {
        uint64_t w;
        if (n - i >= sizeof w) { // eight ASCII bytes at a time
            memcpy(&w, s + i, sizeof w);
            if (!(w & 0x8080808080808080u)) {
                i += sizeof w;
                continue;
            }
        }
        size_t len = rlhf__utf8_next(s + i, n - i, NULL, NULL);
        if (!len) return i;
        i += len;
    }
    return n;
}

size_t rlhf__utf8_put(uint32_t cp, char *out) {
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | (cp >> 6));
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | (cp >> 12));
        out[1] = (char)(0x80 | ((cp >> 6) & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (cp >> 18));
    out[1] = (char)(0x80 | ((cp >> 12) & 0x3F));
    out[2] = (char)(0x80 | ((cp >> 6) & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

size_t rlhf__utf8_repair(const char *s, size_t n, char *out, size_t cap) {
    size_t len = 0;
    int room = 1;
    for (size_t i = 0; i < n;) {
        size_t bad = 1, step = rlhf__utf8_next(s + i, n - i, NULL, &bad);
        const char *from = step ? s + i : "\xEF\xBF\xBD";
        size_t bytes = step ? step : 3;
        room = room && cap >= len && bytes <= cap - len; // once full, stay full
        if (room) memcpy(out + len, from, bytes);
        len += bytes;
        i += step ? step : bad;
    }
    return len;
}
