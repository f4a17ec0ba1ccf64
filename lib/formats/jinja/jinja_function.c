// jinja_function.c: see jinja_function.h.
#include "jinja/jinja_function.h"

#include "values/jinja_dict.h"
#include "values/jinja_number.h"
#include "values/jinja_print.h"

#include <string.h>

// Arguments of range() beyond 64 bits are as far away as these.
static int64_t within(rlhf__value v) {
    if (v.type != RLHF__JINJA_BIG) return v.i;
    return rlhf__jinja_sign(v) < 0 ? INT64_MIN : INT64_MAX;
}

static rlhf__value range(struct rlhf__jinja_work *w, const struct rlhf__jinja_args *args) {
    rlhf__value v[RLHF__JINJA_PARAMS_MAX];
    int64_t at[3] = {0, 0, 1};
    if (!rlhf__jinja_bind(w, "the function", (rlhf_str){"range", 5}, "_ _= _=", args, v))
        return rlhf__jinja_undefined();
    for (size_t i = 0; i < args->n; i++) {
        if (!rlhf__jinja_is_whole(v[i]))
            return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a range() of %s",
                                    rlhf__jinja_kind(v[i]));
        at[args->n == 1 ? 1 : i] = within(v[i]);
    }
    if (at[2] == 0) return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a range() with step 0");
    const double n = ((double)at[1] - (double)at[0]) / (double)at[2];
    if (n > RLHF__JINJA_RANGE_MAX)
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "a range() of more than %d numbers",
                                RLHF__JINJA_RANGE_MAX);
    rlhf__value list = rlhf__jinja_list(w, RLHF__JINJA_RANGE, n > 0 ? (size_t)n + 1 : 0);
    int over = 0;
    for (int64_t i = at[0];
         !over && (at[2] > 0 ? i < at[1] : i > at[1]) && rlhf__jinja_pay(w, 1);) {
        rlhf__jinja_add(w, list, rlhf__jinja_int(i));
        over = __builtin_add_overflow(i, at[2], &i);
    }
    if (w->state) return rlhf__jinja_undefined();
    struct rlhf__buf shown = RLHF__BUF_INIT;
    rlhf__buf_printf(&shown, "range(%lld, %lld", (long long)at[0], (long long)at[1]);
    if (at[2] != 1) rlhf__buf_printf(&shown, ", %lld", (long long)at[2]);
    rlhf__buf_putc(&shown, ')');
    list.list->shown = rlhf__jinja_copied(w, rlhf__buf_text(&shown), shown.len).s;
    rlhf__buf_finish(&shown);
    return list;
}

// Adds the members of a positional argument: of an object, or of a list of pairs.
static void add_members(struct rlhf__jinja_work *w, rlhf__value out, rlhf__value v) {
    if (v.type == RLHF__JINJA_DICT) {
        for (size_t k = 0; k < v.dict->n; k++)
            rlhf__jinja_put_key(w, out, v.dict->pair[k].key, v.dict->pair[k].value);
        return;
    }
    const rlhf__value all = rlhf__jinja_items(w, v);
    for (size_t i = 0; !w->state && i < all.list->n; i++) {
        const rlhf__value pair = rlhf__jinja_items(w, all.list->item[i]);
        if (!w->state && pair.list->n != 2)
            rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "an object made of %s", rlhf__jinja_kind(v));
        if (!w->state) rlhf__jinja_put_key(w, out, pair.list->item[0], pair.list->item[1]);
    }
}

rlhf__value rlhf__jinja_object(struct rlhf__jinja_work *w, int32_t type,
                               const struct rlhf__jinja_args *args) {
    rlhf__value out = rlhf__jinja_dict(w, type, args->n);
    size_t positional = 0;
    for (size_t i = 0; i < args->n && !w->state; i++) {
        if (args->name[i].len)
            rlhf__jinja_put(w, out, args->name[i], args->value[i]);
        else if (positional++)
            rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "an object made of several others");
        else
            add_members(w, out, args->value[i]);
    }
    for (size_t i = 0; type == RLHF__JINJA_NAMESPACE && !w->state && i < out.dict->n; i++) {
        const rlhf__value key = out.dict->pair[i].key;
        if (key.type == RLHF__JINJA_STRING && key.s.len && key.s.ptr[0] == '_')
            rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "the attribute '%.*s' of a namespace",
                             RLHF__JINJA_NAME(key.s));
    }
    return out;
}

