// option_list.c: see option_list.h.
#include "option/option_list.h"

#include "base/printable.h"
#include "option/nearest.h"

#include <math.h>
#include <string.h>

// ---- the items of a value ----

// Split a string at commas; "" gives the empty list. Returns a new reference, or NULL if memory
// runs out.
static json_t *split(const char *text) {
    json_t *list = json_array();
    for (const char *at = text; list && *text; at++) {
        const size_t n = strcspn(at, ",");
        if (json_array_append_new(list, json_stringn(at, n)) != 0) {
            json_decref(list);
            return NULL;
        }
        at += n;
        if (!*at) break;
    }
    return list;
}

// Reads a list from `v`. If `v` is not a list or a string, reads it from the typed text `raw`
// instead. Returns 0 if that is impossible. Otherwise returns 1 and sets *list to a new reference,
// or to NULL if memory runs out.
static int items_of(const json_t *v, const char *raw, json_t **list) {
    *list = NULL;
    if (json_is_array(v)) {
        *list = json_incref((json_t *)(uintptr_t)v);
        return 1;
    }
    const char *text = json_is_string(v) ? json_string_value(v) : raw;
    if (!text || json_is_object(v) || json_is_null(v)) return 0;
    *list = split(text);
    return 1;
}

static int is_choice(const rlhf_opt *o, const char *item) {
    size_t i = 0;
    while (o->choices && o->choices[i] && strcmp(o->choices[i], item) != 0)
        i++;
    return !o->choices || o->choices[i] != NULL;
}

int rlhf__opt_integral(const json_t *v, int64_t *out) {
    if (json_is_integer(v)) {
        *out = json_integer_value(v);
        return 1;
    }
    if (!json_is_real(v)) return 0;
    double d = json_real_value(v);
    if (!(fabs(d) <= 0x1p53) || d != floor(d)) return 0;
    *out = (int64_t)d;
    return 1;
}

int rlhf__opt_in_range(const rlhf_opt *o, double v) {
    int low = o->flags & RLHF_OPT_MIN_OPEN ? v > o->f_min : v >= o->f_min;
    int high = o->flags & RLHF_OPT_MAX_OPEN ? v < o->f_max : v <= o->f_max;
    return low && high && isfinite(v);
}

// Returns the number that an item of a list of numbers is, as a new reference. Items that were
// split from a string are strings. NULL: it is not a number.
static json_t *number_of(const json_t *item, int split_text) {
    if (!split_text) return json_is_number(item) ? json_incref((json_t *)(uintptr_t)item) : NULL;
    json_t *v =
        rlhf__json_decode(json_string_value(item), json_string_length(item), JSON_DECODE_ANY, NULL);
    if (json_is_number(v)) return v;
    json_decref(v);
    return NULL;
}

// Reads an item of a list of numbers into *whole or *real. Returns 0 if it is not allowed.
static int read_number(const rlhf_opt *o, const json_t *item, int split_text, int64_t *whole,
                       double *real) {
    json_t *v = number_of(item, split_text);
    int good = v != NULL;
    if (good && o->type == RLHF_T_I64_LIST)
        good = rlhf__opt_integral(v, whole) && *whole >= o->i_min && *whole <= o->i_max;
    *real = json_number_value(v);
    if (good && o->type == RLHF_T_F64_LIST) good = rlhf__opt_in_range(o, *real);
    json_decref(v);
    return good;
}

static int is_allowed(const rlhf_opt *o, const json_t *item, int split_text) {
    const char *text = json_string_value(item);
    int64_t whole;
    double real;
    if (o->type != RLHF_T_LIST) return read_number(o, item, split_text, &whole, &real);
    return text && is_choice(o, text) && (!split_text || *text);
}

// Returns the first item that is not allowed, or NULL if all are allowed. If `split_text` is 1, the
// list was split from a string, in which empty items, as in "a,,b", are not allowed.
static const json_t *wrong_item(const rlhf_opt *o, const json_t *list, int split_text) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!is_allowed(o, item, split_text)) return item;
    }
    return NULL;
}

int rlhf__list_read(const rlhf_opt *o, const json_t *v, const char *raw,
                    struct rlhf__strings *strings, const char *const **out) {
    json_t *list;
    if (!items_of(v, raw, &list)) return 0;
    if (!list) return -1;
    int status = 0;
    if (!wrong_item(o, list, !json_is_array(v))) {
        *out = rlhf__strings_add_list(strings, list);
        status = *out ? 1 : -1;
    }
    json_decref(list);
    return status;
}

