// jinja_operator.c: see jinja_operator.h.
#include "values/jinja_operator.h"

#include "values/jinja_dict.h"
#include "values/jinja_escape.h"
#include "values/jinja_percent.h"
#include "values/jinja_print.h"

#include <math.h>
#include <rlhf/exact.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"",   "+",  "-", "*",  "/", "//", "%",  "**",    "~",
                                    "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

int32_t rlhf__jinja_op_find(const char *text) {
    for (size_t i = 1; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], text) == 0) return (int32_t)i;
    return 0;
}

// ---- arithmetic ----

static rlhf__value cannot(struct rlhf__jinja_work *w, int32_t op, rlhf__value a, rlhf__value b) {
    return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "%s %s %s", rlhf__jinja_kind(a), names[op],
                            rlhf__jinja_kind(b));
}

// x // y or x % y, computed as Python does: from the exact remainder of the division toward 0.
static rlhf__value divided(double x, double y, int rest) {
    double mod = fmod(x, y), div = (x - mod) / y;
    if (mod < 0 || mod > 0) {
        if ((y < 0) != (mod < 0)) mod += y, div -= 1;
    } else {
        mod = copysign(0.0, y);
    }
    if (rest) return rlhf__jinja_float(mod);
    if (!(div < 0 || div > 0)) return rlhf__jinja_float(isnan(div) ? div : copysign(0.0, x / y));
    const double down = floor(div);
    return rlhf__jinja_float(div - down > 0.5 ? down + 1 : down);
}

static rlhf__value reals(struct rlhf__jinja_work *w, int32_t op, double x, double y) {
    const int by_zero =
        op == RLHF__JINJA_OP_DIV || op == RLHF__JINJA_OP_FLOOR || op == RLHF__JINJA_OP_MOD;
    if (by_zero && y >= 0 && y <= 0)
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a division by 0");
    switch (op) {
    case RLHF__JINJA_OP_ADD:
        return rlhf__jinja_float(x + y);
    case RLHF__JINJA_OP_SUB:
        return rlhf__jinja_float(x - y);
    case RLHF__JINJA_OP_MUL:
        return rlhf__jinja_float(x * y);
    case RLHF__JINJA_OP_DIV:
        return rlhf__jinja_float(x / y);
    case RLHF__JINJA_OP_FLOOR:
    case RLHF__JINJA_OP_MOD:
        return divided(x, y, op == RLHF__JINJA_OP_MOD);
    default:
        break;
    }
    if (x < 0 && isfinite(x) && isfinite(y) && (floor(y) < y))
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "a power that is a complex number");
    if (!(x < 0 || x > 0 || isnan(x)) && y < 0)
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a division by 0");
    const double out = rlhf_pow(x, y);
    if (isinf(out) && isfinite(x) && isfinite(y))
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a power that is too large");
    return rlhf__jinja_float(out);
}

rlhf__value rlhf__jinja_signed(struct rlhf__jinja_work *w, rlhf__value v, int minus) {
    const rlhf__value zero = rlhf__jinja_int(0);
    if (v.type == RLHF__JINJA_FLOAT) return rlhf__jinja_float(minus ? -v.f : v.f);
    if (!rlhf__jinja_is_whole(v))
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "%s %s", minus ? "-" : "+",
                                rlhf__jinja_kind(v));
    return rlhf__jinja_whole(w, minus ? RLHF__JINJA_OP_SUB : RLHF__JINJA_OP_ADD, zero, v);
}

// 'ab' * 3, or [1] * 3.
static rlhf__value repeated(struct rlhf__jinja_work *w, rlhf__value v, rlhf__value by) {
    const int text = v.type == RLHF__JINJA_STRING;
    const int empty = text ? v.s.len == 0 : v.list->n == 0;
    rlhf__value out = text ? rlhf__jinja_empty() : rlhf__jinja_list(w, v.type, 0);
    if (by.type == RLHF__JINJA_BIG) {
        if (rlhf__jinja_sign(by) < 0) return out;
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "more than 2^63 times %s",
                                rlhf__jinja_kind(v));
    }
    for (int64_t i = 0; i < by.i && !empty && rlhf__jinja_pay(w, 1); i++) {
        if (text)
            out = rlhf__jinja_joined(w, out.s, v.s);
        else
            for (size_t k = 0; k < v.list->n; k++)
                rlhf__jinja_add(w, out, v.list->item[k]);
        if (w->state) break;
    }
    if (w->state) return rlhf__jinja_undefined();
    return text ? rlhf__jinja_marked(out, v.mark) : out;
}

