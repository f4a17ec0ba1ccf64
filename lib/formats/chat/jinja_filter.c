// jinja_filter.c: see jinja_filter.h.
#include "chat/jinja_filter.h"

#include "chat/jinja_operator.h"
#include "chat/jinja_print.h"
#include "chat/jinja_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A call of a filter: the state, the filter's name, its value and its arguments.
struct filtering {
    struct rlhf__jinja_work *w;
    rlhf_str name;
    rlhf__value v;
    const struct rlhf__jinja_args *args;
    int32_t depth; // of nested filters, as in map('map', ...)
};

static rlhf__value arg(const struct filtering *f, size_t i, const char *name) {
    return rlhf__jinja_arg(f->args, i, name);
}

static rlhf__value not_known(struct rlhf__jinja_work *w, const char *what, rlhf_str name,
                             rlhf__value v) {
    return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "the %s '%.*s' of %s", what,
                            (int)(name.len < 40 ? name.len : 40), name.ptr, rlhf__jinja_kind(v));
}

static rlhf__value empty(void) { return rlhf__jinja_str((rlhf_str){"", 0}); }

// ---- one value ----

static rlhf__value f_default(struct filtering *f) {
    const rlhf__value with = arg(f, 0, "default_value"), all = arg(f, 1, "boolean");
    if (f->v.type != RLHF__JINJA_UNDEFINED && (!rlhf__jinja_true(all) || rlhf__jinja_true(f->v)))
        return f->v;
    return f->args->n ? with : empty();
}

static rlhf__value f_length(struct filtering *f) {
    if (f->v.type != RLHF__JINJA_STRING && !rlhf__jinja_is_list(f->v) &&
        f->v.type != RLHF__JINJA_DICT && f->v.type != RLHF__JINJA_UNDEFINED)
        return rlhf__jinja_stop(f->w, RLHF__JINJA_RAISED, "the length of %s",
                                rlhf__jinja_kind(f->v));
    if (f->v.type == RLHF__JINJA_DICT) return rlhf__jinja_int((int64_t)f->v.dict->n);
    if (rlhf__jinja_is_list(f->v)) return rlhf__jinja_int((int64_t)f->v.list->n);
    int64_t n = 0;
    for (size_t i = 0; f->v.type && i < f->v.s.len; i++)
        n += ((unsigned char)f->v.s.ptr[i] & 0xc0) != 0x80;
    rlhf__jinja_pay(f->w, (size_t)n);
    return rlhf__jinja_int(n);
}

static rlhf__value f_string(struct filtering *f) {
    return f->v.type ? rlhf__jinja_text(f->w, f->v) : empty();
}

static rlhf__value f_same(struct filtering *f) { return f->v; } // the filter `safe`

// Converts the value to text, and applies the string method that has the same name as the filter.
static rlhf__value f_method(struct filtering *f) {
    const rlhf_str name = rlhf__jinja_is(f->name, "trim") ? (rlhf_str){"strip", 5} : f->name;
    const rlhf__value text = f_string(f);
    int known = 1;
    if (f->w->state) return rlhf__jinja_undefined();
    const rlhf__value out = rlhf__jinja_string_method(f->w, name, text.s, f->args, &known);
    return known ? out : not_known(f->w, "filter", f->name, f->v);
}

static rlhf__value f_tojson(struct filtering *f) {
    const rlhf__value ascii = arg(f, 0, "ensure_ascii"), indent = arg(f, 1, "indent"),
                      parts = arg(f, 2, "separators");
    struct rlhf__jinja_json how = {.indent = indent.type == RLHF__JINJA_INT ? indent.i : -1,
                                   .sorted = rlhf__jinja_true(arg(f, 3, "sort_keys")),
                                   .ascii = rlhf__jinja_true(ascii)};
    if (rlhf__jinja_is_list(parts) && parts.list->n == 2 &&
        parts.list->item[0].type == RLHF__JINJA_STRING &&
        parts.list->item[1].type == RLHF__JINJA_STRING) {
        how.item = parts.list->item[0].s;
        how.key = parts.list->item[1].s;
    }
    return rlhf__jinja_tojson(f->w, f->v, &how);
}

