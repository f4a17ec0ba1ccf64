// option_list.c: see option_list.h.
#include "option/option_list.h"

#include "base/nearest.h"
#include "base/printable.h"

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

// Returns the first item that is not allowed, or NULL if all are allowed. If `split_text` is 1, the
// list was split from a string, in which empty items, as in "a,,b", are not allowed.
static const json_t *wrong_item(const rlhf_opt *o, const json_t *list, int split_text) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *text = json_string_value(item);
        if (!text || !is_choice(o, text) || (split_text && !*text)) return item;
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
    if (json_is_object(item) || json_is_array(item) || !item)
        rlhf__buf_puts(out, item ? rlhf__json_kind(item) : "nothing wrong");
    else
        rlhf__json_write(out, item, 0);
    struct rlhf__nearest near = {text ? text : "", NULL, 0};
    for (size_t i = 0; text && o->choices && o->choices[i]; i++)
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

int rlhf__list_equal(const char *const *a, const char *const *b) {
    size_t i = 0;
    while (a[i] && b[i] && strcmp(a[i], b[i]) == 0)
        i++;
    return !a[i] && !b[i];
}
