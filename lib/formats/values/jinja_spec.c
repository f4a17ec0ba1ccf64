// jinja_spec.c: see jinja_spec.h.
#include "values/jinja_spec.h"

#include "values/jinja_letter.h"
#include "values/jinja_number.h"
#include "values/jinja_print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// More digits than this say nothing about a float: they are all 0.
enum { PRECISION_MAX = 1100 };

static rlhf__value bad(struct rlhf__jinja_work *w, const struct rlhf__jinja_spec *s,
                       rlhf__value v) {
    return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "the format '%c' of %s", s->type ? s->type : '?',
                            rlhf__jinja_kind(v));
}

// ---- reading ----

static char next(const rlhf_str *s) { return s->len ? *s->ptr : '\0'; }

static char take(rlhf_str *s, const char *any) {
    const char c = next(s);
    if (!c || !strchr(any, c)) return '\0';
    s->ptr++;
    s->len--;
    return c;
}

static int64_t take_number(rlhf_str *s) {
    int64_t n = -1;
    for (char c; (c = take(s, "0123456789")) != '\0';)
        n = (n < 0 ? 0 : n > INT32_MAX ? INT32_MAX : n * 10) + (c - '0');
    return n;
}

int rlhf__jinja_spec_read(struct rlhf__jinja_work *w, rlhf_str text, struct rlhf__jinja_spec *out) {
    uint32_t c = 0;
    rlhf_str s = text;
    *out = (struct rlhf__jinja_spec){.width = -1, .precision = -1};
    const size_t n = s.len ? rlhf__letter_at(s.ptr, (size_t)s.len, &c) : 0;
    if (n && n < s.len && strchr("<>=^", s.ptr[n])) {
        out->fill = (rlhf_str){s.ptr, n};
        s = (rlhf_str){s.ptr + n, s.len - n};
    }
    out->align = take(&s, "<>=^");
    out->sign = take(&s, "+- ");
    out->alternate = take(&s, "#") != '\0';
    out->zero = take(&s, "0") != '\0';
    out->width = take_number(&s);
    out->group = take(&s, ",_");
    if (take(&s, ".") && (out->precision = take_number(&s)) < 0) s.len++; // fails below
    out->type = take(&s, "bcdeEfFgGnosxX%");
    if (s.len)
        rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "the format '%.*s'",
                         (int)(text.len < 40 ? text.len : 40), text.ptr);
    return !w->state;
}

// ---- padding ----

rlhf_str rlhf__jinja_spec_cut(struct rlhf__jinja_work *w, rlhf_str s, int64_t n) {
    uint64_t at = 0;
    for (uint32_t c; n > 0 && at < s.len; n--)
        at += rlhf__letter_at(s.ptr + at, (size_t)(s.len - at), &c);
    rlhf__jinja_pay(w, (size_t)at);
    return (rlhf_str){s.ptr, at};
}

static void put_fill(struct rlhf__buf *out, rlhf_str fill, int64_t times) {
    for (int64_t i = 0; i < times; i++)
        rlhf__buf_put(out, fill.ptr, (size_t)fill.len);
}

rlhf__value rlhf__jinja_spec_padded(struct rlhf__jinja_work *w, rlhf_str text, rlhf_str fill,
                                    char align, int64_t width) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    const int64_t more = width - rlhf__jinja_characters(w, text);
    if (more > RLHF__JINJA_TEXT_MAX)
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "more text than is allowed (%d MiB)",
                                RLHF__JINJA_TEXT_MAX >> 20);
    if (more <= 0 || !rlhf__jinja_pay(w, (size_t)(more * (int64_t)fill.len)))
        return rlhf__jinja_str(text);
    const int64_t left = align == '<' ? 0 : align == '^' ? more / 2 : more;
    put_fill(&out, fill, left);
    rlhf__buf_put(&out, text.ptr, (size_t)text.len);
    put_fill(&out, fill, more - left);
    return rlhf__jinja_taken(w, &out);
}

static rlhf_str fill_of(const struct rlhf__jinja_spec *s) {
    if (s->fill.len) return s->fill;
    return s->zero ? (rlhf_str){"0", 1} : (rlhf_str){" ", 1};
}

// ---- numbers ----

// A number as text: sign and prefix, the digits before the point, and the rest.
struct parts {
    char sign[4];
    rlhf_str digits, rest;
};

// Appends the digits in groups, with zeros in front up to the width. (CPython's
// _PyUnicode_InsertThousandsGrouping counts the separators in the same way.)
static void put_groups(struct rlhf__buf *out, rlhf_str digits, int64_t width, char sign,
                       int64_t size) {
    struct rlhf__buf back = RLHF__BUF_INIT; // from the last digit to the first
    int64_t left = (int64_t)digits.len;
    for (int first = 1;; first = 0) {
        int64_t n = left > width ? left : width;
        if (n < 1) n = 1;
        if (size && n > size) n = size;
        if (!first) rlhf__buf_putc(&back, sign);
        for (int64_t i = 0; i < n; i++)
            rlhf__buf_putc(&back, left > 0 ? digits.ptr[--left] : '0');
        width -= n;
        if (left <= 0 && width <= 0) break;
        width--;
    }
    for (size_t i = back.len; i-- > 0;)
        rlhf__buf_putc(out, back.data[i]);
    if (back.bad) out->bad = 1;
    rlhf__buf_finish(&back);
}