static rlhf__value cycler(struct rlhf__jinja_work *w, const struct rlhf__jinja_args *args) {
    rlhf__value out = rlhf__jinja_list(w, RLHF__JINJA_CYCLER, args->n);
    if (!args->n) return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a cycler without items");
    for (size_t i = 0; i < args->n && !w->state; i++) {
        if (args->name[i].len)
            return rlhf__jinja_stop(w, RLHF__JINJA_RAISED,
                                    "the function 'cycler' has no argument "
                                    "'%.*s'",
                                    RLHF__JINJA_NAME(args->name[i]));
        out.list->item[out.list->n++] = args->value[i];
    }
    return out;
}

rlhf__value rlhf__jinja_cycler(struct rlhf__jinja_work *w, rlhf__value c, rlhf_str name) {
    struct rlhf__jinja_list *list = c.list;
    const rlhf__value now = list->item[list->at];
    if (rlhf__jinja_is(name, "current")) return now;
    if (rlhf__jinja_is(name, "pos")) return rlhf__jinja_int((int64_t)list->at);
    if (rlhf__jinja_is(name, "items")) {
        rlhf__value items = rlhf__jinja_list(w, RLHF__JINJA_TUPLE, list->n);
        for (size_t i = 0; i < list->n && !w->state; i++)
            items.list->item[items.list->n++] = list->item[i];
        return items;
    }
    list->at = rlhf__jinja_is(name, "reset") ? 0 : (list->at + 1) % list->n;
    return rlhf__jinja_is(name, "reset") ? rlhf__jinja_none() : now;
}

rlhf__value rlhf__jinja_joiner(struct rlhf__jinja_work *w, rlhf__value joiner,
                               const struct rlhf__jinja_args *args) {
    rlhf__value none[RLHF__JINJA_PARAMS_MAX];
    if (!rlhf__jinja_bind(w, "the function", (rlhf_str){"joiner", 6}, "", args, none))
        return rlhf__jinja_undefined();
    const size_t used = joiner.list->at;
    joiner.list->at = 1;
    return used ? joiner.list->item[0] : rlhf__jinja_empty();
}

static rlhf__value raise(struct rlhf__jinja_work *w, const struct rlhf__jinja_args *args) {
    rlhf__value v[RLHF__JINJA_PARAMS_MAX];
    if (!rlhf__jinja_bind(w, "the function", (rlhf_str){"raise_exception", 15}, "message", args, v))
        return rlhf__jinja_undefined();
    const rlhf__value said = v[0].type ? rlhf__jinja_text(w, v[0]) : rlhf__jinja_empty();
    const rlhf_str s = w->state ? (rlhf_str){"", 0} : said.s;
    return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "%.*s", (int)(s.len < 250 ? s.len : 250), s.ptr);
}

static const char *const names[] = {"",       "raise_exception", "range",  "dict", "namespace",
                                    "cycler", "joiner",          "lipsum", "self"};

int32_t rlhf__jinja_function_find(rlhf_str name) {
    for (size_t i = 1; i < sizeof names / sizeof *names; i++)
        if (rlhf__jinja_is(name, names[i])) return (int32_t)i;
    return 0;
}

rlhf__value rlhf__jinja_function(struct rlhf__jinja_work *w, int32_t which,
                                 const struct rlhf__jinja_args *args) {
    rlhf__value v[RLHF__JINJA_PARAMS_MAX], out;
    switch (which) {
    case 1:
        return raise(w, args);
    case 2:
        return range(w, args);
    case 3:
        return rlhf__jinja_object(w, RLHF__JINJA_DICT, args);
    case 4:
        return rlhf__jinja_object(w, RLHF__JINJA_NAMESPACE, args);
    case 5:
        return cycler(w, args);
    case 6:
        if (!rlhf__jinja_bind(w, "the function", (rlhf_str){"joiner", 6}, "sep=", args, v))
            return rlhf__jinja_undefined();
        out = rlhf__jinja_list(w, RLHF__JINJA_JOINER, 1);
        if (!w->state) out.list->item[0] = args->n ? v[0] : rlhf__jinja_str((rlhf_str){", ", 2});
        return out;
    default:
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "the function '%s'", names[which]);
    }
}
