// loose_json.c: see loose_json.h.
#include "history/loose_json.h"

#include "base/json.h"
#include "base/printable.h"

#include <string.h>

// The value of four hexadecimal digits at p, or -1.
static int32_t hex4(const char *p, const char *end) {
    int32_t v = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef";
        const char c = p[i] >= 'A' && p[i] <= 'F' ? (char)(p[i] + 32) : p[i];
        const char *at = c ? strchr(digits, c) : NULL;
        if (!at) return -1;
        v = v * 16 + (int32_t)(at - digits);
    }
    return v;
}

// Called at the backslash of an escape: append the escape, repaired if necessary, and return its
// length in the input.
static size_t put_escape(struct rlhf__buf *out, const char *p, const char *end) {
    const int32_t c = end - p >= 6 && p[1] == 'u' ? hex4(p + 2, end) : -1;
    size_t n = c >= 0 ? 6 : (size_t)(end - p < 2 ? end - p : 2);
    if (c >= 0xd800 && c < 0xdc00 && end - p >= 12 && p[6] == '\\' && p[7] == 'u') {
        const int32_t low = hex4(p + 8, end);
        if (low >= 0xdc00 && low < 0xe000) n = 12;
    }
    if (c == 0 || (n == 6 && c >= 0xd800 && c < 0xe000))
        rlhf__buf_puts(out, "\\ufffd");
    else
        rlhf__buf_put(out, p, n);
    return n;
}

// Called outside of strings: if the text at p is NaN, Infinity or -Infinity, append null and return
// the length of that word. Otherwise return 0.
static size_t put_word(struct rlhf__buf *out, const char *p, const char *end) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        if ((size_t)(end - p) < n || memcmp(p, words[i], n) != 0) continue;
        rlhf__buf_puts(out, "null");
        return n;
    }
    return 0;
}

static void repair(struct rlhf__buf *out, const char *p, size_t len) {
    const char *const end = p + len;
    int text = 0;
    while (p < end) {
        uint32_t c = 0;
        size_t n = rlhf__char_at(p, (size_t)(end - p), &c);
        if (n == 0) {
            rlhf__buf_puts(out, "\xef\xbf\xbd");
            p++;
            continue;
        }
        if (c == '"') text = !text;
        if (text && c == '\\') {
            p += put_escape(out, p, end);
            continue;
        }
        const size_t word = text ? 0 : put_word(out, p, end);
        if (!word) rlhf__buf_put(out, p, n);
        p += word ? word : n;
    }
}

json_t *rlhf__loose_json(const char *bytes, size_t n) {
    json_t *v = rlhf__json_decode(bytes, n, JSON_ALLOW_NUL, NULL);
    if (v) return v;
    struct rlhf__buf fixed = RLHF__BUF_INIT;
    repair(&fixed, bytes, n);
    if (!fixed.bad && fixed.len) v = rlhf__json_decode(fixed.data, fixed.len, 0, NULL);
    rlhf__buf_finish(&fixed);
    return v;
}