static rlhf__value lists(struct rlhf__jinja_work *w, rlhf__value a, rlhf__value b) {
    rlhf__value out = rlhf__jinja_list(w, a.type, a.list->n + b.list->n);
    if (!rlhf__jinja_pay(w, 16 * (a.list->n + b.list->n))) return rlhf__jinja_undefined();
    for (size_t i = 0; i < a.list->n; i++)
        rlhf__jinja_add(w, out, a.list->item[i]);
    for (size_t i = 0; i < b.list->n; i++)
        rlhf__jinja_add(w, out, b.list->item[i]);
    return out;
}

static rlhf__value calculated(struct rlhf__jinja_work *w, int32_t op, rlhf__value a,
                              rlhf__value b) {
    const int text = a.type == RLHF__JINJA_STRING;
    const int list = a.type == RLHF__JINJA_LIST || a.type == RLHF__JINJA_TUPLE;
    if (op == RLHF__JINJA_OP_ADD && text && b.type == RLHF__JINJA_STRING)
        return rlhf__jinja_added(w, a, b);
    if (op == RLHF__JINJA_OP_ADD && list && a.type == b.type) return lists(w, a, b);
    if (op == RLHF__JINJA_OP_MUL && (text || list) && rlhf__jinja_is_whole(b))
        return repeated(w, a, b);
    if (op == RLHF__JINJA_OP_MUL && rlhf__jinja_is_whole(a) &&
        (b.type == RLHF__JINJA_STRING || b.type == RLHF__JINJA_LIST || b.type == RLHF__JINJA_TUPLE))
        return repeated(w, b, a);
    if (op == RLHF__JINJA_OP_MOD && text) return rlhf__jinja_percent(w, a, b);
    if (!rlhf__jinja_is_number(a) || !rlhf__jinja_is_number(b)) return cannot(w, op, a, b);
    if (rlhf__jinja_is_whole(a) && rlhf__jinja_is_whole(b)) return rlhf__jinja_whole(w, op, a, b);
    const double x = rlhf__jinja_real(w, a), y = rlhf__jinja_real(w, b);
    return w->state ? rlhf__jinja_undefined() : reals(w, op, x, y);
}

// ---- comparisons ----

// Like rlhf__jinja_order, or 2 if the values are numbers and one of them is not a number.
static int ordered(struct rlhf__jinja_work *w, rlhf__value a, rlhf__value b) {
    if (a.type == RLHF__JINJA_STRING && b.type == RLHF__JINJA_STRING) {
        const size_t n = (size_t)(a.s.len < b.s.len ? a.s.len : b.s.len);
        const int order = n ? memcmp(a.s.ptr, b.s.ptr, n) : 0;
        rlhf__jinja_pay(w, n);
        return order ? (order < 0 ? -1 : 1) : a.s.len < b.s.len ? -1 : a.s.len > b.s.len;
    }
    if (rlhf__jinja_is_number(a) && rlhf__jinja_is_number(b)) return rlhf__jinja_compare(a, b);
    const int list = a.type == RLHF__JINJA_LIST || a.type == RLHF__JINJA_TUPLE;
    for (size_t i = 0; list && a.type == b.type && rlhf__jinja_pay(w, 1); i++) {
        if (i == a.list->n || i == b.list->n) return i < b.list->n ? -1 : i < a.list->n;
        if (rlhf__jinja_equal(w, a.list->item[i], b.list->item[i])) continue;
        if (a.list->item[i].type != RLHF__JINJA_LIST && a.list->item[i].type != RLHF__JINJA_TUPLE)
            return ordered(w, a.list->item[i], b.list->item[i]);
        a = a.list->item[i]; // the first items that differ decide, at any depth
        b = b.list->item[i];
        if (a.type != b.type) break;
        i = (size_t)-1;
    }
    cannot(w, RLHF__JINJA_OP_LT, a, b);
    return 0;
}

