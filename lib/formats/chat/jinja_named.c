// jinja_named.c: filters, tests and methods of jinja_value.h, by their names.
#include "chat/jinja_value.h"

#include "base/json.h"

#include <string.h>

static rlhf_str text_of(const json_t *v) {
    return (rlhf_str){json_string_value(v), json_string_length(v)};
}

static const json_t *arg(const json_t *args, size_t i) { return json_array_get(args, i); }

static json_t *not_known(struct rlhf__jinja_work *w, const char *what, const char *name,
                         const json_t *v) {
    return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "the %s '%.40s' of %s", what, name,
                            v ? rlhf__json_kind(v) : "what is undefined");
}

// ---- strings ----

// 1 when the character that ends (or, with left, begins) s is one of those in set; *n its bytes.
static int edge_in(rlhf_str s, rlhf_str set, int left, size_t *n) {
    size_t at = left ? 0 : (size_t)s.len - 1;
    while (!left && at && ((unsigned char)s.ptr[at] & 0xc0) == 0x80)
        at--;
    for (*n = 1; at + *n < s.len && ((unsigned char)s.ptr[at + *n] & 0xc0) == 0x80;)
        ++*n;
    for (size_t i = 0; i + *n <= set.len; i++)
        if (memcmp(set.ptr + i, s.ptr + at, *n) == 0) return 1;
    return 0;
}

static json_t *strip(struct rlhf__jinja_work *w, rlhf_str s, const json_t *set, int left,
                     int right) {
    size_t n;
    if (set && !json_is_null(set) && !json_is_string(set))
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "strip by %s", rlhf__json_kind(set));
    if (!json_is_string(set)) {
        s = rlhf__space_trim(s, left, right);
        return rlhf__jinja_string(w, s.ptr, (size_t)s.len);
    }
    while (left && s.len && edge_in(s, text_of(set), 1, &n)) {
        s.ptr += n;
        s.len -= n;
    }
    while (right && s.len && edge_in(s, text_of(set), 0, &n))
        s.len -= n;
    return rlhf__jinja_string(w, s.ptr, (size_t)s.len);
}

// Where `part` begins at or behind `from`; s.len + 1 = nowhere.
static size_t find(rlhf_str s, rlhf_str part, size_t from) {
    for (size_t i = from; i + part.len <= s.len; i++)
        if (memcmp(s.ptr + i, part.ptr, (size_t)part.len) == 0) return i;
    return (size_t)s.len + 1;
}

// s cut at each `part`; `with`: the pieces joined by it again.
static json_t *cut(struct rlhf__jinja_work *w, rlhf_str s, const json_t *by, const json_t *with) {
    if (!json_is_string(by) || json_string_length(by) == 0 || (with && !json_is_string(with)))
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "split or replace by %s",
                                rlhf__json_kind(by));
    rlhf_str part = text_of(by);
    struct rlhf__buf whole = RLHF__BUF_INIT;
    json_t *list = json_array();
    for (size_t from = 0, at; from <= s.len && !w->state; from = at + (size_t)part.len) {
        at = find(s, part, from);
        int last = at > s.len;
        size_t n = (last ? (size_t)s.len : at) - from;
        w->steps--;
        if (with)
            rlhf__buf_put(&whole, s.ptr + from, n);
        else
            json_array_append_new(list, rlhf__jinja_string(w, s.ptr + from, n));
        if (last) break;
        if (with) rlhf__buf_put(&whole, json_string_value(with), json_string_length(with));
        if (whole.len > (size_t)1 << 22) rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "a long text");
    }
    json_t *v = list;
    if (with) {
        v = w->state ? NULL : rlhf__jinja_string(w, rlhf__buf_text(&whole), whole.len);
        json_decref(list);
    }
    rlhf__buf_free(&whole);
    return v;
}

static json_t *letters(struct rlhf__jinja_work *w, rlhf_str s, int upper) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if ((unsigned char)c >= 0x80)
            rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "letters beyond ASCII made %s case",
                             upper ? "upper" : "lower");
        if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') c ^= 0x20;
        rlhf__buf_putc(&out, c);
    }
    json_t *v = w->state ? NULL : rlhf__jinja_string(w, rlhf__buf_text(&out), out.len);
    rlhf__buf_free(&out);
    return v;
}

static json_t *has_edge(struct rlhf__jinja_work *w, rlhf_str s, const json_t *edge, int left) {
    if (!json_is_string(edge))
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "startswith or endswith %s",
                                rlhf__json_kind(edge));
    rlhf_str e = text_of(edge);
    return json_boolean(e.len <= s.len &&
                        memcmp(left ? s.ptr : s.ptr + (s.len - e.len), e.ptr, (size_t)e.len) == 0);
}

static json_t *string_method(struct rlhf__jinja_work *w, const char *name, const json_t *v,
                             const json_t *args) {
    rlhf_str s = text_of(v);
    const json_t *a = arg(args, 0), *b = arg(args, 1);
    if (strcmp(name, "strip") == 0) return strip(w, s, a, 1, 1);
    if (strcmp(name, "lstrip") == 0) return strip(w, s, a, 1, 0);
    if (strcmp(name, "rstrip") == 0) return strip(w, s, a, 0, 1);
    if (strcmp(name, "startswith") == 0) return has_edge(w, s, a, 1);
    if (strcmp(name, "endswith") == 0) return has_edge(w, s, a, 0);
    if (strcmp(name, "split") == 0 && !b) return cut(w, s, a, NULL);
    if (strcmp(name, "replace") == 0 && b && !arg(args, 2)) return cut(w, s, a, b);
    if (strcmp(name, "upper") == 0) return letters(w, s, 1);
    if (strcmp(name, "lower") == 0) return letters(w, s, 0);
    return not_known(w, "method", name, v);
}

