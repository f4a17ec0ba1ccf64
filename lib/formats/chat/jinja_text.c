// jinja_text.c: see jinja_text.h.
#include "chat/jinja_text.h"

#include "base/printable.h"
#include "chat/jinja_print.h"

#include <string.h>

rlhf__value rlhf__jinja_arg(const struct rlhf__jinja_args *a, size_t i, const char *name) {
    for (size_t k = 0, place = 0; k < a->n; k++) {
        if (a->name[k].len ? rlhf__jinja_is(a->name[k], name) : place == i) return a->value[k];
        place += a->name[k].len == 0;
    }
    return rlhf__jinja_undefined();
}

// ---- white space ----

static int is_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

// Returns the length in bytes of the first character of s if it is white space, otherwise 0.
static size_t space_at(rlhf_str s) {
    uint32_t c = 0;
    const size_t n = s.len ? rlhf__char_at(s.ptr, (size_t)s.len, &c) : 0;
    return n && is_space(c) ? n : 0;
}

rlhf_str rlhf__space_trim(rlhf_str s, int left, int right) {
    for (size_t n; left && (n = space_at(s)) > 0; s.len -= n)
        s.ptr += n;
    while (right && s.len) {
        uint32_t c = 0;
        const size_t back = (size_t)s.len - rlhf__utf8_floor(s.ptr, (size_t)s.len - 1);
        if (rlhf__char_at(s.ptr + s.len - back, back, &c) != back || !is_space(c)) break;
        s.len -= back;
    }
    return s;
}

// Returns 1 if the character at one end of s is in `set`: at the beginning if `left` is 1,
// otherwise at the end. Sets *n to the length of that character in bytes.
static int edge_in(rlhf_str s, rlhf_str set, int left, size_t *n) {
    const size_t at = left ? 0 : rlhf__utf8_floor(s.ptr, (size_t)s.len - 1);
    for (*n = 1; at + *n < s.len && ((unsigned char)s.ptr[at + *n] & 0xc0) == 0x80;)
        ++*n;
    return memmem(set.ptr, (size_t)set.len, s.ptr + at, *n) != NULL;
}

static rlhf__value strip(struct rlhf__jinja_work *w, rlhf_str s, rlhf__value set, int left,
                         int right) {
    size_t n;
    if (set.type <= RLHF__JINJA_NONE) {
        const rlhf_str rest = rlhf__space_trim(s, left, right);
        rlhf__jinja_pay(w, (size_t)(s.len - rest.len));
        return rlhf__jinja_str(rest);
    }
    if (set.type != RLHF__JINJA_STRING)
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "strip by %s", rlhf__jinja_kind(set));
    for (; left && s.len && edge_in(s, set.s, 1, &n) && rlhf__jinja_pay(w, (size_t)set.s.len);
         s.len -= n)
        s.ptr += n;
    while (right && s.len && edge_in(s, set.s, 0, &n) && rlhf__jinja_pay(w, (size_t)set.s.len))
        s.len -= n;
    return rlhf__jinja_str(s);
}

// ---- parts ----

// Returns the offset of the first occurrence of `part` in s or, if `last` is 1, of the last
// occurrence. Returns s.len if s does not contain `part`. `part` must not be empty.
static size_t find(struct rlhf__jinja_work *w, rlhf_str s, rlhf_str part, int last) {
    size_t found = (size_t)s.len;
    if (!rlhf__jinja_pay(w, (size_t)s.len) || !part.len) return found;
    for (size_t at = 0; at + part.len <= s.len; at = found + 1) {
        const char *p = memmem(s.ptr + at, (size_t)s.len - at, part.ptr, (size_t)part.len);
        if (!p) break;
        found = (size_t)(p - s.ptr);
        if (!last || !rlhf__jinja_pay(w, 1)) break;
    }
    return found;
}