int rlhf__numbers_read(const rlhf_opt *o, const json_t *v, const char *raw,
                       struct rlhf__strings *strings, char *at) {
    const int split_text = !json_is_array(v);
    json_t *list;
    if (!items_of(v, raw, &list)) return 0;
    if (!list) return -1;
    const size_t n = json_array_size(list);
    int status = 0;
    if (!wrong_item(o, list, split_text)) {
        union {
            int64_t *whole;
            double *real;
        } to = {rlhf__strings_room(strings, (n + 1) * sizeof(double))};
        for (size_t i = 0; to.whole && i < n; i++) {
            int64_t whole = 0;
            double real;
            read_number(o, json_array_get(list, i), split_text, &whole, &real);
            if (o->type == RLHF_T_I64_LIST)
                to.whole[i] = whole;
            else
                to.real[i] = real;
        }
        const rlhf_i64_list wholes = {to.whole, n};
        const rlhf_f64_list reals = {to.real, n};
        status = to.whole ? 1 : -1;
        if (status > 0 && o->type == RLHF_T_I64_LIST) memcpy(at, &wholes, sizeof wholes);
        if (status > 0 && o->type == RLHF_T_F64_LIST) memcpy(at, &reals, sizeof reals);
    }
    json_decref(list);
    return status;
}

// ---- messages ----

void rlhf__list_allowed(const rlhf_opt *o, struct rlhf__buf *out) {
    if (!o->choices) {
        rlhf__buf_puts(out, "a list of strings, as a,b or [\"a\", \"b\"]");
        return;
    }
    for (size_t i = 0; o->choices[i]; i++) {
        rlhf__buf_puts(out, i ? ", " : "a list of any of ");
        rlhf__put_printable(out, o->choices[i], strlen(o->choices[i]), "");
    }
}

int rlhf__list_put_wrong(const rlhf_opt *o, const json_t *v, const char *raw,
                         struct rlhf__buf *out) {
    json_t *list;
    if (!items_of(v, raw, &list) || !list) return 0;
    const json_t *item = wrong_item(o, list, !json_is_array(v));
    const char *text = json_string_value(item);
    char shown[64];
    rlhf__buf_puts(out, "a list with ");
    if (o->type != RLHF_T_LIST && !json_is_array(v) && text)
        rlhf__put_printable(out, *text ? text : "nothing", *text ? strlen(text) : 7, "");
    else if (json_is_object(item) || json_is_array(item) || !item)
        rlhf__buf_puts(out, item ? rlhf__json_kind(item) : "nothing wrong");
    else
        rlhf__json_write(out, item, 0);
    struct rlhf__nearest near = {text ? text : "", NULL, 0};
    for (size_t i = 0; o->type == RLHF_T_LIST && text && o->choices && o->choices[i]; i++)
        rlhf__nearest_offer(&near, o->choices[i]);
    rlhf__buf_puts(out, rlhf__nearest_hint(&near, shown, sizeof shown));
    json_decref(list);
    return 1;
}

// ---- lists ----

const char *const *rlhf__list_default(const rlhf_opt *o) {
    static const char *const empty[] = {NULL};
    return o->l_def ? o->l_def : empty;
}

json_t *rlhf__list_json(const char *const *list) {
    json_t *all = json_array();
    for (size_t i = 0; all && list && list[i]; i++) {
        if (json_array_append_new(all, json_string(list[i])) == 0) continue;
        json_decref(all);
        return NULL;
    }
    return all;
}

json_t *rlhf__numbers_json(const rlhf_opt *o, const char *at) {
    rlhf_i64_list whole;
    rlhf_f64_list real;
    json_t *all = json_array();
    memcpy(&whole, at, sizeof whole);
    memcpy(&real, at, sizeof real);
    for (uint64_t i = 0; all && i < whole.len; i++) {
        json_t *v =
            o->type == RLHF_T_I64_LIST ? json_integer(whole.ptr[i]) : json_real(real.ptr[i]);
        if (json_array_append_new(all, v) == 0) continue;
        json_decref(all);
        return NULL;
    }
    return all;
}

int rlhf__list_equal(const char *const *a, const char *const *b) {
    size_t i = 0;
    while (a[i] && b[i] && strcmp(a[i], b[i]) == 0)
        i++;
    return !a[i] && !b[i];
}
