// jinja_operator.c: see jinja_operator.h.
#include "chat/jinja_operator.h"

#include "chat/jinja_print.h"

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

static int is_whole(rlhf__value v) { // in Python, a bool is a number
    return v.type == RLHF__JINJA_BOOL || v.type == RLHF__JINJA_INT;
}
static int is_number(rlhf__value v) { return is_whole(v) || v.type == RLHF__JINJA_FLOAT; }
static double real(rlhf__value v) { return is_whole(v) ? (double)v.i : v.f; }

static rlhf__value power(struct rlhf__jinja_work *w, int64_t x, int64_t y) {
    int64_t out = 1;
    for (int64_t i = 0; i < y && i < 64 && out; i++)
        if (__builtin_mul_overflow(out, x, &out) || (i == 63 && y > 64 && llabs(x) > 1))
            return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "a number over 64 bits");
    if (y > 64 && x == -1) out = y % 2 ? -1 : 1;
    return y < 0 ? rlhf__jinja_float(rlhf_pow((double)x, (double)y)) : rlhf__jinja_int(out);
}

static rlhf__value whole(struct rlhf__jinja_work *w, int32_t op, int64_t x, int64_t y) {
    int64_t out = 0;
    int over = 0;
    if (op == RLHF__JINJA_OP_POW) return power(w, x, y);
    if (op == RLHF__JINJA_OP_DIV && y) return rlhf__jinja_float((double)x / (double)y);
    if (op == RLHF__JINJA_OP_ADD)
        over = __builtin_add_overflow(x, y, &out);
    else if (op == RLHF__JINJA_OP_SUB)
        over = __builtin_sub_overflow(x, y, &out);
    else if (op == RLHF__JINJA_OP_MUL)
        over = __builtin_mul_overflow(x, y, &out);
    else if (y == 0)
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a division by 0");
    else if (y == -1)
        over = op == RLHF__JINJA_OP_FLOOR && __builtin_sub_overflow(0, x, &out);
    else if (op == RLHF__JINJA_OP_FLOOR)
        out = x / y - ((x % y != 0) && (x < 0) != (y < 0));
    else
        out = x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0);
    if (over) return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "a number over 64 bits");
    return rlhf__jinja_int(out);
}

static rlhf__value reals(struct rlhf__jinja_work *w, int32_t op, double x, double y) {
    const int by_zero =
        op == RLHF__JINJA_OP_DIV || op == RLHF__JINJA_OP_FLOOR || op == RLHF__JINJA_OP_MOD;
    if (by_zero && !(y < 0 || y > 0))
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
        return rlhf__jinja_float(floor(x / y));
    case RLHF__JINJA_OP_MOD:
        return rlhf__jinja_float(x - y * floor(x / y));
    default:
        return rlhf__jinja_float(rlhf_pow(x, y));
    }
}

// 'ab' * 3, or [1] * 3.
static rlhf__value repeated(struct rlhf__jinja_work *w, rlhf__value v, int64_t times) {
    rlhf__value out = v.type == RLHF__JINJA_STRING ? rlhf__jinja_str((rlhf_str){"", 0})
                                                   : rlhf__jinja_list(w, v.type, 0);
    const int empty = v.type == RLHF__JINJA_STRING ? v.s.len == 0 : v.list->n == 0;
    for (int64_t i = 0; i < times && !empty && rlhf__jinja_pay(w, 1); i++) {
        if (v.type == RLHF__JINJA_STRING)
            out = rlhf__jinja_joined(w, out.s, v.s);
        else
            for (size_t k = 0; k < v.list->n; k++)
                rlhf__jinja_add(w, out, v.list->item[k]);
        if (w->state) break;
    }
    return w->state ? rlhf__jinja_undefined() : out;
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
    const int text = a.type == RLHF__JINJA_STRING, list = rlhf__jinja_is_list(a);
    if (op == RLHF__JINJA_OP_ADD && text && b.type == RLHF__JINJA_STRING)
        return rlhf__jinja_joined(w, a.s, b.s);
    if (op == RLHF__JINJA_OP_ADD && list && a.type == b.type) return lists(w, a, b);
    if (op == RLHF__JINJA_OP_MUL && (text || list) && is_whole(b)) return repeated(w, a, b.i);
    if (op == RLHF__JINJA_OP_MUL && is_whole(a) &&
        (b.type == RLHF__JINJA_STRING || rlhf__jinja_is_list(b)))
        return repeated(w, b, a.i);
    if (op == RLHF__JINJA_OP_MOD && text)
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "a string %% %s", rlhf__jinja_kind(b));
    if (!is_number(a) || !is_number(b)) return cannot(w, op, a, b);
    return is_whole(a) && is_whole(b) ? whole(w, op, a.i, b.i) : reals(w, op, real(a), real(b));
}

// ---- comparisons ----

