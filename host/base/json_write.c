// json_write.c: writing JSON; see json.h.
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rlhf__format_double(double v, int real, char out[40]) {
    if (!isfinite(v)) return memcpy(out, "null", sizeof "null");
    int digits = 1;
    for (; digits <= 17; digits++) {
        snprintf(out, 40, "%.*g", digits, v);
        if (strtod(out, NULL) == v) break;
    }
    // "10", not "1e+01": %g goes to exponents as soon as there are more places than digits.
    if (fabs(v) >= 1 && fabs(v) < 1e9 && digits < 10) snprintf(out, 40, "%.10g", v);
    if (real && !strpbrk(out, ".e")) memcpy(out + strlen(out), ".0", sizeof ".0");
    return out;
}

// Length of the UTF-8 sequence at p (at most n bytes), 0 when it is not one (overlong, surrogate
// and out-of-range forms included).
static size_t utf8_len(const unsigned char *p, size_t n) {
    if (p[0] < 0x80) return 1;
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || len > n) return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    if (p[0] == 0xe0 && p[1] < 0xa0) return 0;
    if (p[0] == 0xed && p[1] > 0x9f) return 0;
    if (p[0] == 0xf0 && p[1] < 0x90) return 0;
    if (p[0] == 0xf4 && p[1] > 0x8f) return 0;
    return len;
}

void rlhf__json_write_string(struct rlhf__buf *out, const char *bytes, size_t n) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const unsigned char *p = (const unsigned char *)bytes;
    rlhf__buf_putc(out, '"');
    for (size_t i = 0; i < n;) {
        size_t len = utf8_len(p + i, n - i);
        const char *escape = p[i] ? strchr(from, p[i]) : NULL;
        if (len == 0)
            rlhf__buf_puts(out, "\xef\xbf\xbd");
        else if (escape)
            rlhf__buf_printf(out, "\\%c", to[escape - from]);
        else if (p[i] < 0x20 || p[i] == 0x7f)
            rlhf__buf_printf(out, "\\u%04x", p[i]);
        else
            rlhf__buf_put(out, p + i, len);
        i += len ? len : 1;
    }
    rlhf__buf_putc(out, '"');
}

static void newline(struct rlhf__buf *out, int indent, int depth) {
    if (!indent) return;
    rlhf__buf_putc(out, '\n');
    for (int i = 0; i < indent * depth; i++)
        rlhf__buf_putc(out, ' ');
}

static void write_value(struct rlhf__buf *out, const json_t *v, int indent, int depth);

static void write_object(struct rlhf__buf *out, const json_t *v, int indent, int depth) {
    // Jansson iterates a const object but asks for a plain pointer.
    json_t *object = (json_t *)(uintptr_t)v;
    const char *key, *comma = "";
    json_t *item;
    rlhf__buf_putc(out, '{');
    json_object_foreach(object, key, item) {
        rlhf__buf_puts(out, comma);
        newline(out, indent, depth + 1);
        rlhf__json_write_string(out, key, strlen(key));
        rlhf__buf_puts(out, ": ");
        write_value(out, item, indent, depth + 1);
        comma = indent ? "," : ", ";
    }
    if (*comma) newline(out, indent, depth);
    rlhf__buf_putc(out, '}');
}

static void write_array(struct rlhf__buf *out, const json_t *v, int indent, int depth) {
    size_t n = json_array_size(v);
    rlhf__buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) rlhf__buf_puts(out, indent ? "," : ", ");
        newline(out, indent, depth + 1);
        write_value(out, json_array_get(v, i), indent, depth + 1);
    }
    if (n) newline(out, indent, depth);
    rlhf__buf_putc(out, ']');
}

static void write_value(struct rlhf__buf *out, const json_t *v, int indent, int depth) {
    char number[40];
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        write_object(out, v, indent, depth);
        break;
    case JSON_ARRAY:
        write_array(out, v, indent, depth);
        break;
    case JSON_STRING:
        rlhf__json_write_string(out, json_string_value(v), json_string_length(v));
        break;
    case JSON_INTEGER:
        rlhf__buf_printf(out, "%lld", (long long)json_integer_value(v));
        break;
    case JSON_REAL:
        rlhf__buf_puts(out, rlhf__format_double(json_real_value(v), 1, number));
        break;
    case JSON_TRUE:
        rlhf__buf_puts(out, "true");
        break;
    case JSON_FALSE:
        rlhf__buf_puts(out, "false");
        break;
    default:
        rlhf__buf_puts(out, "null");
        break;
    }
}

void rlhf__json_write(struct rlhf__buf *out, const json_t *v, int indent) {
    write_value(out, v, indent, 0);
}