// Splits s at the separator `by`, as Python's split() does or, if from_right is 1, as rsplit()
// does. Makes at most `most` splits; a negative `most` means no limit.
static rlhf__value split(struct rlhf__jinja_work *w, rlhf_str s, rlhf_str by, int64_t most,
                         int from_right) {
    rlhf__value list = rlhf__jinja_list(w, RLHF__JINJA_LIST, 4);
    for (size_t at; most != 0 && !w->state; most--) {
        if ((at = find(w, s, by, from_right)) == s.len) break;
        const rlhf_str left = {s.ptr, at}, right = {s.ptr + at + by.len, s.len - at - by.len};
        rlhf__jinja_add(w, list, rlhf__jinja_str(from_right ? right : left));
        s = from_right ? left : right;
    }
    rlhf__jinja_add(w, list, rlhf__jinja_str(s));
    for (size_t i = 0; from_right && !w->state && i < list.list->n / 2; i++) {
        rlhf__value *a = &list.list->item[i], *b = &list.list->item[list.list->n - 1 - i], c = *a;
        *a = *b;
        *b = c;
    }
    return list;
}

// split() at white space.
static rlhf__value words(struct rlhf__jinja_work *w, rlhf_str s, int64_t most) {
    rlhf__value list = rlhf__jinja_list(w, RLHF__JINJA_LIST, 4);
    if (!rlhf__jinja_pay(w, (size_t)s.len)) return list;
    s = rlhf__space_trim(s, 1, 0);
    for (; s.len && most != 0 && rlhf__jinja_pay(w, 1); most--) {
        size_t n = 0;
        while (n < s.len && !space_at((rlhf_str){s.ptr + n, s.len - n}))
            n++;
        rlhf__jinja_add(w, list, rlhf__jinja_str((rlhf_str){s.ptr, n}));
        s = rlhf__space_trim((rlhf_str){s.ptr + n, s.len - n}, 1, 0);
    }
    if (s.len) rlhf__jinja_add(w, list, rlhf__jinja_str(rlhf__space_trim(s, 0, 1)));
    return list;
}

static rlhf__value lines(struct rlhf__jinja_work *w, rlhf_str s) {
    rlhf__value list = rlhf__jinja_list(w, RLHF__JINJA_LIST, 4);
    if (!rlhf__jinja_pay(w, (size_t)s.len)) return list;
    while (s.len && rlhf__jinja_pay(w, 1)) {
        size_t n = 0, end;
        while (n < s.len && s.ptr[n] != '\n' && s.ptr[n] != '\r')
            n++;
        end = n + (n < s.len) + (n + 1 < s.len && s.ptr[n] == '\r' && s.ptr[n + 1] == '\n');
        rlhf__jinja_add(w, list, rlhf__jinja_str((rlhf_str){s.ptr, n}));
        s = (rlhf_str){s.ptr + end, s.len - end};
    }
    return list;
}

static rlhf__value replace(struct rlhf__jinja_work *w, rlhf_str s, rlhf_str part, rlhf_str with,
                           int64_t most) {
    rlhf__value out = rlhf__jinja_str((rlhf_str){"", 0});
    if (!part.len) return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "replace of an empty string");
    for (size_t at; most != 0 && !w->state; most--) {
        if ((at = find(w, s, part, 0)) == s.len) break;
        out = rlhf__jinja_joined(w, out.s, (rlhf_str){s.ptr, at});
        if (!w->state) out = rlhf__jinja_joined(w, out.s, with);
        s = (rlhf_str){s.ptr + at + part.len, s.len - at - part.len};
    }
    return w->state ? rlhf__jinja_undefined() : rlhf__jinja_joined(w, out.s, s);
}

// ---- letters ----

static int is_lower(char c) { return c >= 'a' && c <= 'z'; }
static int is_upper(char c) { return c >= 'A' && c <= 'Z'; }

enum letters { UPPER, LOWER, TITLE, CAPITAL };

