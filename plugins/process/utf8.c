// utf8.c: see utf8.h.
#include "process/utf8.h"

#include <stdio.h>
#include <string.h>

// Sets *low and *high to the range of a character's second byte, given its first byte. The range
// excludes overlong forms, surrogates and code points above U+10FFFF (Unicode, table 3-7).
static void second_byte(unsigned char first, unsigned char *low, unsigned char *high) {
    *low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    *high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
}

size_t rlhf__utf8_read(const char *s, size_t n, uint32_t *cp, size_t *bad) {
    const unsigned char *p = (const unsigned char *)s;
    *cp = p[0];
    *bad = 1;
    if (p[0] < 0x80) return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4) return 0;
    const size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    uint32_t code = p[0] & (0x7fu >> len);
    unsigned char low, high;
    second_byte(p[0], &low, &high);
    for (size_t i = 1; i < len; i++) {
        *bad = i;
        if (i >= n || p[i] < low || p[i] > high) return 0;
        code = code << 6 | (p[i] & 0x3f);
        low = 0x80;
        high = 0xbf;
    }
    *cp = code;
    return len;
}

const char *rlhf__utf8_shown(const char *s, size_t n, char *out, size_t cap) {
    size_t used = 0;
    for (size_t at = 0; at < n;) {
        char shown[8];
        uint32_t c;
        size_t bad, len = rlhf__utf8_read(s + at, n - at, &c, &bad), wide = len;
        if (len && c >= 0x20 && (c < 0x7f || c >= 0xa0)) {
            memcpy(shown, s + at, len);
        } else if (c == '\n' || c == '\t' || c == '\r') {
            wide = (size_t)snprintf(shown, sizeof shown, "\\%c",
                                    c == '\n'   ? 'n'
                                    : c == '\t' ? 't'
                                                : 'r');
        } else {
            if (!len) { // an invalid sequence: escape every byte
                len = 1;
                c = (unsigned char)s[at];
            }
            wide = (size_t)snprintf(shown, sizeof shown, "\\x%02x", c & 0xff);
        }
        if (used + wide + 4 > cap) {
            memcpy(out + used, "...", 4);
            return out;
        }
        memcpy(out + used, shown, wide);
        used += wide;
        at += len;
    }
    out[used] = 0;
    return out;
}
