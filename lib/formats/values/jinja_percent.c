// jinja_percent.c: see jinja_percent.h.
#include "values/jinja_percent.h"

#include "values/jinja_dict.h"
#include "values/jinja_escape.h"
#include "values/jinja_letter.h"
#include "values/jinja_number.h"
#include "values/jinja_print.h"
#include "values/jinja_spec.h"

#include <string.h>

// The text that is left, and the values that are left.
struct percent {
    struct rlhf__jinja_work *w;
    rlhf_str s;
    rlhf__value values, one; // one: the value of a %(name)s
    size_t used;
    int safe, named;
};

static rlhf__value raised(struct percent *p, const char *what) {
    return rlhf__jinja_stop(p->w, RLHF__JINJA_RAISED, "a string %% %s", what);
}

static char take(struct percent *p, const char *any) {
    const char c = p->s.len ? *p->s.ptr : '\0';
    if (!c || (any && !strchr(any, c))) return '\0';
    p->s.ptr++;
    p->s.len--;
    return c;
}

static rlhf__value next_value(struct percent *p) {
    const int tuple = p->values.type == RLHF__JINJA_TUPLE;
    if (p->named) return p->one;
    if (p->used >= (tuple ? p->values.list->n : 1)) return raised(p, "too few values");
    return tuple ? p->values.list->item[p->used++] : (p->used++, p->values);
}

// A width or precision: a number, or * for the next value. -1 = not given.
static int64_t number(struct percent *p) {
    int64_t n = -1;
    if (take(p, "*")) {
        const rlhf__value v = next_value(p);
        if (!p->w->state && v.type != RLHF__JINJA_INT && v.type != RLHF__JINJA_BOOL)
            raised(p, "a width other than an integer");
        return p->w->state ? -1 : v.i;
    }
    for (char c; (c = take(p, "0123456789")) != '\0';)
        n = (n < 0 ? 0 : n > INT32_MAX ? INT32_MAX : n * 10) + (c - '0');
    return n;
}

// After "(": looks up the value of a name.
static void take_name(struct percent *p) {
    const char *from = p->s.ptr;
    int open = 1;
    for (char c; open && (c = take(p, NULL)) != '\0';)
        open += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (open) {
        raised(p, "a name that does not end");
        return;
    }
    if (p->values.type != RLHF__JINJA_DICT) {
        raised(p, "something other than an object");
        return;
    }
    const rlhf__value *v =
        rlhf__jinja_get(p->w, p->values.dict, (rlhf_str){from, (uint64_t)(p->s.ptr - from) - 1});
    if (!v) raised(p, "an object without the name");
    p->one = v ? *v : rlhf__jinja_undefined();
    p->named = 1;
}

// The letters beyond ASCII of a text as escapes.
static rlhf__value as_ascii(struct percent *p, rlhf__value v) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    for (size_t i = 0; i < v.s.len;) {
        uint32_t c = 0;
        i += rlhf__letter_at(v.s.ptr + i, (size_t)v.s.len - i, &c);
        if (c < 0x80)
            rlhf__buf_putc(&out, (char)c);
        else
            rlhf__buf_printf(&out, c > 0xffff ? "\\U%08x" : c > 0xff ? "\\u%04x" : "\\x%02x", c);
    }
    return rlhf__jinja_taken(p->w, &out);
}

static rlhf__value shown(struct percent *p, char type, rlhf__value v, struct rlhf__jinja_spec *s) {
    rlhf__value text;
    if (type == 's' && v.type == RLHF__JINJA_UNDEFINED)
        text = rlhf__jinja_empty();
    else
        text = type == 's' ? rlhf__jinja_text(p->w, v) : rlhf__jinja_repr(p->w, v);
    if (type == 'a' && !p->w->state) text = as_ascii(p, text);
    if (p->safe && !p->w->state)
        text = rlhf__jinja_escaped(p->w, type == 's' && v.type == RLHF__JINJA_STRING ? v : text);
    if (p->w->state) return rlhf__jinja_undefined();
    s->fill = (rlhf_str){" ", 1};
    s->sign = '\0';
    s->alternate = s->zero = 0;
    if (s->align != '<') s->align = '>';
    return rlhf__jinja_spec_apply(p->w, text, s);
}

