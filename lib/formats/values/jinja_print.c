// jinja_print.c: see jinja_print.h.
#include "values/jinja_print.h"

#include "base/decimal.h"
#include "base/json.h"
#include "values/jinja_dict.h"
#include "values/jinja_letter.h"
#include "values/jinja_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The destination and the style of printing a value.
struct printer {
    struct rlhf__jinja_work *w;
    struct rlhf__buf *out;
    const struct rlhf__jinja_json *json; // NULL: print as Python does
    int depth;
};

// Returns 1 if n more bytes are allowed. Otherwise sets the state and returns 0.
static int fits(struct printer *p, size_t n) {
    if (p->out->len + n > RLHF__JINJA_TEXT_MAX)
        rlhf__jinja_stop(p->w, RLHF__JINJA_UNKNOWN, "more text than is allowed (%d MiB)",
                         RLHF__JINJA_TEXT_MAX >> 20);
    return !p->w->state;
}

static void put_str(struct printer *p, rlhf_str s) { rlhf__buf_put(p->out, s.ptr, (size_t)s.len); }

// repr() of a float: the fewest digits that read back as the same number.
static void put_float(struct printer *p, double f) {
    char text[40];
    if (isnan(f) || isinf(f)) {
        rlhf__buf_puts(p->out, isnan(f)  ? (p->json ? "NaN" : "nan")
                               : p->json ? (f < 0 ? "-Infinity" : "Infinity")
                                         : (f < 0 ? "-inf" : "inf"));
        return;
    }
    const struct rlhf__decimal d = rlhf__decimal_of(f);
    if (f >= 0 && f <= 0) {
        rlhf__buf_puts(p->out, signbit(f) ? "-0.0" : "0.0");
        return;
    }
    const int scientific = d.exponent < -4 || d.exponent >= 16;
    rlhf__buf_puts(p->out, rlhf__decimal_text(&d, scientific, text));
    if (!scientific && d.n <= d.exponent + 1) rlhf__buf_puts(p->out, ".0");
}

