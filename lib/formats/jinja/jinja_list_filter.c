// jinja_list_filter.c: the filters of lists; see jinja_filter.h.
#include "jinja/jinja_filter.h"
#include "jinja/jinja_method.h"
#include "jinja/jinja_test.h"
#include "values/jinja_dict.h"
#include "values/jinja_escape.h"
#include "values/jinja_number.h"
#include "values/jinja_operator.h"
#include "values/jinja_print.h"
#include "values/jinja_text.h"

#include <stdlib.h>
#include <string.h>

typedef struct rlhf__jinja_filtering filtering;

static rlhf__value raised(filtering *f) { return rlhf__jinja_filter_fails(f, RLHF__JINJA_RAISED); }

// A list that jinja2 visits only once and only when it is needed; here it is already computed.
static rlhf__value iterator(filtering *f, rlhf__value list) {
    list.type = f->w->state ? RLHF__JINJA_UNDEFINED : RLHF__JINJA_ITERATOR;
    return list;
}

static rlhf__value new_list(filtering *f) { return rlhf__jinja_list(f->w, RLHF__JINJA_LIST, 0); }

static rlhf__value f_list(filtering *f) { return rlhf__jinja_own_items(f->w, f->v); }

static rlhf__value f_first(filtering *f) {
    if (f->v.type == RLHF__JINJA_ITERATOR) {
        struct rlhf__jinja_list *list = f->v.list;
        return list->at < list->n ? list->item[list->at++] : rlhf__jinja_undefined();
    }
    if (f->v.type == RLHF__JINJA_STRING)
        return rlhf__jinja_marked(rlhf__jinja_item(f->w, f->v, rlhf__jinja_int(0)), 0);
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    return f->w->state || !all.list->n ? rlhf__jinja_undefined() : all.list->item[0];
}

static rlhf__value f_last(filtering *f) {
    if (f->v.type == RLHF__JINJA_ITERATOR) return raised(f);
    if (f->v.type == RLHF__JINJA_UNDEFINED) return raised(f);
    if (f->v.type == RLHF__JINJA_STRING)
        return rlhf__jinja_marked(rlhf__jinja_item(f->w, f->v, rlhf__jinja_int(-1)), 0);
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    return f->w->state || !all.list->n ? rlhf__jinja_undefined() : all.list->item[all.list->n - 1];
}

static rlhf__value f_reverse(filtering *f) {
    const rlhf__value none = rlhf__jinja_undefined();
    if (f->v.type == RLHF__JINJA_STRING)
        return rlhf__jinja_slice(f->w, f->v, none, none, rlhf__jinja_int(-1));
    const int once = f->v.type != RLHF__JINJA_ITERATOR;
    rlhf__value all = rlhf__jinja_own_items(f->w, f->v);
    if (f->w->state) return none;
    all = rlhf__jinja_slice(f->w, all, none, none, rlhf__jinja_int(-1));
    return once ? iterator(f, all) : all;
}

// The value of v at a path such as "a.b.0". Raises an error if a part before the last is undefined.
// A value that is undefined becomes `otherwise` if that is defined.
static rlhf__value at_path(struct rlhf__jinja_work *w, rlhf__value v, rlhf__value path,
                           rlhf__value otherwise) {
    if (path.type == RLHF__JINJA_NONE || path.type == RLHF__JINJA_UNDEFINED) return v;
    if (path.type != RLHF__JINJA_STRING) {
        v = rlhf__jinja_member(w, v, path);
        return v.type || otherwise.type <= RLHF__JINJA_NONE ? v : otherwise;
    }
    for (size_t at = 0, n; at <= path.s.len && !w->state; at += n + 1) {
        const char *dot =
            at < path.s.len ? memchr(path.s.ptr + at, '.', (size_t)path.s.len - at) : NULL;
        n = dot ? (size_t)(dot - path.s.ptr) - at : (size_t)path.s.len - at;
        const rlhf_str part = {path.s.ptr + at, n};
        if (!rlhf__jinja_pay(w, n)) break;
        const rlhf__value index = n < 9 ? rlhf__jinja_digits(w, part, 10) : rlhf__jinja_undefined();
        v = rlhf__jinja_member(w, v, index.type ? index : rlhf__jinja_str(part));
        if (!v.type && otherwise.type > RLHF__JINJA_NONE) v = otherwise;
    }
    return v;
}

