// jinja_value.c: see jinja_value.h. White space, operators, items and slices.
#include "chat/jinja_value.h"

#include "base/json.h"
#include "base/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- white space ----

static int is_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

rlhf_str rlhf__space_trim(rlhf_str s, int left, int right) {
    while (left && s.len) {
        uint32_t c = 0;
        size_t n = rlhf__char_at(s.ptr, (size_t)s.len, &c);
        if (!n || !is_space(c)) break;
        s.ptr += n;
        s.len -= n;
    }
    while (right && s.len) {
        uint32_t c = 0;
        size_t back = 1;
        while (back < 4 && back < s.len && ((unsigned char)s.ptr[s.len - back] & 0xc0) == 0x80)
            back++;
        if (rlhf__char_at(s.ptr + s.len - back, back, &c) != back || !is_space(c)) break;
        s.len -= back;
    }
    return s;
}

// ---- operators, items and slices ----

json_t *rlhf__jinja_stop(struct rlhf__jinja_work *w, int state, const char *fmt, ...) {
    if (w->state) return NULL;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->why, sizeof w->why, fmt, ap);
    va_end(ap);
    w->state = state;
    return NULL;
}

json_t *rlhf__jinja_string(struct rlhf__jinja_work *w, const char *s, size_t n) {
    w->bytes -= (int64_t)n + 32;
    if (w->bytes < 0) return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "more text than is allowed");
    json_t *v = json_stringn(s, n);
    return v ? v : rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "a string that is no UTF-8");
}

int rlhf__jinja_true(const json_t *v) {
    if (!v) return 0;
    switch (json_typeof(v)) {
    case JSON_STRING:
        return json_string_length(v) > 0;
    case JSON_INTEGER:
        return json_integer_value(v) != 0;
    case JSON_ARRAY:
        return json_array_size(v) > 0;
    case JSON_OBJECT:
        return json_object_size(v) > 0;
    default:
        return json_is_true(v);
    }
}

// Python's bool is a number.
static int number(const json_t *v, int64_t *out) {
    if (json_is_boolean(v)) *out = json_is_true(v);
    if (json_is_integer(v)) *out = json_integer_value(v);
    return json_is_boolean(v) || json_is_integer(v);
}

int rlhf__jinja_equal(const json_t *a, const json_t *b) {
    int64_t x, y;
    if (!a || !b) return a == b;
    if (number(a, &x) && number(b, &y)) return x == y;
    return json_equal(a, b);
}

void rlhf__jinja_print(struct rlhf__jinja_work *w, const json_t *v, struct rlhf__buf *out) {
    if (!v) return;
    if (json_is_string(v))
        rlhf__buf_put(out, json_string_value(v), json_string_length(v));
    else if (json_is_integer(v))
        rlhf__buf_printf(out, "%lld", (long long)json_integer_value(v));
    else if (json_is_boolean(v))
        rlhf__buf_puts(out, json_is_true(v) ? "True" : "False");
    else if (json_is_null(v))
        rlhf__buf_puts(out, "None");
    else
        rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "printing %s", rlhf__json_kind(v));
}

// ---- operators ----

static json_t *cannot(struct rlhf__jinja_work *w, const char *op, const json_t *a,
                      const json_t *b) {
    int known = strchr("*/%", op[0]) != NULL && a && b; // strings have a % and a *
    return rlhf__jinja_stop(w, known ? RLHF__JINJA_UNKNOWN : RLHF__JINJA_RAISED, "%s %s %s",
                            a ? rlhf__json_kind(a) : "undefined", op,
                            b ? rlhf__json_kind(b) : "undefined");
}

static json_t *joined(struct rlhf__jinja_work *w, const json_t *a, const json_t *b) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf__jinja_print(w, a, &out);
    rlhf__jinja_print(w, b, &out);
    json_t *v = w->state || out.bad ? NULL : rlhf__jinja_string(w, rlhf__buf_text(&out), out.len);
    if (out.bad) rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "out of memory");
    rlhf__buf_free(&out);
    return v;
}

static json_t *lists(struct rlhf__jinja_work *w, const json_t *a, const json_t *b) {
    json_t *v = json_copy((json_t *)(uintptr_t)a);
    w->steps -= (int64_t)(json_array_size(a) + json_array_size(b));
    json_array_extend(v, (json_t *)(uintptr_t)b);
    return v;
}

static int64_t floor_div(int64_t x, int64_t y) {
    return x / y - ((x % y != 0) && (x < 0) != (y < 0));
}

static json_t *calculated(struct rlhf__jinja_work *w, const char *op, const json_t *a,
                          const json_t *b) {
    int64_t x, y, out = 0;
    if (!number(a, &x) || !number(b, &y)) return cannot(w, op, a, b);
    if (llabs(x) > INT32_MAX || llabs(y) > INT32_MAX)
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "a large number");
    if (strcmp(op, "+") == 0)
        out = x + y;
    else if (strcmp(op, "-") == 0)
        out = x - y;
    else if (strcmp(op, "*") == 0)
        out = x * y;
    else if (y == 0)
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a division by 0");
    else if (strcmp(op, "//") == 0)
        out = floor_div(x, y);
    else if (strcmp(op, "%") == 0)
        out = x - y * floor_div(x, y);
    else
        return cannot(w, op, a, b);
    return json_integer(out);
}