static rlhf__value laid_out(struct rlhf__jinja_work *w, const struct rlhf__jinja_spec *s,
                            const struct parts *p) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    const int64_t around = (int64_t)strlen(p->sign) + (int64_t)p->rest.len;
    const rlhf_str fill = fill_of(s);
    const char align = s->align ? s->align : s->zero ? '=' : '>';
    const int zeros = align == '=' && fill.len == 1 && fill.ptr[0] == '0';
    int64_t width = zeros ? s->width - around : 0;
    if (s->digits > width) width = s->digits;
    if (s->width > RLHF__JINJA_TEXT_MAX || s->digits > RLHF__JINJA_TEXT_MAX)
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "more text than is allowed (%d MiB)",
                                RLHF__JINJA_TEXT_MAX >> 20);
    if (!rlhf__jinja_pay(w, (size_t)(width > 0 ? width : 0))) return rlhf__jinja_undefined();
    put_groups(&out, p->digits, width, s->group,
               !s->group                            ? 0
               : s->type && strchr("boxX", s->type) ? 4
                                                    : 3);
    rlhf__buf_put(&out, p->rest.ptr, (size_t)p->rest.len);
    rlhf__value body = rlhf__jinja_taken(w, &out);
    if (w->state) return body;
    const rlhf__value sign = rlhf__jinja_copied(w, p->sign, strlen(p->sign));
    if (align != '=') {
        body = rlhf__jinja_joined(w, sign.s, body.s);
        if (w->state) return rlhf__jinja_undefined();
        return rlhf__jinja_spec_padded(w, body.s, fill, align, s->width);
    }
    body = rlhf__jinja_spec_padded(w, body.s, fill, '>', s->width - (int64_t)sign.s.len);
    return w->state ? rlhf__jinja_undefined() : rlhf__jinja_joined(w, sign.s, body.s);
}

static void put_sign(struct parts *p, const struct rlhf__jinja_spec *s, int negative) {
    if (negative)
        strcpy(p->sign, "-");
    else if (s->sign == '+' || s->sign == ' ')
        p->sign[0] = s->sign;
}

static rlhf__value character(struct rlhf__jinja_work *w, rlhf__value v,
                             const struct rlhf__jinja_spec *s) {
    char utf8[4];
    struct parts p = {.sign = ""};
    if (s->sign || s->group || s->alternate || s->precision >= 0 || v.type == RLHF__JINJA_BIG ||
        v.i < 0 || v.i > 0x10ffff)
        return bad(w, s, v);
    if (v.i == 0 || (v.i >= 0xd800 && v.i <= 0xdfff))
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "the character U+%04X", (unsigned)v.i);
    p.rest = rlhf__jinja_copied(w, utf8, rlhf__letter_put((uint32_t)v.i, utf8)).s;
    if (w->state) return rlhf__jinja_undefined();
    struct rlhf__jinja_spec text = *s;
    if (!text.align) text.align = '>';
    if (text.align == '=') text.align = '>';
    return rlhf__jinja_spec_padded(w, p.rest, fill_of(s), text.align, s->width);
}

static rlhf__value whole(struct rlhf__jinja_work *w, rlhf__value v,
                         const struct rlhf__jinja_spec *s) {
    struct parts p = {.sign = ""};
    const char type = s->type == 'n' || !s->type ? 'd' : s->type;
    const uint32_t base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'd' ? 10 : 16;
    if (type == 'c') return character(w, v, s);
    if (s->precision >= 0 || (s->group == ',' && base != 10) || (s->group && s->type == 'n'))
        return bad(w, s, v);
    p.digits = rlhf__jinja_digits_of(w, v, base);
    if (w->state) return rlhf__jinja_undefined();
    put_sign(&p, s, p.digits.ptr[0] == '-');
    if (p.digits.ptr[0] == '-') p.digits = (rlhf_str){p.digits.ptr + 1, p.digits.len - 1};
    if (s->alternate && base != 10) {
        const size_t at = strlen(p.sign);
        p.sign[at] = '0';
        p.sign[at + 1] = type;
        p.sign[at + 2] = '\0';
    }
    for (size_t i = 0; type == 'X' && i < p.digits.len; i++) {
        char *c = (char *)(uintptr_t)p.digits.ptr + i; // made by this function
        if (*c >= 'a') *c = (char)(*c - 32);
    }
    return laid_out(w, s, &p);
}