static void put_escaped(struct printer *p, uint32_t c, int json) {
    if (json && c > 0xffff) {
        rlhf__buf_printf(p->out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                         (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
        return;
    }
    rlhf__buf_printf(p->out,
                     json || (c > 0xff && c <= 0xffff) ? "\\u%04x"
                     : c <= 0xff                       ? "\\x%02x"
                                                       : "\\U%08x",
                     (unsigned)c);
}

// Prints a string in quotes, as JSON or as Python's repr() does. repr() prefers single quotes.
static void put_quoted(struct printer *p, rlhf_str s) {
    static const char from[] = "\n\r\t\b\f", to[] = "nrtbf";
    const int json = p->json != NULL;
    const int single = s.len && memchr(s.ptr, '\'', (size_t)s.len) != NULL;
    const char quote = json || (single && !memchr(s.ptr, '"', (size_t)s.len)) ? '"' : '\'';
    rlhf__buf_putc(p->out, quote);
    for (size_t i = 0, n = 0; i < s.len && fits(p, 0); i += n) {
        uint32_t c = 0;
        n = rlhf__letter_at(s.ptr + i, (size_t)s.len - i, &c);
        const char *known = c && c < 0x20 ? strchr(from, (int)c) : NULL;
        if (known && (json || known - from < 3)) {
            rlhf__buf_putc(p->out, '\\');
            rlhf__buf_putc(p->out, to[known - from]);
        } else if (c == '\\' || c == (uint32_t)quote) {
            rlhf__buf_putc(p->out, '\\');
            rlhf__buf_putc(p->out, (char)c);
        } else if (json ? c < 0x20 || (p->json->ascii && c > 0x7e)
                        : !rlhf__letter_is_printable(c)) {
            put_escaped(p, c, json);
        } else {
            rlhf__buf_put(p->out, s.ptr + i, n);
        }
    }
    rlhf__buf_putc(p->out, quote);
}

static void new_line(struct printer *p, int depth) {
    if (!p->json || !p->json->lines) return;
    const size_t n = (size_t)p->json->indent.len;
    rlhf__buf_putc(p->out, '\n');
    if (!fits(p, n * (size_t)depth) || !rlhf__jinja_pay(p->w, n * (size_t)depth)) return;
    for (int i = 0; i < depth; i++)
        put_str(p, p->json->indent);
}

// Prints the separator before item i.
static void put_next(struct printer *p, size_t i) {
    if (i && p->json && p->json->item.ptr)
        put_str(p, p->json->item);
    else if (i)
        rlhf__buf_puts(p->out, p->json && p->json->lines ? "," : ", ");
    new_line(p, p->depth);
}

static void put(struct printer *p, rlhf__value v);

static void put_list(struct printer *p, rlhf__value v) {
    const int tuple = v.type == RLHF__JINJA_TUPLE && !p->json;
    rlhf__buf_putc(p->out, tuple ? '(' : '[');
    p->depth++;
    for (size_t i = 0; i < v.list->n && !p->w->state; i++) {
        put_next(p, i);
        put(p, v.list->item[i]);
    }
    p->depth--;
    if (v.list->n) new_line(p, p->depth);
    if (tuple && v.list->n == 1) rlhf__buf_putc(p->out, ',');
    rlhf__buf_putc(p->out, tuple ? ')' : ']');
}

static int by_text(const void *a, const void *b) {
    const rlhf_str x = ((const struct rlhf__jinja_pair *)a)->key.s,
                   y = ((const struct rlhf__jinja_pair *)b)->key.s;
    const size_t n = (size_t)(x.len < y.len ? x.len : y.len);
    const int order = n ? memcmp(x.ptr, y.ptr, n) : 0;
    return order ? order : x.len < y.len ? -1 : x.len > y.len;
}

static int by_number(const void *a, const void *b) {
    return rlhf__jinja_compare(((const struct rlhf__jinja_pair *)a)->key,
                               ((const struct rlhf__jinja_pair *)b)->key);
}

// The members sorted by their keys. Raises an error for keys that Python cannot compare.
static const struct rlhf__jinja_pair *sorted(struct printer *p, const struct rlhf__jinja_dict *d) {
    struct rlhf__jinja_pair *own = rlhf__jinja_alloc(p->w, (d->n + 1) * sizeof *own);
    size_t texts = 0, numbers = 0, bytes = 0, times = 1;
    for (size_t i = 0; own && i < d->n; i++) {
        own[i] = d->pair[i];
        texts += own[i].key.type == RLHF__JINJA_STRING;
        numbers += (size_t)rlhf__jinja_is_number(own[i].key);
        bytes +=
            sizeof *own + (own[i].key.type == RLHF__JINJA_STRING ? (size_t)own[i].key.s.len : 0);
    }
    while (d->n >> times)
        times++; // each key is compared about so often
    if (!own || !rlhf__jinja_pay(p->w, bytes * times)) return NULL;
    if (texts < d->n && numbers < d->n && d->n > 1)
        rlhf__jinja_stop(p->w, RLHF__JINJA_RAISED, "an order of keys of different kinds");
    else
        qsort(own, d->n, sizeof *own, texts ? by_text : by_number);
    return own;
}

// Prints a key: as a value or, in JSON, always as a string.
static void put_key(struct printer *p, rlhf__value key) {
    if (!p->json || key.type == RLHF__JINJA_STRING) {
        put(p, key);
        return;
    }
    if (key.type > RLHF__JINJA_FLOAT || key.type == RLHF__JINJA_UNDEFINED)
        rlhf__jinja_stop(p->w, RLHF__JINJA_RAISED, "%s as a key in JSON", rlhf__jinja_kind(key));
    rlhf__buf_putc(p->out, '"');
    put(p, key);
    rlhf__buf_putc(p->out, '"');
}

static void put_dict(struct printer *p, const struct rlhf__jinja_dict *d) {
    const struct rlhf__jinja_pair *pair = p->json && p->json->sorted ? sorted(p, d) : d->pair;
    if (p->w->state) return;
    rlhf__buf_putc(p->out, '{');
    p->depth++;
    for (size_t i = 0; i < d->n && !p->w->state; i++) {
        put_next(p, i);
        put_key(p, pair[i].key);
        if (p->json && p->json->key.ptr)
            put_str(p, p->json->key);
        else
            rlhf__buf_puts(p->out, ": ");
        put(p, pair[i].value);
    }
    p->depth--;
    if (d->n) new_line(p, p->depth);
    rlhf__buf_putc(p->out, '}');
}

// Python refuses to print very long integers.
static void put_big(struct printer *p, rlhf__value v) {
    const rlhf_str digits = rlhf__jinja_digits_of(p->w, v, 10);
    if (digits.len > RLHF__JINJA_DIGITS_MAX + (uint64_t)(rlhf__jinja_sign(v) < 0))
        rlhf__jinja_stop(p->w, RLHF__JINJA_RAISED, "an integer of more than %d digits",
                         RLHF__JINJA_DIGITS_MAX);
    if (!p->w->state) put_str(p, digits);
}

// Prints a value that does not exist in JSON, as Python's repr() does.
static void put_object(struct printer *p, rlhf__value v) {
    switch (v.type) {
    case RLHF__JINJA_UNDEFINED:
        rlhf__buf_puts(p->out, "Undefined");
        break;
    case RLHF__JINJA_RANGE:
        put_str(p, v.list->shown);
        break;
    case RLHF__JINJA_VIEW:
        put_str(p, v.list->shown);
        rlhf__buf_putc(p->out, '(');
        put_list(p, v);
        rlhf__buf_putc(p->out, ')');
        break;
    case RLHF__JINJA_NAMESPACE:
        rlhf__buf_puts(p->out, "<Namespace ");
        put_dict(p, v.dict);
        rlhf__buf_putc(p->out, '>');
        break;
    case RLHF__JINJA_LOOP:
        rlhf__buf_printf(p->out, "<LoopContext %zu/%zu>", v.loop->at + 1, v.loop->list->n);
        break;
    default:
        rlhf__jinja_stop(p->w, RLHF__JINJA_UNKNOWN, "printing %s", rlhf__jinja_kind(v));
    }
}

// Prints v as Python prints an item of a list, or as JSON.
static void put(struct printer *p, rlhf__value v) {
    static const char *const words[2][3] = {{"None", "False", "True"}, {"null", "false", "true"}};
    const int json = p->json != NULL, safe = v.type == RLHF__JINJA_STRING && v.mark && !json;
    if (p->depth > RLHF__JINJA_LEVELS_MAX)
        rlhf__jinja_stop(p->w, RLHF__JINJA_UNKNOWN, "too many levels (%d)", RLHF__JINJA_LEVELS_MAX);
    if (!fits(p, 0)) return;
    if (!rlhf__jinja_pay(p->w, v.type == RLHF__JINJA_STRING ? (size_t)v.s.len : 1)) return;
    switch (v.type) {
    case RLHF__JINJA_NONE:
        rlhf__buf_puts(p->out, words[json][0]);
        break;
    case RLHF__JINJA_BOOL:
        rlhf__buf_puts(p->out, words[json][1 + v.i]);
        break;
    case RLHF__JINJA_INT:
        rlhf__buf_printf(p->out, "%lld", (long long)v.i);
        break;
    case RLHF__JINJA_BIG:
        put_big(p, v);
        break;
    case RLHF__JINJA_FLOAT:
        put_float(p, v.f);
        break;
    case RLHF__JINJA_STRING:
        if (safe) rlhf__buf_puts(p->out, "Markup(");
        put_quoted(p, v.s);
        if (safe) rlhf__buf_putc(p->out, ')');
        break;
    case RLHF__JINJA_LIST:
    case RLHF__JINJA_TUPLE:
        put_list(p, v);
        break;
    case RLHF__JINJA_DICT:
        put_dict(p, v.dict);
        break;
    default:
        if (json)
            rlhf__jinja_stop(p->w, RLHF__JINJA_RAISED, "JSON of %s", rlhf__jinja_kind(v));
        else
            put_object(p, v);
    }
}

void rlhf__jinja_print(struct rlhf__jinja_work *w, rlhf__value v, struct rlhf__buf *out) {
    struct printer p = {.w = w, .out = out};
    if (v.type == RLHF__JINJA_STRING)
        put_str(&p, v.s);
    else if (v.type != RLHF__JINJA_UNDEFINED)
        put(&p, v);
}

rlhf__value rlhf__jinja_taken(struct rlhf__jinja_work *w, struct rlhf__buf *out) {
    rlhf__value v = rlhf__jinja_undefined();
    if (out->bad) rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "out of memory");
    if (!w->state) v = rlhf__jinja_copied(w, rlhf__buf_text(out), out->len);
    rlhf__buf_finish(out);
    return v;
}

rlhf__value rlhf__jinja_text(struct rlhf__jinja_work *w, rlhf__value v) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    if (v.type == RLHF__JINJA_STRING) return v;
    rlhf__jinja_print(w, v, &out);
    return rlhf__jinja_taken(w, &out);
}