json_t *rlhf__jinja_method(struct rlhf__jinja_work *w, const char *name, const json_t *v,
                           const json_t *args) {
    if (json_is_string(v)) return string_method(w, name, v, args);
    if (json_is_object(v) && strcmp(name, "get") == 0 && json_is_string(arg(args, 0))) {
        json_t *found = json_object_get(v, json_string_value(arg(args, 0)));
        if (!found) found = json_array_get(args, 1);
        return found ? json_incref(found) : json_null();
    }
    return not_known(w, "method", name, v);
}

// ---- filters ----

static json_t *length(struct rlhf__jinja_work *w, const json_t *v) {
    int64_t n = 0;
    if (json_is_array(v)) return json_integer((json_int_t)json_array_size(v));
    if (json_is_object(v)) return json_integer((json_int_t)json_object_size(v));
    if (!json_is_string(v)) return not_known(w, "filter", "length", v);
    for (size_t i = 0; i < json_string_length(v); i++)
        n += ((unsigned char)json_string_value(v)[i] & 0xc0) != 0x80;
    return json_integer(n);
}

static json_t *join(struct rlhf__jinja_work *w, const json_t *list, const json_t *between) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    for (size_t i = 0; i < json_array_size(list) && out.len < (size_t)1 << 22; i++) {
        if (i) rlhf__jinja_print(w, between, &out);
        rlhf__jinja_print(w, json_array_get(list, i), &out);
    }
    json_t *v = w->state ? NULL : rlhf__jinja_string(w, rlhf__buf_text(&out), out.len);
    rlhf__buf_free(&out);
    return v;
}

json_t *rlhf__jinja_filter(struct rlhf__jinja_work *w, const char *name, const json_t *v,
                           const json_t *args) {
    size_t size = json_array_size(v);
    json_t *found;
    if (strcmp(name, "default") == 0 || strcmp(name, "d") == 0) {
        int use = !v || (rlhf__jinja_true(arg(args, 1)) && !rlhf__jinja_true(v));
        found = use ? json_array_get(args, 0) : (json_t *)(uintptr_t)v;
        return use && !found ? rlhf__jinja_string(w, "", 0) : json_incref(found);
    }
    if (strcmp(name, "length") == 0 || strcmp(name, "count") == 0) return length(w, v);
    if (strcmp(name, "join") == 0 && json_is_array(v)) return join(w, v, arg(args, 0));
    if (strcmp(name, "list") == 0 && json_is_array(v)) return json_incref((json_t *)(uintptr_t)v);
    if ((strcmp(name, "first") == 0 || strcmp(name, "last") == 0) && json_is_array(v))
        return json_incref(json_array_get(v, name[0] == 'f' || !size ? 0 : size - 1));
    if (!json_is_string(v)) return not_known(w, "filter", name, v);
    if (strcmp(name, "trim") == 0) return strip(w, text_of(v), arg(args, 0), 1, 1);
    if (strcmp(name, "string") == 0 || strcmp(name, "safe") == 0)
        return json_incref((json_t *)(uintptr_t)v);
    if (strcmp(name, "upper") == 0 || strcmp(name, "lower") == 0 || strcmp(name, "replace") == 0)
        return string_method(w, name, v, args);
    return not_known(w, "filter", name, v);
}

// ---- tests ----

json_t *rlhf__jinja_test(struct rlhf__jinja_work *w, const char *name, const json_t *v,
                         const json_t *args) {
    int many = json_is_array(v) || json_is_object(v) || json_is_string(v);
    int number = json_is_integer(v) || json_is_boolean(v);
    const struct {
        const char *name;
        int yes;
    } tests[] = {{"defined", v != NULL},
                 {"undefined", v == NULL},
                 {"none", json_is_null(v)},
                 {"string", json_is_string(v)},
                 {"mapping", json_is_object(v)},
                 {"iterable", many || !v},
                 {"sequence", many || !v},
                 {"boolean", json_is_boolean(v)},
                 {"true", json_is_true(v)},
                 {"false", json_is_false(v)},
                 {"number", number},
                 {"integer", json_is_integer(v)},
                 {"odd", json_is_integer(v) && json_integer_value(v) % 2 != 0},
                 {"even", json_is_integer(v) && json_integer_value(v) % 2 == 0}};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (strcmp(name, tests[i].name) == 0) return json_boolean(tests[i].yes);
    if (json_array_size(args) == 1) {
        if (strcmp(name, "eq") == 0 || strcmp(name, "equalto") == 0)
            return json_boolean(rlhf__jinja_equal(v, arg(args, 0)));
        if (strcmp(name, "ne") == 0) return json_boolean(!rlhf__jinja_equal(v, arg(args, 0)));
        if (strcmp(name, "in") == 0) return rlhf__jinja_binary(w, "in", v, arg(args, 0));
    }
    return not_known(w, "test", name, v);
}