static rlhf__value f_join(filtering *f) {
    const rlhf__value by = f->a[1], none = rlhf__jinja_undefined();
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    rlhf__value between = f->a[0].type ? rlhf__jinja_text(f->w, f->a[0]) : rlhf__jinja_empty(),
                out = rlhf__jinja_empty();
    for (size_t i = 0; !f->w->state && i < all.list->n && rlhf__jinja_pay(f->w, 1); i++) {
        rlhf__value v = at_path(f->w, all.list->item[i], by, none);
        if (i) out = rlhf__jinja_joined(f->w, out.s, between.s);
        v = v.type ? rlhf__jinja_text(f->w, v) : rlhf__jinja_empty();
        if (!f->w->state) out = rlhf__jinja_joined(f->w, out.s, v.s);
    }
    return f->w->state ? rlhf__jinja_undefined() : out;
}

// The arguments from index `from` on, for another filter or test.
static struct rlhf__jinja_args rest_of(const struct rlhf__jinja_args *args, size_t from) {
    struct rlhf__jinja_args rest = {.n = args->n > from ? args->n - from : 0};
    memcpy(rest.value, args->value + from, rest.n * sizeof *rest.value);
    memcpy(rest.name, args->name + from, rest.n * sizeof *rest.name);
    return rest;
}

static rlhf__value f_map(filtering *f) {
    const int by_name = f->args->n > 0 && !f->args->name[0].len;
    const rlhf__value name = by_name ? f->args->value[0] : rlhf__jinja_undefined();
    const struct rlhf__jinja_args rest = rest_of(f->args, 1);
    rlhf__value out = new_list(f), a[RLHF__JINJA_PARAMS_MAX];
    if (!rlhf__jinja_true(f->v)) return iterator(f, out);
    if (!by_name &&
        !rlhf__jinja_bind(f->w, "the filter", f->name, "attribute default=", f->args, a))
        return rlhf__jinja_undefined();
    if (by_name && (name.type != RLHF__JINJA_STRING || f->depth > 8)) return raised(f);
    const int32_t which = by_name ? rlhf__jinja_filter_find(name.s) : 0;
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    for (size_t i = 0; !f->w->state && i < all.list->n && rlhf__jinja_pay(f->w, 1); i++) {
        const rlhf__value v = all.list->item[i];
        rlhf__jinja_add(f->w, out,
                        by_name ? rlhf__jinja_filter(f->w, which, name.s, v, &rest, f->depth + 1)
                                : at_path(f->w, v, a[0], a[1]));
    }
    return iterator(f, out);
}

// The filters select, reject, selectattr and rejectattr.
static rlhf__value f_select(filtering *f) {
    const int by = f->name.len == 10, wanted = f->name.ptr[0] == 's';
    const rlhf__value none = rlhf__jinja_undefined();
    rlhf__value out = new_list(f);
    if (!rlhf__jinja_true(f->v)) return iterator(f, out);
    const struct rlhf__jinja_args *args = f->args;
    size_t positional = 0;
    while (positional < args->n && !args->name[positional].len)
        positional++;
    if (positional < (size_t)by) return raised(f);
    const int tested = positional > (size_t)by;
    const rlhf__value name = tested ? args->value[by] : none;
    const struct rlhf__jinja_args rest = rest_of(args, (size_t)by + 1);
    if ((tested && name.type != RLHF__JINJA_STRING) || (!tested && args->n > positional))
        return raised(f);
    const int32_t test = tested ? rlhf__jinja_test_find(name.s) : 0;
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    for (size_t i = 0; !f->w->state && i < all.list->n && rlhf__jinja_pay(f->w, 1); i++) {
        rlhf__value v = all.list->item[i];
        if (by) v = at_path(f->w, v, args->value[0], none);
        const int yes =
            tested ? rlhf__jinja_test(f->w, test, name.s, v, &rest) : rlhf__jinja_true(v);
        if (yes == wanted) rlhf__jinja_add(f->w, out, all.list->item[i]);
    }
    return iterator(f, out);
}

// ---- order ----

// The value by which an item is compared. A string is in lower case unless `exact` is set.
static rlhf__value folded(filtering *f, rlhf__value v, int exact) {
    if (v.type != RLHF__JINJA_STRING || exact || f->w->state) return v;
    return rlhf__jinja_simple_method(f->w, "lower", v);
}

