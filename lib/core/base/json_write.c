// json_write.c: writing JSON; see json.h.
#include "base/json.h"

#include "base/file_writer.h"
#include "base/printable.h"

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

const char *rlhf__format_float(float v, char out[40]) {
    if (!isfinite(v)) return memcpy(out, "null", sizeof "null");
    // Nine digits are enough for any; %g leaves the zeros of fewer away.
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(out, 40, "%.*g", digits, (double)v);
        if ((float)strtod(out, NULL) == v) break;
    }
    return out;
}

// A character that is not to be shown, as the escapes JSON has for it.
static void put_escaped(struct rlhf__buf *out, uint32_t c) {
    if (c < 0x10000)
        rlhf__buf_printf(out, "\\u%04x", c);
    else
        rlhf__buf_printf(out, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
}

void rlhf__json_write_string(struct rlhf__buf *out, const char *bytes, size_t n) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    rlhf__buf_putc(out, '"');
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = rlhf__char_at(bytes + i, n - i, &c);
        const char *escape = len == 1 && c ? strchr(from, (int)c) : NULL;
        if (len == 0)
            rlhf__buf_puts(out, "\xef\xbf\xbd");
        else if (escape)
            rlhf__buf_printf(out, "\\%c", to[escape - from]);
        else if (!rlhf__is_printable(c))
            put_escaped(out, c);
        else
            rlhf__buf_put(out, bytes + i, len);
        i += len ? len : 1;
    }
    rlhf__buf_putc(out, '"');
}

json_t *rlhf__json_text(const char *bytes) {
    struct rlhf__buf good = RLHF__BUF_INIT;
    size_t n = bytes ? strlen(bytes) : 0;
    uint32_t c;
    for (size_t i = 0; i < n;) {
        size_t len = rlhf__char_at(bytes + i, n - i, &c);
        if (len)
            rlhf__buf_put(&good, bytes + i, len);
        else
            rlhf__buf_puts(&good, "\xef\xbf\xbd");
        i += len ? len : 1;
    }
    json_t *text = good.bad ? NULL : json_string(rlhf__buf_text(&good));
    rlhf__buf_free(&good);
    return text;
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

rlhf_status rlhf__json_save_new(const struct rlhf__folder *in, const char *name, json_t *v,
                                int indent, struct rlhf__error *err) {
    if (!v) return RLHF__NOMEM(err, "%s: out of memory", name);
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__json_write(&text, v, indent);
    rlhf__buf_putc(&text, '\n');
    json_decref(v);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) st = rlhf__file_write(in, name, text.data, text.len, err);
    rlhf__buf_free(&text);
    return st;
}