rlhf__value rlhf__jinja_repr(struct rlhf__jinja_work *w, rlhf__value v) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    struct printer p = {.w = w, .out = &out};
    put(&p, v);
    return rlhf__jinja_taken(w, &out);
}

rlhf__value rlhf__jinja_tojson(struct rlhf__jinja_work *w, rlhf__value v,
                               const struct rlhf__jinja_json *how) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    struct printer p = {.w = w, .out = &out, .json = how};
    put(&p, v);
    return rlhf__jinja_taken(w, &out);
}

static rlhf__value from_digits(struct rlhf__jinja_work *w, const char *s) {
    const int negative = *s == '-';
    s += negative;
    const rlhf__value v = rlhf__jinja_digits(w, (rlhf_str){s, strlen(s)}, 10);
    return negative ? rlhf__jinja_whole(w, RLHF__JINJA_OP_SUB, rlhf__jinja_int(0), v) : v;
}

static rlhf__value from_json(struct rlhf__jinja_work *w, const json_t *v, int depth) {
    const json_t *item;
    rlhf__value out;
    const char *key;
    size_t i;
    if (depth > RLHF__JINJA_LEVELS_MAX)
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "too many levels (%d)",
                                RLHF__JINJA_LEVELS_MAX);
    switch (v ? json_typeof(v) : JSON_NULL) {
    case JSON_STRING:
        return rlhf__jinja_str((rlhf_str){json_string_value(v), json_string_length(v)});
    case JSON_INTEGER:
        return rlhf__jinja_int(json_integer_value(v));
    case JSON_REAL:
        return rlhf__jinja_float(json_real_value(v));
    case JSON_ARRAY:
        out = rlhf__jinja_list(w, RLHF__JINJA_LIST, json_array_size(v));
        json_array_foreach(v, i, item) rlhf__jinja_add(w, out, from_json(w, item, depth + 1));
        return out;
    case JSON_OBJECT:
        if (rlhf__json_digits(v)) return from_digits(w, rlhf__json_digits(v));
        out = rlhf__jinja_dict(w, RLHF__JINJA_DICT, json_object_size(v));
        for (void *it = json_object_iter((json_t *)(uintptr_t)v); it;
             it = json_object_iter_next((json_t *)(uintptr_t)v, it)) {
            key = json_object_iter_key(it);
            rlhf__jinja_put(w, out, (rlhf_str){key, strlen(key)},
                            from_json(w, json_object_iter_value(it), depth + 1));
        }
        return out;
    case JSON_NULL:
        return rlhf__jinja_none();
    default:
        return rlhf__jinja_bool(json_is_true(v));
    }
}

rlhf__value rlhf__jinja_from_json(struct rlhf__jinja_work *w, const json_t *v) {
    return from_json(w, v, 0);
}