static rlhf__value whole(struct percent *p, char type, rlhf__value v, struct rlhf__jinja_spec *s) {
    const int decimal = strchr("diu", type) != NULL;
    if (decimal && v.type == RLHF__JINJA_FLOAT) v = rlhf__jinja_truncated(p->w, v.f);
    if (p->w->state) return rlhf__jinja_undefined();
    if (!rlhf__jinja_is_whole(v)) return raised(p, "something other than a number");
    s->type = decimal ? 'd' : type;
    s->digits = s->precision;
    s->precision = -1;
    return rlhf__jinja_spec_apply(p->w, v, s);
}

static rlhf__value character(struct percent *p, rlhf__value v, struct rlhf__jinja_spec *s) {
    *s = (struct rlhf__jinja_spec){
        .align = s->align == '<' ? '<' : '>', .width = s->width, .precision = -1};
    if (v.type == RLHF__JINJA_STRING && rlhf__jinja_characters(p->w, v.s) == 1)
        return rlhf__jinja_spec_apply(p->w, v, s);
    if (!rlhf__jinja_is_whole(v)) return raised(p, "something other than a character");
    s->type = 'c';
    return rlhf__jinja_spec_apply(p->w, v, s);
}

// After "%": formats one value.
static rlhf__value field(struct percent *p) {
    struct rlhf__jinja_spec s = {.width = -1, .precision = -1};
    if (take(p, "(")) take_name(p);
    for (char c; (c = take(p, "#0- +")) != '\0';) {
        if (c == '#') s.alternate = 1;
        if (c == '0') s.zero = 1;
        if (c == '-') s.align = '<';
        if (c == '+' || (c == ' ' && !s.sign)) s.sign = c;
    }
    s.width = number(p);
    if (s.width < -1) {
        s.align = '<';
        s.width = s.width < -INT64_MAX ? INT64_MAX : -s.width;
    }
    if (take(p, ".")) {
        s.precision = number(p);
        if (s.precision < 0) s.precision = 0;
    }
    take(p, "hlL");
    const char type = take(p, NULL);
    if (p->w->state) return rlhf__jinja_undefined();
    if (type == '%') return rlhf__jinja_str((rlhf_str){"%", 1});
    if (!type || !strchr("sradiuoxXeEfFgGc", type)) return raised(p, "an unknown format");
    const rlhf__value v = next_value(p);
    p->named = 0;
    if (p->w->state) return rlhf__jinja_undefined();
    if (s.align == '<') s.zero = 0;
    if (strchr("sra", type)) return shown(p, type, v, &s);
    if (type == 'c') return character(p, v, &s);
    if (strchr("diuoxX", type)) return whole(p, type, v, &s);
    if (!rlhf__jinja_is_number(v)) return raised(p, "something other than a number");
    s.type = type;
    return rlhf__jinja_spec_apply(p->w, v, &s);
}

// Values that are not used are an error, unless Python counts the values as a mapping.
static void check_rest(struct percent *p) {
    const int32_t type = p->values.type;
    const int mapping = type == RLHF__JINJA_DICT || type == RLHF__JINJA_LIST ||
                        type == RLHF__JINJA_RANGE || type == RLHF__JINJA_UNDEFINED;
    if (!p->w->state && !mapping && p->used < (type == RLHF__JINJA_TUPLE ? p->values.list->n : 1))
        raised(p, "too many values");
}

rlhf__value rlhf__jinja_percent(struct rlhf__jinja_work *w, rlhf__value text, rlhf__value values) {
    struct percent p = {.w = w, .s = text.s, .values = values, .safe = text.mark};
    rlhf__value out = rlhf__jinja_empty();
    while (!w->state && p.s.len && rlhf__jinja_pay(w, 1)) {
        const char *sign = memchr(p.s.ptr, '%', (size_t)p.s.len);
        const uint64_t n = sign ? (uint64_t)(sign - p.s.ptr) : p.s.len;
        out = rlhf__jinja_joined(w, out.s, (rlhf_str){p.s.ptr, n});
        p.s = (rlhf_str){p.s.ptr + n, p.s.len - n};
        if (!take(&p, "%") || w->state) continue;
        const rlhf__value v = field(&p);
        if (!w->state) out = rlhf__jinja_joined(w, out.s, v.s);
    }
    check_rest(&p);
    return w->state ? rlhf__jinja_undefined() : rlhf__jinja_marked(out, text.mark);
}