static rlhf__value f_number(struct filtering *f) {
    const int whole = rlhf__jinja_is(f->name, "int");
    const rlhf__value otherwise = f->args->n ? arg(f, 0, "default") : rlhf__jinja_int(0);
    rlhf__value v = f->v;
    if (v.type == RLHF__JINJA_STRING) {
        char text[40], *end = text;
        const rlhf_str s = rlhf__space_trim(v.s, 1, 1);
        rlhf__jinja_pay(f->w, (size_t)(v.s.len - s.len));
        if (s.len && s.len < sizeof text) {
            memcpy(text, s.ptr, (size_t)s.len);
            text[s.len] = '\0';
            v = rlhf__jinja_float(strtod(text, &end));
            const long long i = strtoll(text, NULL, 10);
            if (whole && !strpbrk(text, ".eExXn")) v = rlhf__jinja_int(i);
        }
        if (end == text || *end) return otherwise;
    }
    if (v.type == RLHF__JINJA_FLOAT && whole)
        return fabs(v.f) < 9e18 ? rlhf__jinja_int((int64_t)v.f) : otherwise;
    if (v.type == RLHF__JINJA_FLOAT) return v;
    if (v.type != RLHF__JINJA_INT && v.type != RLHF__JINJA_BOOL) return otherwise;
    return whole ? rlhf__jinja_int(v.i) : rlhf__jinja_float((double)v.i);
}

static rlhf__value f_abs(struct filtering *f) {
    if (f->v.type == RLHF__JINJA_FLOAT) return rlhf__jinja_float(fabs(f->v.f));
    if (f->v.type != RLHF__JINJA_INT || f->v.i == INT64_MIN)
        return not_known(f->w, "filter", f->name, f->v);
    return rlhf__jinja_int(f->v.i < 0 ? -f->v.i : f->v.i);
}

static rlhf__value f_indent(struct filtering *f) {
    const rlhf__value width = arg(f, 0, "width"), text = f_string(f);
    const int first = rlhf__jinja_true(arg(f, 1, "first")),
              blank = rlhf__jinja_true(arg(f, 2, "blank"));
    rlhf__value by = width, out = empty();
    if (width.type != RLHF__JINJA_STRING)
        by = rlhf__jinja_binary(f->w, RLHF__JINJA_OP_MUL, rlhf__jinja_str((rlhf_str){" ", 1}),
                                width.type == RLHF__JINJA_INT ? width : rlhf__jinja_int(4));
    if (f->w->state) return rlhf__jinja_undefined();
    for (size_t at = 0, n; at <= text.s.len && !f->w->state; at += n + 1) {
        const char *end =
            text.s.len > at ? memchr(text.s.ptr + at, '\n', (size_t)text.s.len - at) : NULL;
        n = end ? (size_t)(end - text.s.ptr) - at : (size_t)text.s.len - at;
        if (at) out = rlhf__jinja_joined(f->w, out.s, (rlhf_str){"\n", 1});
        if (at ? n || blank : first) out = rlhf__jinja_joined(f->w, out.s, by.s);
        out = rlhf__jinja_joined(f->w, out.s, (rlhf_str){text.s.ptr + at, n});
    }
    return out;
}

// ---- lists ----

static rlhf__value f_list(struct filtering *f) { return rlhf__jinja_items(f->w, f->v); }

static rlhf__value f_edge(struct filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    if (f->w->state || !all.list->n) return rlhf__jinja_undefined();
    return all.list->item[rlhf__jinja_is(f->name, "first") ? 0 : all.list->n - 1];
}

static rlhf__value f_reverse(struct filtering *f) {
    const rlhf__value none = rlhf__jinja_undefined();
    const rlhf__value of = f->v.type == RLHF__JINJA_STRING ? f->v : rlhf__jinja_items(f->w, f->v);
    return f->w->state ? none : rlhf__jinja_slice(f->w, of, none, none, rlhf__jinja_int(-1));
}

// The attribute of v at a path such as "a.b.0". Undefined if a part of the path is undefined.
static rlhf__value attribute(struct rlhf__jinja_work *w, rlhf__value v, rlhf__value path) {
    if (path.type == RLHF__JINJA_INT) return rlhf__jinja_item(w, v, path);
    for (size_t at = 0, n; path.type == RLHF__JINJA_STRING && at < path.s.len && v.type;
         at += n + 1) {
        const char *dot = memchr(path.s.ptr + at, '.', (size_t)path.s.len - at);
        n = dot ? (size_t)(dot - path.s.ptr) - at : (size_t)path.s.len - at;
        const rlhf_str part = {path.s.ptr + at, n};
        if (!rlhf__jinja_pay(w, n)) break;
        const int digit = n && n < 9 && part.ptr[0] >= '0' && part.ptr[0] <= '9';
        v = rlhf__jinja_item(w, v, digit ? rlhf__jinja_int(atoi(part.ptr)) : rlhf__jinja_str(part));
    }
    return v;
}

