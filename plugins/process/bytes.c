// bytes.c: see bytes.h.
#include "process/bytes.h"

#include "process/utf8.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void rlhf__bytes_finish(struct rlhf__bytes *b) {
    if (b->data) b->host->free(b->host, b->data);
    b->data = NULL;
    b->len = b->cap = 0;
}

static int make_room(struct rlhf__bytes *b, size_t n) {
    if (b->full || n > SIZE_MAX / 4 - b->len) {
        b->full = 1;
        return 0;
    }
    if (b->len + n <= b->cap) return 1;
    size_t cap = b->cap ? b->cap : 4096;
    while (cap < b->len + n)
        cap *= 2;
    char *more = b->host->alloc(b->host, cap);
    b->full = !more;
    if (!more) return 0;
    if (b->len) memcpy(more, b->data, b->len);
    if (b->data) b->host->free(b->host, b->data);
    b->data = more;
    b->cap = cap;
    return 1;
}

void rlhf__bytes_add(struct rlhf__bytes *b, const void *data, size_t n) {
    if (!n || !make_room(b, n)) return;
    memcpy(b->data + b->len, data, n);
    b->len += n;
}

void rlhf__bytes_text(struct rlhf__bytes *b, const char *text) {
    rlhf__bytes_add(b, text, strlen(text));
}

void rlhf__bytes_number(struct rlhf__bytes *b, int64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    rlhf__bytes_text(b, text);
}

// Returns the least number of digits that give v back. A decimal of at most 15 digits is what v has
// in 15 digits, if it gives v back (DBL_DIG). So if 15 digits do, those without the zeros at the
// end are the least, and otherwise 16 or 17 are. This does not hold for denormal numbers.
static int digits_of(double v) {
    char text[40];
    int digits = fabs(v) >= DBL_MIN ? DBL_DIG : 1;
    for (; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, v);
        if (strtod(text, NULL) == v) break;
    }
    const char *last = strchr(text, 'e');
    if (digits == DBL_DIG)
        while (digits > 1 && *--last == '0')
            digits--;
    return digits;
}

// The host writes numbers in the same form (rlhf__format_double).
void rlhf__bytes_double(struct rlhf__bytes *b, double v) {
    char text[40];
    const int digits = v != 0 ? digits_of(v) : 1;
    snprintf(text, sizeof text, "%.*e", digits - 1, v); // d.dde+NN
    const int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    const int is_short = digits < 10 && exponent < 9; // 1e+01 becomes 10
    if (exponent >= -4 && (exponent < digits || is_short)) {
        const int decimals = digits - 1 - exponent;
        snprintf(text, sizeof text, "%.*f", decimals > 0 ? decimals : 0, v);
    }
    rlhf__bytes_text(b, text);
}

// 1 if a character needs no escape in a JSON string.
static int is_plain(uint32_t c) {
    return c >= 0x20 && c != '"' && c != '\\' && c != 0x85 && c != 0x2028 && c != 0x2029;
}

static void add_escaped(struct rlhf__bytes *b, uint32_t c) {
    char text[8];
    switch (c) {
    case '"':
        rlhf__bytes_add(b, "\\\"", 2);
        return;
    case '\\':
        rlhf__bytes_add(b, "\\\\", 2);
        return;
    case '\n':
        rlhf__bytes_add(b, "\\n", 2);
        return;
    default:
        snprintf(text, sizeof text, "\\u%04x", c & 0xffff);
        rlhf__bytes_add(b, text, 6);
    }
}

void rlhf__bytes_string(struct rlhf__bytes *b, rlhf_str text) {
    size_t from = 0, at = 0;
    const size_t n = (size_t)text.len;
    rlhf__bytes_add(b, "\"", 1);
    while (at < n) {
        uint32_t c;
        size_t bad;
        const size_t len = rlhf__utf8_read(text.ptr + at, n - at, &c, &bad);
        if (!len || !is_plain(c)) {
            rlhf__bytes_add(b, text.ptr + from, at - from);
            from = at + (len ? len : bad);
            if (len)
                add_escaped(b, c);
            else
                rlhf__bytes_add(b, "\xef\xbf\xbd", 3);
        }
        at += len ? len : bad;
    }
    if (n > from) rlhf__bytes_add(b, text.ptr + from, n - from);
    rlhf__bytes_add(b, "\"", 1);
}

void rlhf__bytes_json(struct rlhf__bytes *b, rlhf_str json) {
    const size_t n = (size_t)json.len;
    if (!n) {
        rlhf__bytes_text(b, "null");
        return;
    }
    // In JSON text, line breaks occur only between tokens, so each can be replaced by a space.
    for (size_t from = 0; from < n;) {
        size_t at = from;
        while (at < n && json.ptr[at] != '\n' && json.ptr[at] != '\r')
            at++;
        rlhf__bytes_add(b, json.ptr + from, at - from);
        if (at < n) rlhf__bytes_add(b, " ", 1);
        from = at + 1;
    }
}

void rlhf__bytes_list(struct rlhf__bytes *b, const int32_t *numbers, size_t n) {
    rlhf__bytes_add(b, "[", 1);
    for (size_t i = 0; i < n; i++) {
        if (i) rlhf__bytes_add(b, ",", 1);
        rlhf__bytes_number(b, numbers[i]);
    }
    rlhf__bytes_add(b, "]", 1);
}