// Writes |f| with a precision but without a type, as in '{:.3}': like %g, but with a fraction.
static void put_general(struct rlhf__buf *out, double f, int precision) {
    char text[PRECISION_MAX + 400];
    snprintf(text, sizeof text, "%.*e", precision - 1, f);
    char *e = strchr(text, 'e');
    const int exponent = e ? atoi(e + 1) : 0;
    if (!e || (exponent >= -4 && exponent < precision - 1)) {
        snprintf(text, sizeof text, "%.*g", precision, f);
        rlhf__buf_puts(out, text);
        if (e && !strchr(text, '.')) rlhf__buf_puts(out, ".0");
        return;
    }
    char *end = e;
    while (strchr(text, '.') && end[-1] == '0')
        end--;
    if (end[-1] == '.') end--;
    rlhf__buf_put(out, text, (size_t)(end - text));
    rlhf__buf_puts(out, e);
}

static rlhf__value real(struct rlhf__jinja_work *w, rlhf__value v,
                        const struct rlhf__jinja_spec *s) {
    struct parts p = {.sign = ""};
    struct rlhf__buf out = RLHF__BUF_INIT;
    const char type = s->type == 'n' ? 'g' : s->type;
    double f = rlhf__jinja_real(w, v) * (type == '%' ? 100 : 1);
    if (w->state) return rlhf__jinja_undefined();
    if ((type && !strchr("eEfFgG%", type)) || (s->group && s->type == 'n')) return bad(w, s, v);
    if (s->precision > PRECISION_MAX || (s->alternate && !type))
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "the format of a number");
    put_sign(&p, s, signbit(f) && !isnan(f));
    f = fabs(f);
    if (!type && s->precision < 0) {
        const rlhf__value text = rlhf__jinja_repr(w, rlhf__jinja_float(f));
        if (!w->state) rlhf__buf_put(&out, text.s.ptr, (size_t)text.s.len);
    } else if (!type) {
        put_general(&out, f, s->precision > 0 ? (int)s->precision : 1);
    } else {
        const char as[] = {'%',
                           s->alternate ? '#' : '.',
                           s->alternate ? '.' : '*',
                           s->alternate  ? '*'
                           : type == '%' ? 'f'
                                         : type,
                           s->alternate ? (type == '%' ? 'f' : type) : '\0',
                           '\0'};
        char text[PRECISION_MAX + 400];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, as, s->precision < 0 ? 6 : (int)s->precision, f);
#pragma GCC diagnostic pop
        rlhf__buf_puts(&out, text);
        if (type == '%') rlhf__buf_putc(&out, '%');
    }
    const rlhf__value text = rlhf__jinja_taken(w, &out);
    if (w->state) return rlhf__jinja_undefined();
    size_t n = 0;
    while (n < text.s.len && text.s.ptr[n] >= '0' && text.s.ptr[n] <= '9')
        n++;
    p.digits = (rlhf_str){text.s.ptr, n};
    p.rest = (rlhf_str){text.s.ptr + n, text.s.len - n};
    if (n) return laid_out(w, s, &p);
    // inf and nan
    struct rlhf__jinja_spec plain = *s;
    const rlhf__value sign = rlhf__jinja_copied(w, p.sign, strlen(p.sign));
    if (!plain.align) plain.align = plain.zero ? '=' : '>';
    if (w->state) return rlhf__jinja_undefined();
    if (plain.align != '=') {
        const rlhf__value whole_text = rlhf__jinja_joined(w, sign.s, text.s);
        return rlhf__jinja_spec_padded(w, whole_text.s, fill_of(s), plain.align, s->width);
    }
    const rlhf__value padded =
        rlhf__jinja_spec_padded(w, text.s, fill_of(s), '>', s->width - (int64_t)sign.s.len);
    return w->state ? padded : rlhf__jinja_joined(w, sign.s, padded.s);
}

// ---- any value ----

rlhf__value rlhf__jinja_spec_apply(struct rlhf__jinja_work *w, rlhf__value v,
                                   const struct rlhf__jinja_spec *s) {
    const int given = s->fill.len || s->align || s->sign || s->group || s->type || s->alternate ||
                      s->zero || s->width >= 0 || s->precision >= 0;
    if (w->state) return rlhf__jinja_undefined();
    if (!given) return v.type ? rlhf__jinja_text(w, v) : rlhf__jinja_empty();
    if (v.type == RLHF__JINJA_STRING) {
        if ((s->type && s->type != 's') || s->sign || s->alternate || s->group || s->align == '=')
            return bad(w, s, v);
        if (s->precision >= 0) v.s = rlhf__jinja_spec_cut(w, v.s, s->precision);
        return rlhf__jinja_spec_padded(w, v.s, fill_of(s), s->align ? s->align : '<', s->width);
    }
    if (v.type == RLHF__JINJA_FLOAT ||
        (rlhf__jinja_is_whole(v) && s->type && strchr("eEfFgG%", s->type)))
        return real(w, v, s);
    if (rlhf__jinja_is_whole(v) && s->type != 's') return whole(w, v, s);
    return bad(w, s, v);
}