static rlhf__value f_join(struct filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v), by = arg(f, 1, "attribute");
    rlhf__value out = empty();
    rlhf__value between = arg(f, 0, "d");
    if (between.type) between = rlhf__jinja_text(f->w, between);
    for (size_t i = 0; !f->w->state && i < all.list->n && rlhf__jinja_pay(f->w, 1); i++) {
        rlhf__value v = all.list->item[i];
        if (by.type) v = attribute(f->w, v, by);
        if (i && between.type) out = rlhf__jinja_joined(f->w, out.s, between.s);
        v = v.type ? rlhf__jinja_text(f->w, v) : empty();
        if (!f->w->state) out = rlhf__jinja_joined(f->w, out.s, v.s);
    }
    return f->w->state ? rlhf__jinja_undefined() : out;
}

static rlhf__value filter(struct filtering *f, int32_t which);

static rlhf__value f_map(struct filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v), by = arg(f, 99, "attribute"),
                      otherwise = arg(f, 99, "default"), name = arg(f, 0, "");
    rlhf__value out = rlhf__jinja_list(f->w, RLHF__JINJA_LIST, 0);
    struct rlhf__jinja_args rest = {.n = f->args->n ? f->args->n - 1 : 0};
    memcpy(rest.value, f->args->value + 1, rest.n * sizeof *rest.value);
    memcpy(rest.name, f->args->name + 1, rest.n * sizeof *rest.name);
    if (!by.type && (name.type != RLHF__JINJA_STRING || f->depth > 8))
        return not_known(f->w, "filter", f->name, f->v);
    for (size_t i = 0; !f->w->state && i < all.list->n && rlhf__jinja_pay(f->w, 1); i++) {
        struct filtering one = {f->w, name.s, all.list->item[i], &rest, f->depth + 1};
        rlhf__value v =
            by.type ? attribute(f->w, one.v, by) : filter(&one, rlhf__jinja_filter_find(name.s));
        if (by.type && !v.type) v = otherwise;
        rlhf__jinja_add(f->w, out, v);
    }
    return out;
}

// The filters select, reject, selectattr and rejectattr.
static rlhf__value f_select(struct filtering *f) {
    const int by = f->name.len == 10, wanted = f->name.ptr[0] == 's';
    const rlhf__value all = rlhf__jinja_items(f->w, f->v), name = arg(f, (size_t)by, "");
    rlhf__value out = rlhf__jinja_list(f->w, RLHF__JINJA_LIST, 0);
    const int tested = name.type == RLHF__JINJA_STRING;
    const int32_t test = tested ? rlhf__jinja_test_find(name.s) : 0;
    for (size_t i = 0; !f->w->state && i < all.list->n && rlhf__jinja_pay(f->w, 1); i++) {
        rlhf__value v = all.list->item[i];
        if (by) v = attribute(f->w, v, arg(f, 0, "attribute"));
        const int yes = tested ? rlhf__jinja_test(f->w, test, name.s, v, f->args, (size_t)by + 1)
                               : rlhf__jinja_true(v);
        if (yes == wanted) rlhf__jinja_add(f->w, out, all.list->item[i]);
    }
    return out;
}

// Returns the sort key of an item. It is the item itself or, if `by` is not none, one of the item's
// attributes. A string is converted to lower case unless `exact` is set.
static rlhf__value key_of(struct filtering *f, rlhf__value v, rlhf__value by, int exact) {
    const struct rlhf__jinja_args none = {0};
    int known;
    if (by.type > RLHF__JINJA_NONE) v = attribute(f->w, v, by);
    if (v.type != RLHF__JINJA_STRING || exact) return v;
    return rlhf__jinja_string_method(f->w, (rlhf_str){"lower", 5}, v.s, &none, &known);
}

// Sorts `list` by the keys in the list `key`, and permutes `key` in the same way. The sort is
// stable.
static void sort(struct filtering *f, rlhf__value list, rlhf__value key, int backwards) {
    for (size_t i = 1; !f->w->state && i < list.list->n; i++)
        for (size_t k = i; k && !f->w->state; k--) {
            rlhf__value *a = &list.list->item[k - 1], *b = &key.list->item[k - 1], c;
            const int order = rlhf__jinja_order(f->w, b[0], b[1]);
            if ((backwards ? -order : order) <= 0 || !rlhf__jinja_pay(f->w, 1)) break;
            c = a[0], a[0] = a[1], a[1] = c;
            c = b[0], b[0] = b[1], b[1] = c;
        }
}