int rlhf__jinja_order(struct rlhf__jinja_work *w, rlhf__value a, rlhf__value b) {
    const int order = ordered(w, a, b);
    return order == 2 ? 0 : order;
}

static int compared(struct rlhf__jinja_work *w, int32_t op, rlhf__value a, rlhf__value b) {
    const int order = ordered(w, a, b);
    switch (op) {
    case RLHF__JINJA_OP_LT:
        return order == -1;
    case RLHF__JINJA_OP_LE:
        return order == -1 || order == 0;
    case RLHF__JINJA_OP_GT:
        return order == 1;
    default:
        return order == 1 || order == 0;
    }
}

static int contains(struct rlhf__jinja_work *w, rlhf__value x, rlhf__value in) {
    if (in.type == RLHF__JINJA_DICT) return rlhf__jinja_get_key(w, in.dict, x) != NULL;
    if (in.type == RLHF__JINJA_STRING && x.type == RLHF__JINJA_STRING)
        return rlhf__jinja_pay(w, (size_t)in.s.len) &&
               (x.s.len == 0 ||
                memmem(in.s.ptr, (size_t)in.s.len, x.s.ptr, (size_t)x.s.len) != NULL);
    if (in.type == RLHF__JINJA_STRING || !rlhf__jinja_has_items(in)) {
        cannot(w, RLHF__JINJA_OP_IN, x, in);
        return 0;
    }
    const rlhf__value all = rlhf__jinja_items(w, in);
    for (size_t i = 0; !w->state && i < all.list->n; i++)
        if (rlhf__jinja_equal(w, all.list->item[i], x)) return 1;
    return 0;
}

rlhf__value rlhf__jinja_binary(struct rlhf__jinja_work *w, int32_t op, rlhf__value a,
                               rlhf__value b) {
    switch (op) {
    case RLHF__JINJA_OP_CAT:
        a = rlhf__jinja_text(w, a);
        b = rlhf__jinja_text(w, b);
        return w->state ? rlhf__jinja_undefined() : rlhf__jinja_joined(w, a.s, b.s);
    case RLHF__JINJA_OP_EQ:
    case RLHF__JINJA_OP_NE:
        return rlhf__jinja_bool(rlhf__jinja_equal(w, a, b) == (op == RLHF__JINJA_OP_EQ));
    case RLHF__JINJA_OP_IN:
    case RLHF__JINJA_OP_NOT_IN:
        return rlhf__jinja_bool(contains(w, a, b) == (op == RLHF__JINJA_OP_IN));
    case RLHF__JINJA_OP_LT:
    case RLHF__JINJA_OP_LE:
    case RLHF__JINJA_OP_GT:
    case RLHF__JINJA_OP_GE:
        return rlhf__jinja_bool(compared(w, op, a, b));
    default:
        return calculated(w, op, a, b);
    }
}

// ---- items ----