// The keys of an item for `sort`, whose attribute may be several, as in "role,n".
static rlhf__value sort_key(filtering *f, rlhf__value v, rlhf__value by, int exact) {
    const rlhf__value none = rlhf__jinja_undefined();
    rlhf__value out = new_list(f);
    if (by.type != RLHF__JINJA_STRING) {
        rlhf__jinja_add(f->w, out, folded(f, at_path(f->w, v, by, none), exact));
        return out;
    }
    for (size_t at = 0, n; at <= by.s.len && !f->w->state; at += n + 1) {
        const char *comma =
            at < by.s.len ? memchr(by.s.ptr + at, ',', (size_t)by.s.len - at) : NULL;
        n = comma ? (size_t)(comma - by.s.ptr) - at : (size_t)by.s.len - at;
        const rlhf__value part = rlhf__jinja_str((rlhf_str){by.s.ptr + at, n});
        rlhf__jinja_add(f->w, out, folded(f, at_path(f->w, v, part, none), exact));
    }
    return out;
}

// Sorts `list` by the keys in the list `key`, and permutes `key` in the same way. The sort is
// stable.
static void sort(filtering *f, rlhf__value list, rlhf__value key, int backwards) {
    for (size_t i = 1; !f->w->state && i < list.list->n; i++)
        for (size_t k = i; k && !f->w->state; k--) {
            rlhf__value *a = &list.list->item[k - 1], *b = &key.list->item[k - 1], c;
            const int order = rlhf__jinja_order(f->w, b[0], b[1]);
            if ((backwards ? -order : order) <= 0 || !rlhf__jinja_pay(f->w, 1)) break;
            c = a[0], a[0] = a[1], a[1] = c;
            c = b[0], b[0] = b[1], b[1] = c;
        }
}

static rlhf__value f_sort(filtering *f) {
    const int exact = rlhf__jinja_true(f->a[1]);
    rlhf__value out = rlhf__jinja_own_items(f->w, f->v), key = new_list(f);
    for (size_t i = 0; !f->w->state && i < out.list->n; i++)
        rlhf__jinja_add(f->w, key, sort_key(f, out.list->item[i], f->a[2], exact));
    if (!f->w->state) sort(f, out, key, rlhf__jinja_true(f->a[0]));
    return out;
}

static rlhf__value f_dictsort(filtering *f) {
    const rlhf__value by = f->a[1];
    const int text = by.type == RLHF__JINJA_STRING, value = text && rlhf__jinja_is(by.s, "value");
    const int exact = rlhf__jinja_true(f->a[0]);
    if (f->v.type != RLHF__JINJA_DICT ||
        (by.type && !value && !(text && rlhf__jinja_is(by.s, "key"))))
        return raised(f);
    rlhf__value out = rlhf__jinja_view(f->w, f->v.dict, 0), key = new_list(f);
    for (size_t i = 0; !f->w->state && i < out.list->n; i++)
        rlhf__jinja_add(f->w, key, folded(f, out.list->item[i].list->item[value], exact));
    if (f->w->state) return rlhf__jinja_undefined();
    out.type = RLHF__JINJA_LIST;
    sort(f, out, key, rlhf__jinja_true(f->a[2]));
    return out;
}

static rlhf__value f_unique(filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    const int exact = rlhf__jinja_true(f->a[0]);
    rlhf__value out = new_list(f), keys = rlhf__jinja_dict(f->w, RLHF__JINJA_DICT, 0);
    for (size_t i = 0; !f->w->state && i < all.list->n; i++) {
        const rlhf__value item = all.list->item[i],
                          at = at_path(f->w, item, f->a[1], rlhf__jinja_undefined());
        const size_t before = keys.dict->n;
        rlhf__jinja_put_key(f->w, keys, folded(f, at, exact), rlhf__jinja_none());
        if (!f->w->state && keys.dict->n > before) rlhf__jinja_add(f->w, out, item);
    }
    return iterator(f, out);
}

static rlhf__value f_groupby(filtering *f) {
    const int exact = rlhf__jinja_true(f->a[2]);
    rlhf__value all = rlhf__jinja_own_items(f->w, f->v), key = new_list(f), out = new_list(f);
    for (size_t i = 0; !f->w->state && i < all.list->n; i++)
        rlhf__jinja_add(f->w, key,
                        folded(f, at_path(f->w, all.list->item[i], f->a[0], f->a[1]), exact));
    if (!f->w->state) sort(f, all, key, 0);
    for (size_t i = 0, from = 0; !f->w->state && i < all.list->n; i++) {
        if (i == 0 || !rlhf__jinja_equal(f->w, key.list->item[i - 1], key.list->item[i])) {
            rlhf__value group = rlhf__jinja_list(f->w, RLHF__JINJA_TUPLE, 2);
            from = i;
            rlhf__jinja_add(f->w, group, at_path(f->w, all.list->item[from], f->a[0], f->a[1]));
            rlhf__jinja_add(f->w, group, new_list(f));
            group.mark = 1;
            rlhf__jinja_add(f->w, out, group);
        }
        if (f->w->state) break;
        const rlhf__value group = out.list->item[out.list->n - 1];
        rlhf__jinja_add(f->w, group.list->item[1], all.list->item[i]);
    }
    return out;
}

