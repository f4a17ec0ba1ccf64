// jinja_filter.c: see jinja_filter.h.
#include "jinja/jinja_filter.h"

#include "jinja/jinja_method.h"
#include "values/jinja_dict.h"
#include "values/jinja_number.h"
#include "values/jinja_numeral.h"
#include "values/jinja_operator.h"
#include "values/jinja_percent.h"
#include "values/jinja_print.h"
#include "values/jinja_spec.h"
#include "values/jinja_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rlhf__jinja_filtering filtering;

static rlhf__value raised(filtering *f) { return rlhf__jinja_filter_fails(f, RLHF__JINJA_RAISED); }

static rlhf__value f_default(filtering *f) {
    if (f->v.type != RLHF__JINJA_UNDEFINED &&
        (!rlhf__jinja_true(f->a[1]) || rlhf__jinja_true(f->v)))
        return f->v;
    return f->args->n ? f->a[0] : rlhf__jinja_empty();
}

static rlhf__value f_length(filtering *f) {
    if (f->v.type == RLHF__JINJA_UNDEFINED) return rlhf__jinja_int(0);
    if (f->v.type == RLHF__JINJA_STRING)
        return rlhf__jinja_int(rlhf__jinja_characters(f->w, f->v.s));
    if (f->v.type == RLHF__JINJA_DICT) return rlhf__jinja_int((int64_t)f->v.dict->n);
    if (f->v.type == RLHF__JINJA_LOOP) return rlhf__jinja_int((int64_t)f->v.loop->list->n);
    if (rlhf__jinja_is_list(f->v) || f->v.type == RLHF__JINJA_VIEW)
        return rlhf__jinja_int((int64_t)f->v.list->n);
    return raised(f);
}

static rlhf__value f_string(filtering *f) {
    return f->v.type ? rlhf__jinja_text(f->w, f->v) : rlhf__jinja_empty();
}

static rlhf__value f_tojson(filtering *f) {
    const rlhf__value indent = f->a[1], parts = f->a[2];
    struct rlhf__jinja_json how = {.lines = indent.type > RLHF__JINJA_NONE,
                                   .ascii = rlhf__jinja_true(f->a[0]),
                                   .sorted = rlhf__jinja_true(f->a[3])};
    if (indent.type == RLHF__JINJA_STRING) {
        how.indent = indent.s;
    } else if (how.lines) {
        const int64_t n = rlhf__jinja_whole_arg(f->w, indent, 0);
        const rlhf_str space = {" ", 1};
        const rlhf__value spaces = rlhf__jinja_spec_padded(f->w, (rlhf_str){"", 0}, space, '>', n);
        if (f->w->state) return rlhf__jinja_undefined();
        how.indent = spaces.s;
    }
    if (parts.type > RLHF__JINJA_NONE) {
        const rlhf__value two = rlhf__jinja_items(f->w, parts);
        if (f->w->state || two.list->n != 2 || two.list->item[0].type != RLHF__JINJA_STRING ||
            two.list->item[1].type != RLHF__JINJA_STRING)
            return raised(f);
        how.item = two.list->item[0].s;
        how.key = two.list->item[1].s;
    }
    return rlhf__jinja_tojson(f->w, f->v, &how);
}

static rlhf__value f_int(filtering *f) {
    const rlhf__value otherwise = f->args->n && f->a[0].type ? f->a[0] : rlhf__jinja_int(0);
    const int64_t base = rlhf__jinja_whole_arg(f->w, f->a[1], 10);
    rlhf__value v = f->v;
    if (v.type == RLHF__JINJA_UNDEFINED) return raised(f);
    if (rlhf__jinja_is_whole(v)) return rlhf__jinja_signed(f->w, v, 0);
    if (v.type == RLHF__JINJA_FLOAT)
        return isnan(v.f) ? otherwise : rlhf__jinja_truncated(f->w, v.f);
    if (v.type != RLHF__JINJA_STRING) return otherwise;
    v = rlhf__numeral_int(f->w, f->v.s, base);
    if (v.type || f->w->state) return v;
    v = rlhf__numeral_float(f->w, f->v.s);
    return v.type && isfinite(v.f) ? rlhf__jinja_truncated(f->w, v.f) : otherwise;
}