static rlhf__value f_sort(struct filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    const int exact = rlhf__jinja_true(arg(f, 1, "case_sensitive"));
    rlhf__value out = rlhf__jinja_list(f->w, RLHF__JINJA_LIST, 0),
                key = rlhf__jinja_list(f->w, RLHF__JINJA_LIST, 0);
    for (size_t i = 0; !f->w->state && i < all.list->n; i++) {
        rlhf__jinja_add(f->w, out, all.list->item[i]);
        rlhf__jinja_add(f->w, key, key_of(f, all.list->item[i], arg(f, 2, "attribute"), exact));
    }
    if (!f->w->state) sort(f, out, key, rlhf__jinja_true(arg(f, 0, "reverse")));
    return out;
}

static rlhf__value f_unique(struct filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    const int exact = rlhf__jinja_true(arg(f, 0, "case_sensitive"));
    rlhf__value out = rlhf__jinja_list(f->w, RLHF__JINJA_LIST, 0),
                keys = rlhf__jinja_list(f->w, RLHF__JINJA_LIST, 0);
    for (size_t i = 0; !f->w->state && i < all.list->n; i++) {
        const rlhf__value key = key_of(f, all.list->item[i], arg(f, 1, "attribute"), exact);
        const rlhf__value in = rlhf__jinja_binary(f->w, RLHF__JINJA_OP_IN, key, keys);
        if (rlhf__jinja_true(in)) continue;
        rlhf__jinja_add(f->w, keys, key);
        rlhf__jinja_add(f->w, out, all.list->item[i]);
    }
    return out;
}

static rlhf__value f_sum(struct filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v), by = arg(f, 0, "attribute");
    rlhf__value out = rlhf__jinja_int(0);
    for (size_t i = 0; !f->w->state && i < all.list->n && rlhf__jinja_pay(f->w, 1); i++) {
        const rlhf__value v = all.list->item[i];
        out =
            rlhf__jinja_binary(f->w, RLHF__JINJA_OP_ADD, out, by.type ? attribute(f->w, v, by) : v);
    }
    return out;
}

static rlhf__value f_extreme(struct filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    const int most = rlhf__jinja_is(f->name, "max");
    rlhf__value best = rlhf__jinja_undefined();
    for (size_t i = 0; !f->w->state && i < all.list->n && rlhf__jinja_pay(f->w, 1); i++) {
        const rlhf__value v = all.list->item[i];
        const int order = i ? rlhf__jinja_order(f->w, v, best) : 0;
        if (!i || (most ? order > 0 : order < 0)) best = v;
    }
    return best;
}

// ---- objects ----

// The members of an object as a list. `which` is 0 for pairs (key, value), 1 for keys, 2 for
// values.
static rlhf__value pairs(struct rlhf__jinja_work *w, const struct rlhf__jinja_dict *d, int which) {
    rlhf__value out = rlhf__jinja_list(w, RLHF__JINJA_LIST, d->n);
    for (size_t i = 0; i < d->n && rlhf__jinja_pay(w, 1); i++) {
        rlhf__value pair = rlhf__jinja_str(d->pair[i].key);
        if (which == 2) pair = d->pair[i].value;
        if (which == 0) {
            pair = rlhf__jinja_list(w, RLHF__JINJA_TUPLE, 2);
            rlhf__jinja_add(w, pair, rlhf__jinja_str(d->pair[i].key));
            rlhf__jinja_add(w, pair, d->pair[i].value);
        }
        rlhf__jinja_add(w, out, pair);
    }
    return out;
}

static rlhf__value f_items(struct filtering *f) {
    if (f->v.type == RLHF__JINJA_DICT) return pairs(f->w, f->v.dict, 0);
    if (f->v.type == RLHF__JINJA_UNDEFINED) return rlhf__jinja_list(f->w, RLHF__JINJA_LIST, 0);
    return rlhf__jinja_stop(f->w, RLHF__JINJA_RAISED, "the items of %s", rlhf__jinja_kind(f->v));
}