static rlhf__value letters(struct rlhf__jinja_work *w, rlhf_str s, enum letters how) {
    static const char *const names[] = {"upper case", "lower case", "a title", "a capital"};
    rlhf__value v = rlhf__jinja_copied(w, s.ptr, (size_t)s.len);
    char *out = (char *)(uintptr_t)v.s.ptr, before = 0;
    if (!rlhf__jinja_pay(w, (size_t)s.len) || !out) return rlhf__jinja_undefined();
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        const int inside = is_lower(before) || is_upper(before);
        const int up = how == UPPER || (how == TITLE && !inside) || (how == CAPITAL && i == 0);
        if ((unsigned char)c >= 0x80)
            return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "letters beyond ASCII made %s",
                                    names[how]);
        before = c;
        out[i] = (up ? is_lower(c) : is_upper(c)) ? (char)(c ^ 0x20) : c;
    }
    return v;
}

// isdigit(), isalpha(), isalnum() and isspace(), for ASCII.
static int all_of(struct rlhf__jinja_work *w, rlhf_str s, int digits, int alphas, int spaces) {
    if (!rlhf__jinja_pay(w, (size_t)s.len)) return 0;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (!((digits && c >= '0' && c <= '9') || (alphas && (is_lower(c) || is_upper(c))) ||
              (spaces && is_space((unsigned char)c))))
            return 0;
    }
    return s.len > 0;
}

// ---- methods ----

// If `left` is 1, returns 1 if s begins with `edge`; if `left` is 0, returns 1 if s ends with it.
// If `edge` is a tuple of strings, one of them is enough.
static int has_edge(struct rlhf__jinja_work *w, rlhf_str s, rlhf__value edge, int left) {
    int yes = 0;
    for (size_t i = 0; edge.type == RLHF__JINJA_TUPLE && i < edge.list->n && rlhf__jinja_pay(w, 1);
         i++)
        yes |= edge.list->item[i].type == RLHF__JINJA_STRING &&
               has_edge(w, s, edge.list->item[i], left);
    if (edge.type == RLHF__JINJA_TUPLE) return yes;
    if (edge.type != RLHF__JINJA_STRING) {
        rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "startswith or endswith %s",
                         rlhf__jinja_kind(edge));
        return 0;
    }
    const rlhf_str e = edge.s;
    return e.len <= s.len && rlhf__jinja_pay(w, (size_t)e.len) &&
           rlhf__jinja_same((rlhf_str){left ? s.ptr : s.ptr + (s.len - e.len), e.len}, e);
}

static rlhf__value joined_list(struct rlhf__jinja_work *w, rlhf_str between, rlhf__value list) {
    rlhf__value all = rlhf__jinja_items(w, list), out = rlhf__jinja_str((rlhf_str){"", 0});
    for (size_t i = 0; !w->state && i < all.list->n && rlhf__jinja_pay(w, 1); i++) {
        if (i) out = rlhf__jinja_joined(w, out.s, between);
        const rlhf__value text = rlhf__jinja_text(w, all.list->item[i]);
        if (!w->state && text.type == RLHF__JINJA_STRING)
            out = rlhf__jinja_joined(w, out.s, text.s);
    }
    return w->state ? rlhf__jinja_undefined() : out;
}

static int64_t count(struct rlhf__jinja_work *w, rlhf_str s, rlhf_str part) {
    int64_t n = 0;
    for (size_t at; part.len && (at = find(w, s, part, 0)) < s.len; n++)
        s = (rlhf_str){s.ptr + at + part.len, s.len - at - part.len};
    return n;
}

// The number of characters before the byte at offset `at`.
static int64_t characters(rlhf_str s, size_t at) {
    int64_t n = 0;
    for (size_t i = 0; i < at && i < s.len; i++)
        n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return n;
}