static int contains(struct rlhf__jinja_work *w, const json_t *x, const json_t *in) {
    if (json_is_object(in) && json_is_string(x))
        return json_object_get(in, json_string_value(x)) != NULL;
    if (json_is_string(in) && json_is_string(x)) {
        size_t n = json_string_length(in), k = json_string_length(x);
        for (size_t i = 0; i + k <= n; i++)
            if (memcmp(json_string_value(in) + i, json_string_value(x), k) == 0) return 1;
        return 0;
    }
    if (!json_is_array(in)) {
        cannot(w, "in", x, in);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(in); i++)
        if (rlhf__jinja_equal(json_array_get(in, i), x)) return 1;
    return 0;
}

static json_t *compared(struct rlhf__jinja_work *w, const char *op, const json_t *a,
                        const json_t *b) {
    int64_t x = 0, y = 0;
    if (json_is_string(a) && json_is_string(b))
        x = strcmp(json_string_value(a), json_string_value(b));
    else if (!number(a, &x) || !number(b, &y))
        return cannot(w, op, a, b);
    int less = op[0] == '<', equal = op[1] == '=';
    return json_boolean(x == y ? equal : less == (x < y));
}

json_t *rlhf__jinja_binary(struct rlhf__jinja_work *w, const char *op, const json_t *a,
                           const json_t *b) {
    if (strcmp(op, "==") == 0) return json_boolean(rlhf__jinja_equal(a, b));
    if (strcmp(op, "!=") == 0) return json_boolean(!rlhf__jinja_equal(a, b));
    if (op[0] == '<' || op[0] == '>') return compared(w, op, a, b);
    if (op[0] == '~') return joined(w, a, b);
    if (strcmp(op, "in") == 0 || strcmp(op, "!in") == 0) {
        int yes = contains(w, a, b);
        return w->state ? NULL : json_boolean(yes == (op[0] == 'i'));
    }
    if (op[0] == '+' && json_is_string(a) && json_is_string(b)) return joined(w, a, b);
    if (op[0] == '+' && json_is_array(a) && json_is_array(b)) return lists(w, a, b);
    return calculated(w, op, a, b);
}

// ---- items ----

// Bytes of the character at s, which is well-formed.
static size_t char_bytes(const char *s) {
    unsigned char c = (unsigned char)*s;
    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

// The characters of a string as a list; those of a list itself. New reference.
static json_t *elements(struct rlhf__jinja_work *w, const json_t *v) {
    if (json_is_array(v)) return json_incref((json_t *)(uintptr_t)v);
    json_t *list = json_array();
    const char *s = json_string_value(v), *end = s + json_string_length(v);
    for (size_t n; s < end && !w->state; s += n) {
        n = char_bytes(s);
        w->steps--;
        json_array_append_new(list, rlhf__jinja_string(w, s, n));
    }
    return list;
}

json_t *rlhf__jinja_item(struct rlhf__jinja_work *w, const json_t *of, const json_t *key) {
    if (!of) return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "an item of what is undefined");
    if (json_is_object(of) && json_is_string(key))
        return json_incref(json_object_get(of, json_string_value(key)));
    if (!json_is_integer(key) || (!json_is_array(of) && !json_is_string(of))) return NULL;
    json_t *list = elements(w, of);
    int64_t i = json_integer_value(key), n = (int64_t)json_array_size(list);
    json_t *v =
        i < -n || i >= n ? NULL : json_incref(json_array_get(list, (size_t)(i < 0 ? i + n : i)));
    json_decref(list);
    return v;
}

// Where a slice begins or ends, as Python has it.
static int64_t slice_end(const json_t *at, int64_t n, int64_t by, int64_t missing) {
    if (!at || json_is_null(at)) return missing;
    int64_t i = json_integer_value(at);
    if (i < 0) i += n;
    if (i < 0) return by < 0 ? -1 : 0;
    return i >= n ? (by < 0 ? n - 1 : n) : i;
}

json_t *rlhf__jinja_slice(struct rlhf__jinja_work *w, const json_t *of, const json_t *from,
                          const json_t *to, const json_t *by) {
    const json_t *part[] = {from, to, by};
    for (int i = 0; i < 3; i++)
        if (part[i] && !json_is_null(part[i]) && !json_is_integer(part[i]))
            return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "a slice by %s",
                                    rlhf__json_kind(part[i]));
    int64_t step = json_is_integer(by) ? json_integer_value(by) : 1;
    if (!of || (!json_is_array(of) && !json_is_string(of)) || step == 0 || llabs(step) > INT32_MAX)
        return rlhf__jinja_stop(w, of ? RLHF__JINJA_UNKNOWN : RLHF__JINJA_RAISED, "a slice of %s",
                                of ? rlhf__json_kind(of) : "what is undefined");
    json_t *list = elements(w, of), *out = json_array();
    int64_t n = (int64_t)json_array_size(list);
    int64_t i = slice_end(from, n, step, step < 0 ? n - 1 : 0);
    int64_t end = slice_end(to, n, step, step < 0 ? -1 : n);
    for (; step > 0 ? i < end : i > end; i += step) {
        w->steps--;
        json_array_append(out, json_array_get(list, (size_t)i));
    }
    json_decref(list);
    if (json_is_array(of)) return out;
    struct rlhf__buf text = RLHF__BUF_INIT;
    for (size_t k = 0; k < json_array_size(out); k++)
        rlhf__jinja_print(w, json_array_get(out, k), &text);
    json_decref(out);
    json_t *v = w->state ? NULL : rlhf__jinja_string(w, rlhf__buf_text(&text), text.len);
    rlhf__buf_free(&text);
    return v;
}
