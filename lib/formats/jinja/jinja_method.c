// jinja_method.c: see jinja_method.h.
#include "jinja/jinja_method.h"

#include "jinja/jinja_format.h"
#include "jinja/jinja_function.h"
#include "values/jinja_dict.h"
#include "values/jinja_operator.h"
#include "values/jinja_text.h"

#include <string.h>

static const char *const list_methods[] = {"index", "count", "copy", NULL};
static const char *const dict_methods[] = {"get",  "items",    "keys", "values",
                                           "copy", "fromkeys", NULL};
static const char *const cycler_methods[] = {"next", "reset", NULL};
static const char *const loop_methods[] = {"cycle", "changed", NULL};
// Methods and members that exist in Python, but not here.
static const char *const refused_of_lists[] = {"append", "clear", "extend",  "insert", "pop",
                                               "remove", "sort",  "reverse", NULL};
static const char *const refused_of_dicts[] = {"clear",      "pop",    "popitem",
                                               "setdefault", "update", NULL};
static const char *const refused_of_numbers[] = {
    "bit_count",        "bit_length", "conjugate", "to_bytes",   "from_bytes",
    "as_integer_ratio", "hex",        "fromhex",   "is_integer", NULL};
static const char *const refused_of_macros[] = {"arguments",     "caller",          "catch_kwargs",
                                                "catch_varargs", "explicit_caller", NULL};
static const char *const refused_of_ranges[] = {"start", "stop", "step", NULL};
static const char *const refused_of_views[] = {"isdisjoint", "mapping", NULL};
static const char *const refused_of_iterators[] = {"send", "throw", "close", NULL};

static int is_one_of(rlhf_str name, const char *const *list) {
    for (; list && *list; list++)
        if (rlhf__jinja_is(name, *list)) return 1;
    return 0;
}

static const char *const *methods_of(rlhf__value x) {
    switch (x.type) {
    case RLHF__JINJA_LIST:
        return list_methods;
    case RLHF__JINJA_DICT:
        return dict_methods;
    case RLHF__JINJA_CYCLER:
        return cycler_methods;
    case RLHF__JINJA_LOOP:
        return loop_methods;
    default:
        return NULL;
    }
}

static const char *const *refused_of(rlhf__value x) {
    switch (x.type) {
    case RLHF__JINJA_LIST:
        return refused_of_lists;
    case RLHF__JINJA_DICT:
        return refused_of_dicts;
    case RLHF__JINJA_BOOL:
    case RLHF__JINJA_INT:
    case RLHF__JINJA_BIG:
    case RLHF__JINJA_FLOAT:
        return refused_of_numbers;
    case RLHF__JINJA_MACRO:
        return refused_of_macros;
    case RLHF__JINJA_RANGE:
        return refused_of_ranges;
    case RLHF__JINJA_VIEW:
        return refused_of_views;
    case RLHF__JINJA_ITERATOR:
        return refused_of_iterators;
    default:
        return NULL;
    }
}

int rlhf__jinja_has_method(rlhf__value x, rlhf_str name) {
    if (x.type == RLHF__JINJA_STRING) return rlhf__jinja_is_string_method(name);
    const int counts = x.type == RLHF__JINJA_TUPLE || x.type == RLHF__JINJA_RANGE;
    if (counts) return rlhf__jinja_is(name, "index") || rlhf__jinja_is(name, "count");
    if (x.type == RLHF__JINJA_FUNCTION)
        return x.i == rlhf__jinja_function_find((rlhf_str){"dict", 4}) &&
               rlhf__jinja_is(name, "fromkeys");
    return is_one_of(name, methods_of(x));
}

// ---- members ----

static rlhf__value of_loop(rlhf_str name, const struct rlhf__jinja_loop *loop) {
    const size_t i = loop->at, n = loop->list->n;
    const rlhf__value none = rlhf__jinja_undefined();
    const struct {
        const char *name;
        size_t value;
    } numbers[] = {{"index0", i},
                   {"index", i + 1},
                   {"length", n},
                   {"revindex", n - i},
                   {"depth", (size_t)loop->depth},
                   {"revindex0", n - i - 1},
                   {"depth0", (size_t)loop->depth - 1}};
    if (rlhf__jinja_is(name, "first")) return rlhf__jinja_bool(i == 0);
    if (rlhf__jinja_is(name, "last")) return rlhf__jinja_bool(i + 1 == n);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (rlhf__jinja_is(name, numbers[k].name))
            return rlhf__jinja_int((int64_t)numbers[k].value);
    if (rlhf__jinja_is(name, "previtem")) return i ? loop->list->item[i - 1] : none;
    if (rlhf__jinja_is(name, "nextitem")) return i + 1 < n ? loop->list->item[i + 1] : none;
    return none;
}

