// jinja_dict.c: see jinja_dict.h.
#include "values/jinja_dict.h"

#include "values/jinja_number.h"

#include <string.h>

// ---- equal values ----

static int equal_in(struct rlhf__jinja_work *w, rlhf__value a, rlhf__value b, int depth) {
    if (depth > RLHF__JINJA_LEVELS_MAX)
        rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "too many levels (%d)", RLHF__JINJA_LEVELS_MAX);
    if (!rlhf__jinja_pay(w, 1)) return 0;
    if (rlhf__jinja_is_number(a) && rlhf__jinja_is_number(b)) return rlhf__jinja_compare(a, b) == 0;
    if (a.type != b.type) return 0;
    int same = 1;
    switch (a.type) {
    case RLHF__JINJA_STRING:
        return a.s.len == b.s.len && rlhf__jinja_pay(w, (size_t)a.s.len) &&
               rlhf__jinja_same(a.s, b.s);
    case RLHF__JINJA_LIST:
    case RLHF__JINJA_TUPLE:
    case RLHF__JINJA_RANGE:
        same = a.list->n == b.list->n;
        for (size_t i = 0; same && i < a.list->n; i++)
            same = equal_in(w, a.list->item[i], b.list->item[i], depth + 1);
        return same;
    case RLHF__JINJA_DICT:
        same = a.dict->n == b.dict->n;
        for (size_t i = 0; same && i < a.dict->n; i++) {
            const rlhf__value *v = rlhf__jinja_get_key(w, b.dict, a.dict->pair[i].key);
            same = v && equal_in(w, a.dict->pair[i].value, *v, depth + 1);
        }
        return same;
    case RLHF__JINJA_NAMESPACE:
        return a.dict == b.dict;
    case RLHF__JINJA_LOOP:
        return a.loop == b.loop;
    case RLHF__JINJA_MACRO:
        return a.macro == b.macro;
    case RLHF__JINJA_FUNCTION:
        return a.i == b.i;
    case RLHF__JINJA_UNDEFINED:
    case RLHF__JINJA_NONE:
    case RLHF__JINJA_DATE:
        return 1;
    case RLHF__JINJA_ITERATOR:
    case RLHF__JINJA_CYCLER:
    case RLHF__JINJA_JOINER:
        return a.list == b.list;
    default:
        rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "%s == %s", rlhf__jinja_kind(a),
                         rlhf__jinja_kind(b));
        return 0;
    }
}

int rlhf__jinja_equal(struct rlhf__jinja_work *w, rlhf__value a, rlhf__value b) {
    return equal_in(w, a, b, 0);
}

// ---- members ----

rlhf__value rlhf__jinja_dict(struct rlhf__jinja_work *w, int32_t type, size_t cap) {
    struct rlhf__jinja_dict *dict = rlhf__jinja_alloc(w, sizeof *dict);
    if (!dict) return rlhf__jinja_undefined();
    *dict = (struct rlhf__jinja_dict){.cap = cap};
    if (cap) dict->pair = rlhf__jinja_alloc(w, cap * sizeof *dict->pair);
    if (cap && !dict->pair) return rlhf__jinja_undefined();
    return (rlhf__value){.type = type, .dict = dict};
}

static int is_hashable(struct rlhf__jinja_work *w, rlhf__value v, int depth) {
    if (v.type == RLHF__JINJA_LIST || v.type == RLHF__JINJA_DICT || v.type == RLHF__JINJA_VIEW)
        return 0;
    if (depth > RLHF__JINJA_LEVELS_MAX)
        rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "too many levels (%d)", RLHF__JINJA_LEVELS_MAX);
    for (size_t i = 0; v.type == RLHF__JINJA_TUPLE && i < v.list->n && rlhf__jinja_pay(w, 1); i++)
        if (!is_hashable(w, v.list->item[i], depth + 1)) return 0;
    return 1;
}

// The index of a key, or d->n if the key is missing.
static size_t place_of(struct rlhf__jinja_work *w, const struct rlhf__jinja_dict *d,
                       rlhf__value key) {
    size_t i = 0, bytes = 0;
    if (!is_hashable(w, key, 0)) {
        rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "%s as a key", rlhf__jinja_kind(key));
        return d->n;
    }
    for (; i < d->n && !w->state; i++) {
        const rlhf__value k = d->pair[i].key;
        bytes += 16;
        if (key.type != RLHF__JINJA_STRING) {
            if (rlhf__jinja_equal(w, k, key)) break;
            continue;
        }
        if (k.type != RLHF__JINJA_STRING) continue;
        bytes += k.s.len == key.s.len ? (size_t)key.s.len : 0;
        if (rlhf__jinja_same(k.s, key.s)) break;
    }
    return rlhf__jinja_pay(w, bytes) ? i : d->n;
}

void rlhf__jinja_put_key(struct rlhf__jinja_work *w, rlhf__value v, rlhf__value key,
                         rlhf__value item) {
    if (w->state || !rlhf__jinja_is_dict(v)) return;
    struct rlhf__jinja_dict *d = v.dict;
    const size_t i = place_of(w, d, key);
    if (w->state) return;
    if (i < d->n) {
        d->pair[i].value = item;
        return;
    }
    if (d->n == d->cap) {
        const size_t cap = d->cap ? 2 * d->cap : 4;
        struct rlhf__jinja_pair *grown = rlhf__jinja_alloc(w, cap * sizeof *grown);
        if (!grown) return;
        if (d->n) memcpy(grown, d->pair, d->n * sizeof *grown);
        d->pair = grown;
        d->cap = cap;
    }
    d->pair[d->n++] = (struct rlhf__jinja_pair){key, item};
}

void rlhf__jinja_put(struct rlhf__jinja_work *w, rlhf__value v, rlhf_str key, rlhf__value item) {
    rlhf__jinja_put_key(w, v, rlhf__jinja_str(key), item);
}

const rlhf__value *rlhf__jinja_get_key(struct rlhf__jinja_work *w, const struct rlhf__jinja_dict *d,
                                       rlhf__value key) {
    const size_t i = place_of(w, d, key);
    return i < d->n && !w->state ? &d->pair[i].value : NULL;
}

const rlhf__value *rlhf__jinja_get(struct rlhf__jinja_work *w, const struct rlhf__jinja_dict *d,
                                   rlhf_str key) {
    return rlhf__jinja_get_key(w, d, rlhf__jinja_str(key));
}