static rlhf__value f_float(filtering *f) {
    const rlhf__value otherwise = f->args->n && f->a[0].type ? f->a[0] : rlhf__jinja_float(0);
    if (f->v.type == RLHF__JINJA_UNDEFINED) return raised(f);
    if (rlhf__jinja_is_number(f->v)) return rlhf__jinja_float(rlhf__jinja_real(f->w, f->v));
    if (f->v.type != RLHF__JINJA_STRING) return otherwise;
    const rlhf__value v = rlhf__numeral_float(f->w, f->v.s);
    return v.type ? v : otherwise;
}

static rlhf__value f_abs(filtering *f) {
    if (f->v.type == RLHF__JINJA_FLOAT) return rlhf__jinja_float(fabs(f->v.f));
    if (!rlhf__jinja_is_whole(f->v)) return raised(f);
    return rlhf__jinja_signed(f->w, f->v, rlhf__jinja_sign(f->v) < 0);
}

// ---- rounding ----

// Rounds a float to a multiple of 10^places, to the even one if two are equally near.
static double to_multiple(double v, int places) {
    char text[40];
    snprintf(text, sizeof text, "%.16e", fabs(v));
    const int exponent = atoi(strchr(text, 'e') + 1), digits = exponent - places;
    if (digits < -1 || exponent < 0) return copysign(0, v);
    if (digits < 0) { // less than one multiple: 0 or 1 of them
        snprintf(text, sizeof text, "5e%d", places - 1);
        const double half = strtod(text, NULL);
        snprintf(text, sizeof text, "1e%d", places);
        return copysign(fabs(v) > half ? strtod(text, NULL) : 0, v);
    }
    snprintf(text, sizeof text, "%.*e", digits < 17 ? digits : 17, v);
    return strtod(text, NULL);
}

static rlhf__value whole_to_multiple(struct rlhf__jinja_work *w, rlhf__value v, int64_t places) {
    if (places > RLHF__JINJA_DIGITS_MAX) return rlhf__jinja_int(0);
    const rlhf__value unit = rlhf__jinja_whole(w, RLHF__JINJA_OP_POW, rlhf__jinja_int(10),
                                               rlhf__jinja_int(places)),
                      two = rlhf__jinja_int(2);
    const rlhf__value rest = rlhf__jinja_whole(w, RLHF__JINJA_OP_MOD, v, unit);
    rlhf__value down = rlhf__jinja_whole(w, RLHF__JINJA_OP_SUB, v, rest);
    const rlhf__value count = rlhf__jinja_whole(w, RLHF__JINJA_OP_FLOOR, down, unit),
                      odd = rlhf__jinja_whole(w, RLHF__JINJA_OP_MOD, count, two),
                      twice = rlhf__jinja_whole(w, RLHF__JINJA_OP_MUL, rest, two);
    if (w->state) return rlhf__jinja_undefined();
    const int order = rlhf__jinja_compare(twice, unit);
    if (order > 0 || (order == 0 && odd.i))
        down = rlhf__jinja_whole(w, RLHF__JINJA_OP_ADD, down, unit);
    return down;
}

static rlhf__value rounded(filtering *f, int64_t places) {
    char text[800];
    if (rlhf__jinja_is_whole(f->v))
        return places >= 0 ? rlhf__jinja_signed(f->w, f->v, 0)
                           : whole_to_multiple(f->w, f->v, places < -5000 ? 5000 : -places);
    if (f->v.type != RLHF__JINJA_FLOAT) return raised(f);
    if (!isfinite(f->v.f) || places > 330) return f->v;
    if (places < 0)
        return rlhf__jinja_float(to_multiple(f->v.f, places < -400 ? 400 : (int)-places));
    snprintf(text, sizeof text, "%.*f", (int)places, f->v.f);
    return rlhf__jinja_float(strtod(text, NULL));
}

// ceil or floor of v * 10^places, divided by 10^places
static rlhf__value f_round(filtering *f) {
    const int64_t places = rlhf__jinja_whole_arg(f->w, f->a[0], 0);
    const rlhf__value how = f->a[1];
    const int given = how.type != RLHF__JINJA_UNDEFINED, text = how.type == RLHF__JINJA_STRING,
              up = text && rlhf__jinja_is(how.s, "ceil"),
              down = text && rlhf__jinja_is(how.s, "floor");
    if (f->w->state || (given && !up && !down && !(text && rlhf__jinja_is(how.s, "common"))))
        return raised(f);
    if (!up && !down) return rounded(f, places);
    const rlhf__value unit =
        rlhf__jinja_binary(f->w, RLHF__JINJA_OP_POW, rlhf__jinja_int(10), rlhf__jinja_int(places));
    rlhf__value v = rlhf__jinja_binary(f->w, RLHF__JINJA_OP_MUL, f->v, unit);
    if (f->w->state) return rlhf__jinja_undefined();
    if (!rlhf__jinja_is_number(v)) return raised(f);
    if (v.type == RLHF__JINJA_FLOAT) v = rlhf__jinja_truncated(f->w, up ? ceil(v.f) : floor(v.f));
    return f->w->state ? v : rlhf__jinja_binary(f->w, RLHF__JINJA_OP_DIV, v, unit);
}