// A member other than a method: real and imag of numbers, grouper of a tuple of groupby, and so on.
static rlhf__value plain_member(struct rlhf__jinja_work *w, rlhf__value x, rlhf_str name) {
    const int whole = rlhf__jinja_is_whole(x);
    if (x.type == RLHF__JINJA_LOOP) return of_loop(name, x.loop);
    if (x.type == RLHF__JINJA_CYCLER &&
        (rlhf__jinja_is(name, "current") || rlhf__jinja_is(name, "items") ||
         rlhf__jinja_is(name, "pos")))
        return rlhf__jinja_cycler(w, x, name);
    if (x.type == RLHF__JINJA_TUPLE && x.mark && rlhf__jinja_is(name, "grouper"))
        return x.list->item[0];
    if (x.type == RLHF__JINJA_TUPLE && x.mark && rlhf__jinja_is(name, "list"))
        return x.list->item[1];
    if ((whole || x.type == RLHF__JINJA_FLOAT) && rlhf__jinja_is(name, "real"))
        return whole ? rlhf__jinja_signed(w, x, 0) : x;
    if ((whole || x.type == RLHF__JINJA_FLOAT) && rlhf__jinja_is(name, "imag"))
        return whole ? rlhf__jinja_int(0) : rlhf__jinja_float(0);
    if (whole && rlhf__jinja_is(name, "numerator")) return rlhf__jinja_signed(w, x, 0);
    if (whole && rlhf__jinja_is(name, "denominator")) return rlhf__jinja_int(1);
    if (x.type == RLHF__JINJA_JOINER && rlhf__jinja_is(name, "sep")) return x.list->item[0];
    if (x.type == RLHF__JINJA_JOINER && rlhf__jinja_is(name, "used"))
        return rlhf__jinja_bool(x.list->at != 0);
    if (x.type == RLHF__JINJA_MACRO && rlhf__jinja_is(name, "name"))
        return rlhf__jinja_str(x.macro->name);
    return rlhf__jinja_undefined();
}

rlhf__value rlhf__jinja_own_attribute(struct rlhf__jinja_work *w, rlhf__value x, rlhf_str name) {
    if (rlhf__jinja_has_method(x, name)) return rlhf__jinja_bound(w, x, name);
    if (is_one_of(name, refused_of(x)) || x.type == RLHF__JINJA_METHOD ||
        x.type == RLHF__JINJA_FUNCTION)
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "the method '%.*s' of %s",
                                RLHF__JINJA_NAME(name), rlhf__jinja_kind(x));
    if (name.len > 1 && name.ptr[0] == '_' && name.ptr[1] == '_' && x.type != RLHF__JINJA_NAMESPACE)
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "the member '%.*s' of %s",
                                RLHF__JINJA_NAME(name), rlhf__jinja_kind(x));
    if (x.type == RLHF__JINJA_NAMESPACE) {
        const rlhf__value *v = rlhf__jinja_get(w, x.dict, name);
        return v ? *v : rlhf__jinja_undefined();
    }
    return plain_member(w, x, name);
}

rlhf__value rlhf__jinja_attribute(struct rlhf__jinja_work *w, rlhf__value x, rlhf_str name) {
    if (x.type == RLHF__JINJA_UNDEFINED)
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "'%.*s' of an undefined value",
                                RLHF__JINJA_NAME(name));
    const rlhf__value v = rlhf__jinja_own_attribute(w, x, name);
    if (v.type || w->state || x.type != RLHF__JINJA_DICT) return v;
    const rlhf__value *member = rlhf__jinja_get(w, x.dict, name);
    return member ? *member : rlhf__jinja_undefined();
}

rlhf__value rlhf__jinja_member(struct rlhf__jinja_work *w, rlhf__value x, rlhf__value key) {
    const rlhf__value v = rlhf__jinja_item(w, x, key);
    if (v.type || w->state || key.type != RLHF__JINJA_STRING) return v;
    if (x.type == RLHF__JINJA_DICT && rlhf__jinja_get(w, x.dict, key.s)) return v;
    return w->state ? rlhf__jinja_undefined() : rlhf__jinja_own_attribute(w, x, key.s);
}

// ---- methods ----

rlhf__value rlhf__jinja_view(struct rlhf__jinja_work *w, const struct rlhf__jinja_dict *d,
                             int which) {
    static const char *const shown[] = {"dict_items", "dict_keys", "dict_values"};
    rlhf__value list = rlhf__jinja_list(w, RLHF__JINJA_VIEW, d->n);
    for (size_t i = 0; i < d->n && !w->state; i++) {
        rlhf__value item = which == 1 ? d->pair[i].key : d->pair[i].value;
        if (which == 0) {
            item = rlhf__jinja_list(w, RLHF__JINJA_TUPLE, 2);
            rlhf__jinja_add(w, item, d->pair[i].key);
            rlhf__jinja_add(w, item, d->pair[i].value);
        }
        if (rlhf__jinja_pay(w, 1)) list.list->item[list.list->n++] = item;
    }
    if (!w->state) list.list->shown = (rlhf_str){shown[which], strlen(shown[which])};
    return list;
}