static rlhf__value f_dictsort(struct filtering *f) {
    const rlhf__value by = arg(f, 1, "by");
    const int value = by.type == RLHF__JINJA_STRING && rlhf__jinja_is(by.s, "value");
    const int exact = rlhf__jinja_true(arg(f, 0, "case_sensitive"));
    if (f->v.type != RLHF__JINJA_DICT) return not_known(f->w, "filter", f->name, f->v);
    rlhf__value out = pairs(f->w, f->v.dict, 0), key = rlhf__jinja_list(f->w, RLHF__JINJA_LIST, 0);
    for (size_t i = 0; !f->w->state && i < out.list->n; i++)
        rlhf__jinja_add(
            f->w, key,
            key_of(f, out.list->item[i].list->item[value], rlhf__jinja_undefined(), exact));
    if (!f->w->state) sort(f, out, key, rlhf__jinja_true(arg(f, 2, "reverse")));
    return out;
}

// ---- by name ----

static const struct {
    const char *name;
    rlhf__value (*run)(struct filtering *);
} filters[] = {{"", NULL},
               {"trim", f_method},
               {"default", f_default},
               {"d", f_default},
               {"length", f_length},
               {"count", f_length},
               {"tojson", f_tojson},
               {"join", f_join},
               {"list", f_list},
               {"first", f_edge},
               {"last", f_edge},
               {"string", f_string},
               {"safe", f_same},
               {"upper", f_method},
               {"lower", f_method},
               {"capitalize", f_method},
               {"replace", f_method},
               {"items", f_items},
               {"dictsort", f_dictsort},
               {"map", f_map},
               {"select", f_select},
               {"reject", f_select},
               {"selectattr", f_select},
               {"rejectattr", f_select},
               {"unique", f_unique},
               {"sort", f_sort},
               {"reverse", f_reverse},
               {"int", f_number},
               {"float", f_number},
               {"abs", f_abs},
               {"sum", f_sum},
               {"min", f_extreme},
               {"max", f_extreme},
               {"indent", f_indent}};

int32_t rlhf__jinja_filter_find(rlhf_str name) {
    for (size_t i = 1; i < sizeof filters / sizeof *filters; i++)
        if (rlhf__jinja_is(name, filters[i].name)) return (int32_t)i;
    return 0;
}

static rlhf__value filter(struct filtering *f, int32_t which) {
    if (!which) return not_known(f->w, "filter", f->name, f->v);
    const rlhf__value v = filters[which].run(f);
    return f->w->state ? rlhf__jinja_undefined() : v;
}

rlhf__value rlhf__jinja_filter(struct rlhf__jinja_work *w, int32_t which, rlhf_str name,
                               rlhf__value v, const struct rlhf__jinja_args *args) {
    struct filtering f = {w, name, v, args, 0};
    return filter(&f, which);
}

// ---- methods ----

static const char *const object_methods[] = {"get", "items", "keys", "values"};

int rlhf__jinja_has_method(rlhf_str name) {
    for (size_t i = 0; i < sizeof object_methods / sizeof *object_methods; i++)
        if (rlhf__jinja_is(name, object_methods[i])) return 1;
    return 0;
}

rlhf__value rlhf__jinja_method(struct rlhf__jinja_work *w, rlhf_str name, rlhf__value v,
                               const struct rlhf__jinja_args *args) {
    const rlhf__value key = rlhf__jinja_arg(args, 0, "key");
    int known = 0;
    rlhf__value out = rlhf__jinja_undefined();
    if (v.type == RLHF__JINJA_STRING) out = rlhf__jinja_string_method(w, name, v.s, args, &known);
    if (v.type == RLHF__JINJA_DICT && rlhf__jinja_is(name, "get")) {
        const rlhf__value *found =
            key.type == RLHF__JINJA_STRING ? rlhf__jinja_get(w, v.dict, key.s) : NULL;
        if (found) return *found;
        return args->n > 1 ? args->value[1] : rlhf__jinja_none();
    }
    for (int i = 0; v.type == RLHF__JINJA_DICT && i < 3; i++)
        if (rlhf__jinja_is(name, object_methods[i + 1])) return pairs(w, v.dict, i);
    for (size_t i = 0; rlhf__jinja_is_list(v) && rlhf__jinja_is(name, "index"); i++) {
        if (i == v.list->n)
            return rlhf__jinja_stop(w, RLHF__JINJA_RAISED,
                                    "index() of an item that is not in the list");
        if (rlhf__jinja_equal(w, v.list->item[i], key) || w->state)
            return rlhf__jinja_int((int64_t)i);
    }
    if (v.type == RLHF__JINJA_UNDEFINED)
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "'%.*s' of an undefined value",
                                (int)(name.len < 40 ? name.len : 40), name.ptr);
    return known ? out : not_known(w, "method", name, v);
}