// ---- others ----

// '%s' | format(v), as v is one argument or several, or has names
static rlhf__value f_format(filtering *f) {
    rlhf__value values = rlhf__jinja_list(f->w, RLHF__JINJA_TUPLE, f->args->n),
                named = rlhf__jinja_dict(f->w, RLHF__JINJA_DICT, 0), text = f_string(f);
    for (size_t i = 0; i < f->args->n && !f->w->state; i++) {
        if (f->args->name[i].len)
            rlhf__jinja_put(f->w, named, f->args->name[i], f->args->value[i]);
        else
            rlhf__jinja_add(f->w, values, f->args->value[i]);
    }
    if (f->w->state) return rlhf__jinja_undefined();
    if (values.list->n && named.dict->n) return raised(f);
    return rlhf__jinja_percent(f->w, text, named.dict->n ? named : values);
}

static rlhf__value f_attr(filtering *f) {
    if (f->a[0].type != RLHF__JINJA_STRING || f->v.type == RLHF__JINJA_UNDEFINED) return raised(f);
    return rlhf__jinja_own_attribute(f->w, f->v, f->a[0].s);
}

static rlhf__value f_items(filtering *f) {
    if (f->v.type != RLHF__JINJA_DICT && f->v.type != RLHF__JINJA_UNDEFINED) return raised(f);
    rlhf__value out = f->v.type ? rlhf__jinja_view(f->w, f->v.dict, 0)
                                : rlhf__jinja_list(f->w, RLHF__JINJA_LIST, 0);
    out.type = f->w->state ? RLHF__JINJA_UNDEFINED : RLHF__JINJA_ITERATOR;
    return out;
}

// ---- by name ----

static const struct rlhf__jinja_filter_row value_filters[] = {
    {"default", "default_value= boolean=", f_default},
    {"d", "default_value= boolean=", f_default},
    {"length", "", f_length},
    {"count", "", f_length},
    {"tojson", "ensure_ascii= indent= separators= sort_keys=", f_tojson},
    {"string", "", f_string},
    {"int", "default= base=", f_int},
    {"float", "default=", f_float},
    {"abs", "", f_abs},
    {"round", "precision= method=", f_round},
    {"format", NULL, f_format},
    {"attr", "name", f_attr},
    {"items", "", f_items},
    {"pprint", "", NULL},
    {NULL, NULL, NULL}};

static const struct rlhf__jinja_filter_row *const tables[] = {
    value_filters, rlhf__jinja_list_filters, rlhf__jinja_text_filters};
enum { TABLES = 3, TABLE_ROWS_MAX = 100 };

int32_t rlhf__jinja_filter_find(rlhf_str name) {
    for (int32_t t = 0; t < TABLES; t++)
        for (int32_t i = 0; tables[t][i].name; i++)
            if (rlhf__jinja_is(name, tables[t][i].name)) return 1 + t * TABLE_ROWS_MAX + i;
    return 0;
}

rlhf__value rlhf__jinja_filter(struct rlhf__jinja_work *w, int32_t which, rlhf_str name,
                               rlhf__value v, const struct rlhf__jinja_args *args, int32_t depth) {
    filtering f = {.w = w, .name = name, .v = v, .args = args, .depth = depth};
    const struct rlhf__jinja_filter_row *row =
        which ? &tables[(which - 1) / TABLE_ROWS_MAX][(which - 1) % TABLE_ROWS_MAX] : NULL;
    if (!row || !row->run) return rlhf__jinja_filter_fails(&f, RLHF__JINJA_UNKNOWN);
    if (row->params && !rlhf__jinja_bind(w, "the filter", name, row->params, args, f.a))
        return rlhf__jinja_undefined();
    const rlhf__value out = row->run(&f);
    return w->state ? rlhf__jinja_undefined() : out;
}