int rlhf__jinja_order(struct rlhf__jinja_work *w, rlhf__value a, rlhf__value b) {
    if (a.type == RLHF__JINJA_STRING && b.type == RLHF__JINJA_STRING) {
        const size_t n = (size_t)(a.s.len < b.s.len ? a.s.len : b.s.len);
        const int order = n ? memcmp(a.s.ptr, b.s.ptr, n) : 0;
        rlhf__jinja_pay(w, n);
        return order ? (order < 0 ? -1 : 1) : a.s.len < b.s.len ? -1 : a.s.len > b.s.len;
    }
    if (is_whole(a) && is_whole(b)) return a.i < b.i ? -1 : a.i > b.i;
    if (is_number(a) && is_number(b)) return real(a) < real(b) ? -1 : real(a) > real(b);
    for (size_t i = 0; rlhf__jinja_is_list(a) && a.type == b.type && rlhf__jinja_pay(w, 1); i++) {
        if (i == a.list->n || i == b.list->n) return i < b.list->n ? -1 : i < a.list->n;
        if (rlhf__jinja_is_list(a.list->item[i])) break;
        if (!rlhf__jinja_equal(w, a.list->item[i], b.list->item[i]))
            return rlhf__jinja_order(w, a.list->item[i], b.list->item[i]);
    }
    cannot(w, RLHF__JINJA_OP_LT, a, b);
    return 0;
}

static int contains(struct rlhf__jinja_work *w, rlhf__value x, rlhf__value in) {
    if (rlhf__jinja_is_dict(in) && x.type == RLHF__JINJA_STRING)
        return rlhf__jinja_get(w, in.dict, x.s) != NULL;
    if (in.type == RLHF__JINJA_STRING && x.type == RLHF__JINJA_STRING)
        return rlhf__jinja_pay(w, (size_t)in.s.len) &&
               (x.s.len == 0 ||
                memmem(in.s.ptr, (size_t)in.s.len, x.s.ptr, (size_t)x.s.len) != NULL);
    for (size_t i = 0; rlhf__jinja_is_list(in) && i < in.list->n && !w->state; i++)
        if (rlhf__jinja_equal(w, in.list->item[i], x)) return 1;
    if (!rlhf__jinja_is_list(in) && !rlhf__jinja_is_dict(in) && in.type != RLHF__JINJA_UNDEFINED)
        cannot(w, RLHF__JINJA_OP_IN, x, in);
    return 0;
}

rlhf__value rlhf__jinja_binary(struct rlhf__jinja_work *w, int32_t op, rlhf__value a,
                               rlhf__value b) {
    int order;
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
        order = rlhf__jinja_order(w, a, b);
        if (op == RLHF__JINJA_OP_LT || op == RLHF__JINJA_OP_GE)
            return rlhf__jinja_bool((order < 0) == (op == RLHF__JINJA_OP_LT));
        return rlhf__jinja_bool((order > 0) == (op == RLHF__JINJA_OP_GT));
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
    if (rlhf__jinja_is_dict(of) && key.type == RLHF__JINJA_STRING) {
        const rlhf__value *v = rlhf__jinja_get(w, of.dict, key.s);
        return v ? *v : rlhf__jinja_undefined();
    }
    if (!is_whole(key)) return rlhf__jinja_undefined();
    if (of.type == RLHF__JINJA_STRING) return character(w, of.s, key.i);
    if (!rlhf__jinja_is_list(of)) return rlhf__jinja_undefined();
    const int64_t n = (int64_t)of.list->n, i = key.i < 0 ? key.i + n : key.i;
    return i < 0 || i >= n ? rlhf__jinja_undefined() : of.list->item[i];
}

// The index at which a slice begins or ends, computed as in Python.
static int64_t slice_end(rlhf__value at, int64_t n, int64_t by, int64_t missing) {
    if (!is_whole(at)) return missing;
    int64_t i = at.i;
    if (i < 0) i = i < -n ? -1 : i + n;
    if (i < 0) return by < 0 ? -1 : 0;
    return i >= n ? (by < 0 ? n - 1 : n) : i;
}

rlhf__value rlhf__jinja_slice(struct rlhf__jinja_work *w, rlhf__value of, rlhf__value from,
                              rlhf__value to, rlhf__value by) {
    const rlhf__value part[] = {from, to, by};
    for (int i = 0; i < 3; i++)
        if (part[i].type > RLHF__JINJA_NONE && !is_whole(part[i]))
            return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "a slice by %s",
                                    rlhf__jinja_kind(part[i]));
    const int64_t step = is_whole(by) ? by.i : 1;
    const int text = of.type == RLHF__JINJA_STRING;
    if ((!text && !rlhf__jinja_is_list(of)) || step == 0 || llabs(step) > INT32_MAX)
        return rlhf__jinja_stop(w, of.type ? RLHF__JINJA_UNKNOWN : RLHF__JINJA_RAISED,
                                "a slice of %s", rlhf__jinja_kind(of));
    const rlhf__value all = rlhf__jinja_items(w, of);
    rlhf__value out = text ? rlhf__jinja_str((rlhf_str){"", 0}) : rlhf__jinja_list(w, of.type, 0);
    if (w->state) return rlhf__jinja_undefined();
    const int64_t n = (int64_t)all.list->n;
    int64_t i = slice_end(from, n, step, step < 0 ? n - 1 : 0);
    const int64_t end = slice_end(to, n, step, step < 0 ? -1 : n);
    if (text && step == 1) { // the slice is a part of the string
        if (i >= end) return out;
        const char *first = all.list->item[i].s.ptr;
        const rlhf_str last = all.list->item[end - 1].s;
        return rlhf__jinja_str((rlhf_str){first, (uint64_t)(last.ptr + last.len - first)});
    }
    for (; (step > 0 ? i < end : i > end) && rlhf__jinja_pay(w, 1); i += step)
        if (text)
            out = rlhf__jinja_joined(w, out.s, all.list->item[i].s);
        else
            rlhf__jinja_add(w, out, all.list->item[i]);
    return w->state ? rlhf__jinja_undefined() : out;
}