static rlhf__value of_dict(struct rlhf__jinja_work *w, rlhf__value x, rlhf_str name,
                           const struct rlhf__jinja_args *args) {
    static const char *const views[] = {"items", "keys", "values"};
    rlhf__value a[RLHF__JINJA_PARAMS_MAX];
    const int get = rlhf__jinja_is(name, "get"), from = rlhf__jinja_is(name, "fromkeys");
    if (!rlhf__jinja_bind(w, "the method", name, get || from ? "_ _=" : "", args, a))
        return rlhf__jinja_undefined();
    if (get) {
        const rlhf__value *found = rlhf__jinja_get_key(w, x.dict, a[0]);
        return found ? *found : args->n > 1 ? a[1] : rlhf__jinja_none();
    }
    for (int i = 0; i < 3; i++)
        if (rlhf__jinja_is(name, views[i])) return rlhf__jinja_view(w, x.dict, i);
    rlhf__value out = rlhf__jinja_dict(w, RLHF__JINJA_DICT, 0);
    const rlhf__value keys = rlhf__jinja_items(w, from ? a[0] : x);
    for (size_t i = 0; !w->state && i < keys.list->n; i++) {
        const rlhf__value v =
            from ? (args->n > 1 ? a[1] : rlhf__jinja_none()) : x.dict->pair[i].value;
        rlhf__jinja_put_key(w, out, keys.list->item[i], v);
    }
    return out;
}

static rlhf__value of_list(struct rlhf__jinja_work *w, rlhf__value x, rlhf_str name,
                           const struct rlhf__jinja_args *args) {
    rlhf__value a[RLHF__JINJA_PARAMS_MAX];
    const int copy = rlhf__jinja_is(name, "copy"), index = rlhf__jinja_is(name, "index");
    if (!rlhf__jinja_bind(w, "the method", name, copy ? "" : index ? "_ _= _=" : "_", args, a))
        return rlhf__jinja_undefined();
    if (copy) return rlhf__jinja_own_items(w, x);
    const int64_t n = (int64_t)x.list->n;
    int64_t from = rlhf__jinja_whole_arg(w, a[1], 0), to = rlhf__jinja_whole_arg(w, a[2], n);
    if (from < 0) from = from < -n ? 0 : from + n;
    if (to < 0) to = to < -n ? 0 : to + n;
    int64_t found = 0;
    for (int64_t i = from; i < n && i < to && !w->state; i++) {
        if (!rlhf__jinja_equal(w, x.list->item[i], a[0])) continue;
        if (index) return rlhf__jinja_int(i);
        found++;
    }
    if (!index) return rlhf__jinja_int(found);
    return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "index() of an item that is not in the list");
}

// loop.cycle() returns its first argument in the first iteration, its second argument in the second
// iteration, and so on. loop.changed() returns true if its arguments are not those of its last
// call.
static rlhf__value of_loop_method(struct rlhf__jinja_work *w, struct rlhf__jinja_loop *loop,
                                  rlhf_str name, const struct rlhf__jinja_args *args) {
    rlhf__value all = rlhf__jinja_list(w, RLHF__JINJA_TUPLE, args->n);
    for (size_t i = 0; i < args->n && !w->state; i++) {
        rlhf__jinja_add(w, all, args->value[i]);
        if (args->name[i].len)
            rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "the method '%.*s' has no argument '%.*s'",
                             RLHF__JINJA_NAME(name), RLHF__JINJA_NAME(args->name[i]));
    }
    if (w->state) return rlhf__jinja_undefined();
    if (rlhf__jinja_is(name, "changed")) {
        const int same = loop->has_changed && rlhf__jinja_equal(w, loop->changed, all);
        loop->has_changed = 1;
        loop->changed = all;
        return rlhf__jinja_bool(!same);
    }
    if (args->n) return args->value[loop->at % args->n];
    return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "cycle() of nothing");
}

rlhf__value rlhf__jinja_method(struct rlhf__jinja_work *w, rlhf__value x, rlhf_str name,
                               const struct rlhf__jinja_args *args) {
    rlhf__value a[RLHF__JINJA_PARAMS_MAX];
    switch (x.type) {
    case RLHF__JINJA_STRING:
        if (rlhf__jinja_is(name, "format"))
            return rlhf__jinja_format(w, x, args, rlhf__jinja_undefined());
        if (rlhf__jinja_is(name, "format_map")) {
            const struct rlhf__jinja_args none = {0};
            if (!rlhf__jinja_bind(w, "the method", name, "_", args, a))
                return rlhf__jinja_undefined();
            return rlhf__jinja_format(w, x, &none, a[0]);
        }
        return rlhf__jinja_string_method(w, name, x, args);
    case RLHF__JINJA_DICT:
    case RLHF__JINJA_FUNCTION: // dict.fromkeys
        return of_dict(w, x, name, args);
    case RLHF__JINJA_CYCLER:
        if (!rlhf__jinja_bind(w, "the method", name, "", args, a)) return rlhf__jinja_undefined();
        return rlhf__jinja_cycler(w, x, name);
    case RLHF__JINJA_LOOP:
        return of_loop_method(w, x.loop, name, args);
    default:
        return of_list(w, x, name, args);
    }
}