// Calls one of the methods that take a string.
static rlhf__value with_part(struct rlhf__jinja_work *w, rlhf_str name, rlhf_str s,
                             const struct rlhf__jinja_args *args, int *known) {
    const rlhf__value a = rlhf__jinja_arg(args, 0, "sep"), b = rlhf__jinja_arg(args, 1, "maxsplit"),
                      c = rlhf__jinja_arg(args, 2, "count");
    const int64_t most = b.type == RLHF__JINJA_INT ? b.i : -1;
    const int right = name.len && name.ptr[0] == 'r';
    if ((rlhf__jinja_is(name, "split") || rlhf__jinja_is(name, "rsplit")) &&
        a.type <= RLHF__JINJA_NONE && (!right || most < 0))
        return words(w, s, most);
    if (a.type != RLHF__JINJA_STRING) {
        *known = 0;
        return rlhf__jinja_undefined();
    }
    if (rlhf__jinja_is(name, "split") || rlhf__jinja_is(name, "rsplit")) {
        if (!a.s.len) return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a split at nothing");
        return split(w, s, a.s, most, right);
    }
    if (rlhf__jinja_is(name, "replace") && b.type == RLHF__JINJA_STRING)
        return replace(w, s, a.s, b.s, c.type == RLHF__JINJA_INT ? c.i : -1);
    if (rlhf__jinja_is(name, "find") || rlhf__jinja_is(name, "rfind")) {
        const size_t at = find(w, s, a.s, right);
        return rlhf__jinja_int(!a.s.len ? 0 : at == s.len ? -1 : characters(s, at));
    }
    if (rlhf__jinja_is(name, "count")) return rlhf__jinja_int(count(w, s, a.s));
    const int front = rlhf__jinja_is(name, "removeprefix");
    if (front || rlhf__jinja_is(name, "removesuffix")) {
        if (!has_edge(w, s, a, front)) return rlhf__jinja_str(s);
        return rlhf__jinja_str((rlhf_str){front ? s.ptr + a.s.len : s.ptr, s.len - a.s.len});
    }
    *known = 0;
    return rlhf__jinja_undefined();
}

rlhf__value rlhf__jinja_string_method(struct rlhf__jinja_work *w, rlhf_str name, rlhf_str s,
                                      const struct rlhf__jinja_args *args, int *known) {
    const rlhf__value a = rlhf__jinja_arg(args, 0, "chars");
    *known = 1;
    if (rlhf__jinja_is(name, "strip")) return strip(w, s, a, 1, 1);
    if (rlhf__jinja_is(name, "lstrip")) return strip(w, s, a, 1, 0);
    if (rlhf__jinja_is(name, "rstrip")) return strip(w, s, a, 0, 1);
    if (rlhf__jinja_is(name, "startswith")) return rlhf__jinja_bool(has_edge(w, s, a, 1));
    if (rlhf__jinja_is(name, "endswith")) return rlhf__jinja_bool(has_edge(w, s, a, 0));
    if (rlhf__jinja_is(name, "upper")) return letters(w, s, UPPER);
    if (rlhf__jinja_is(name, "lower")) return letters(w, s, LOWER);
    if (rlhf__jinja_is(name, "title")) return letters(w, s, TITLE);
    if (rlhf__jinja_is(name, "capitalize")) return letters(w, s, CAPITAL);
    if (rlhf__jinja_is(name, "join")) return joined_list(w, s, a);
    if (rlhf__jinja_is(name, "splitlines")) return lines(w, s);
    if (rlhf__jinja_is(name, "isdigit")) return rlhf__jinja_bool(all_of(w, s, 1, 0, 0));
    if (rlhf__jinja_is(name, "isalpha")) return rlhf__jinja_bool(all_of(w, s, 0, 1, 0));
    if (rlhf__jinja_is(name, "isalnum")) return rlhf__jinja_bool(all_of(w, s, 1, 1, 0));
    if (rlhf__jinja_is(name, "isspace")) return rlhf__jinja_bool(all_of(w, s, 0, 0, 1));
    return with_part(w, name, s, args, known);
}