static rlhf__value f_extreme(filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v), none = rlhf__jinja_undefined();
    const int most = rlhf__jinja_is(f->name, "max"), exact = rlhf__jinja_true(f->a[0]);
    rlhf__value best = none, best_key = none;
    for (size_t i = 0; !f->w->state && i < all.list->n && rlhf__jinja_pay(f->w, 1); i++) {
        const rlhf__value v = all.list->item[i],
                          key = folded(f, at_path(f->w, v, f->a[1], none), exact);
        const int order = i && !f->w->state ? rlhf__jinja_order(f->w, key, best_key) : 0;
        if (i && !(most ? order > 0 : order < 0)) continue;
        best = v;
        best_key = key;
    }
    return best;
}

// ---- sums and parts ----

static rlhf__value f_sum(filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v), none = rlhf__jinja_undefined();
    rlhf__value out = f->a[1].type ? f->a[1] : rlhf__jinja_int(0);
    if (out.type == RLHF__JINJA_STRING) return raised(f);
    for (size_t i = 0; !f->w->state && i < all.list->n && rlhf__jinja_pay(f->w, 1); i++)
        out = rlhf__jinja_binary(f->w, RLHF__JINJA_OP_ADD, out,
                                 at_path(f->w, all.list->item[i], f->a[0], none));
    return out;
}

static rlhf__value f_batch(filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    const int64_t most = rlhf__jinja_whole_arg(f->w, f->a[0], 1);
    rlhf__value out = new_list(f), row = new_list(f);
    for (size_t i = 0; !f->w->state && i < all.list->n && rlhf__jinja_pay(f->w, 1); i++) {
        if ((int64_t)row.list->n == most) {
            rlhf__jinja_add(f->w, out, row);
            row = new_list(f);
        }
        rlhf__jinja_add(f->w, row, all.list->item[i]);
    }
    if (f->w->state || !row.list->n) return iterator(f, out);
    while (f->a[1].type > RLHF__JINJA_NONE && (int64_t)row.list->n < most && !f->w->state &&
           rlhf__jinja_pay(f->w, 1))
        rlhf__jinja_add(f->w, row, f->a[1]);
    rlhf__jinja_add(f->w, out, row);
    return iterator(f, out);
}

static rlhf__value f_slice(filtering *f) {
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    const int64_t slices = rlhf__jinja_whole_arg(f->w, f->a[0], 1);
    rlhf__value out = new_list(f);
    if (f->w->state || slices == 0) return raised(f);
    const int64_t n = (int64_t)all.list->n, each = slices > 0 ? n / slices : 0,
                  extra = slices > 0 ? n % slices : 0;
    for (int64_t i = 0, at = 0; i < slices && !f->w->state && rlhf__jinja_pay(f->w, 1); i++) {
        rlhf__value row = new_list(f);
        for (int64_t k = 0; k < each + (i < extra) && rlhf__jinja_pay(f->w, 1); k++)
            rlhf__jinja_add(f->w, row, all.list->item[at++]);
        if (f->a[1].type > RLHF__JINJA_NONE && i >= extra) rlhf__jinja_add(f->w, row, f->a[1]);
        rlhf__jinja_add(f->w, out, row);
    }
    return iterator(f, out);
}

const struct rlhf__jinja_filter_row rlhf__jinja_list_filters[] = {
    {"list", "", f_list},
    {"first", "", f_first},
    {"last", "", f_last},
    {"reverse", "", f_reverse},
    {"join", "d= attribute=", f_join},
    {"map", NULL, f_map},
    {"select", NULL, f_select},
    {"reject", NULL, f_select},
    {"selectattr", NULL, f_select},
    {"rejectattr", NULL, f_select},
    {"sort", "reverse= case_sensitive= attribute=", f_sort},
    {"dictsort", "case_sensitive= by= reverse=", f_dictsort},
    {"unique", "case_sensitive= attribute=", f_unique},
    {"groupby", "attribute default= case_sensitive=", f_groupby},
    {"min", "case_sensitive= attribute=", f_extreme},
    {"max", "case_sensitive= attribute=", f_extreme},
    {"sum", "attribute= start=", f_sum},
    {"batch", "linecount fill_with=", f_batch},
    {"slice", "slices fill_with=", f_slice},
    {"random", "", NULL},
    {NULL, NULL, NULL}};