static int begins_char(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

// The character of a string at index i. A negative i counts from the end.
static rlhf__value character(struct rlhf__jinja_work *w, rlhf_str s, int64_t i) {
    uint64_t at = 0, end;
    if (!rlhf__jinja_pay(w, (size_t)s.len)) return rlhf__jinja_undefined();
    if (i >= 0) {
        for (; at < s.len && i > 0; i--)
            for (at++; at < s.len && !begins_char(s.ptr[at]);)
                at++;
    } else {
        for (at = s.len; at && i < 0; i++)
            for (at--; at && !begins_char(s.ptr[at]);)
                at--;
    }
    if (i != 0 || at >= s.len) return rlhf__jinja_undefined();
    for (end = at + 1; end < s.len && !begins_char(s.ptr[end]);)
        end++;
    return rlhf__jinja_str((rlhf_str){s.ptr + at, end - at});
}

rlhf__value rlhf__jinja_item(struct rlhf__jinja_work *w, rlhf__value of, rlhf__value key) {
    if (of.type == RLHF__JINJA_UNDEFINED)
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "an item of an undefined value");
    if (of.type == RLHF__JINJA_DICT) {
        if (key.type == RLHF__JINJA_LIST || key.type == RLHF__JINJA_DICT)
            return rlhf__jinja_undefined();
        const rlhf__value *v = rlhf__jinja_get_key(w, of.dict, key);
        return v ? *v : rlhf__jinja_undefined();
    }
    if (key.type != RLHF__JINJA_BOOL && key.type != RLHF__JINJA_INT) return rlhf__jinja_undefined();
    if (of.type == RLHF__JINJA_STRING)
        return rlhf__jinja_marked(character(w, of.s, key.i), of.mark);
    if (!rlhf__jinja_is_list(of)) return rlhf__jinja_undefined();
    const int64_t n = (int64_t)of.list->n, i = key.i < 0 ? key.i + n : key.i;
    return i < 0 || i >= n ? rlhf__jinja_undefined() : of.list->item[i];
}

// The index at which a slice begins or ends, computed as in Python.
static int64_t slice_end(rlhf__value at, int64_t n, int64_t by, int64_t missing) {
    if (!rlhf__jinja_is_whole(at)) return missing;
    const int64_t far = rlhf__jinja_sign(at) < 0 ? -n - 1 : n;
    int64_t i = at.type == RLHF__JINJA_BIG ? far : at.i;
    if (i < 0) i = i < -n ? -1 : i + n;
    if (i < 0) return by < 0 ? -1 : 0;
    return i >= n ? (by < 0 ? n - 1 : n) : i;
}

rlhf__value rlhf__jinja_slice(struct rlhf__jinja_work *w, rlhf__value of, rlhf__value from,
                              rlhf__value to, rlhf__value by) {
    const rlhf__value part[] = {from, to, by};
    const int text = of.type == RLHF__JINJA_STRING;
    for (int i = 0; i < 3; i++)
        if (part[i].type > RLHF__JINJA_NONE && !rlhf__jinja_is_whole(part[i]))
            return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a slice by %s",
                                    rlhf__jinja_kind(part[i]));
    if (!text && !rlhf__jinja_is_list(of))
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a slice of %s", rlhf__jinja_kind(of));
    if (by.type == RLHF__JINJA_BIG || of.type == RLHF__JINJA_RANGE)
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "such a slice of %s", rlhf__jinja_kind(of));
    int64_t step = rlhf__jinja_is_whole(by) ? by.i : 1;
    if (step == 0) return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a slice by 0");
    if (step > INT32_MAX) step = INT32_MAX;
    if (step < -INT32_MAX) step = -INT32_MAX;
    const rlhf__value all = rlhf__jinja_items(w, of);
    rlhf__value out = text ? rlhf__jinja_empty() : rlhf__jinja_list(w, of.type, 0);
    if (w->state) return rlhf__jinja_undefined();
    const int64_t n = (int64_t)all.list->n;
    int64_t i = slice_end(from, n, step, step < 0 ? n - 1 : 0);
    const int64_t end = slice_end(to, n, step, step < 0 ? -1 : n);
    if (text && step == 1) { // the slice is a part of the string
        if (i >= end) return rlhf__jinja_marked(out, of.mark);
        const char *first = all.list->item[i].s.ptr;
        const rlhf_str last = all.list->item[end - 1].s;
        out = rlhf__jinja_str((rlhf_str){first, (uint64_t)(last.ptr + last.len - first)});
        return rlhf__jinja_marked(out, of.mark);
    }
    for (; (step > 0 ? i < end : i > end) && rlhf__jinja_pay(w, 1); i += step)
        if (text)
            out = rlhf__jinja_joined(w, out.s, all.list->item[i].s);
        else
            rlhf__jinja_add(w, out, all.list->item[i]);
    if (w->state) return rlhf__jinja_undefined();
    return text ? rlhf__jinja_marked(out, of.mark) : out;
}
