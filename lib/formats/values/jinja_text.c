// jinja_text.c: see jinja_text.h.
#include "values/jinja_text.h"

#include "base/printable.h"
#include "values/jinja_casing.h"
#include "values/jinja_escape.h"
#include "values/jinja_letter.h"
#include "values/jinja_number.h"
#include "values/jinja_print.h"
#include "values/jinja_spec.h"

#include <string.h>

// Looking up a character costs as much as reading so many bytes.
enum { LOOK_UP = 8 };

// A call of a method: the state, the method's name, the string and the arguments.
struct call {
    struct rlhf__jinja_work *w;
    rlhf_str name, s;
    int safe; // 1: the string is safe HTML
    rlhf__value a[RLHF__JINJA_PARAMS_MAX];
};

int64_t rlhf__jinja_whole_arg(struct rlhf__jinja_work *w, rlhf__value v, int64_t otherwise) {
    if (v.type == RLHF__JINJA_UNDEFINED) return otherwise;
    if (v.type == RLHF__JINJA_BIG) return rlhf__jinja_sign(v) < 0 ? INT64_MIN : INT64_MAX;
    if (!rlhf__jinja_is_whole(v)) {
        rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "%s instead of an integer", rlhf__jinja_kind(v));
        return otherwise;
    }
    return v.i;
}

// An integer argument for which all values below `least`, its default, mean the same.
static int64_t at_least(struct rlhf__jinja_work *w, int64_t least, rlhf__value v) {
    const int64_t i = rlhf__jinja_whole_arg(w, v, least);
    return i < least ? least : i;
}

// The text of an argument that must be a string.
static rlhf_str text_arg(struct call *c, size_t i) {
    if (c->a[i].type == RLHF__JINJA_STRING) return c->a[i].s;
    rlhf__jinja_stop(c->w, RLHF__JINJA_RAISED, "'%.*s' of a string with %s",
                     RLHF__JINJA_NAME(c->name), rlhf__jinja_kind(c->a[i]));
    return (rlhf_str){"", 0};
}

// ---- white space ----

// Returns the length in bytes of the first character of s if it is white space, otherwise 0.
static size_t space_at(rlhf_str s) {
    uint32_t c = 0;
    const size_t n = s.len ? rlhf__char_at(s.ptr, (size_t)s.len, &c) : 0;
    return n && rlhf__letter_is_space(c) ? n : 0;
}

rlhf_str rlhf__space_trim(rlhf_str s, int left, int right) {
    for (size_t n; left && (n = space_at(s)) > 0; s.len -= n)
        s.ptr += n;
    while (right && s.len) {
        uint32_t c = 0;
        const size_t back = (size_t)s.len - rlhf__utf8_floor(s.ptr, (size_t)s.len - 1);
        if (rlhf__char_at(s.ptr + s.len - back, back, &c) != back || !rlhf__letter_is_space(c))
            break;
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

static rlhf__value m_strip(struct call *c) {
    struct rlhf__jinja_work *w = c->w;
    const rlhf__value set = c->a[0];
    const int left = c->name.ptr[0] != 'r', right = c->name.ptr[0] != 'l';
    rlhf_str s = c->s;
    size_t n;
    if (set.type <= RLHF__JINJA_NONE) {
        const rlhf_str rest = rlhf__space_trim(s, left, right);
        rlhf__jinja_pay(w, LOOK_UP * (size_t)(s.len - rest.len));
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

// Reverses a list in place.
static void turn(const struct rlhf__jinja_work *w, rlhf__value list) {
    for (size_t i = 0; !w->state && i < list.list->n / 2; i++) {
        rlhf__value *a = &list.list->item[i], *b = &list.list->item[list.list->n - 1 - i], c = *a;
        *a = *b;
        *b = c;
    }
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
    if (from_right) turn(w, list);
    return list;
}

// split() at white space, from the left or from the right.
static rlhf__value words(struct rlhf__jinja_work *w, rlhf_str s, int64_t most, int from_right) {
    rlhf__value list = rlhf__jinja_list(w, RLHF__JINJA_LIST, 4);
    if (!rlhf__jinja_pay(w, LOOK_UP * (size_t)s.len)) return list;
    s = rlhf__space_trim(s, !from_right, from_right);
    for (; s.len && most != 0 && rlhf__jinja_pay(w, 1); most--) {
        size_t n = 0, at = (size_t)s.len;
        uint32_t c = 0;
        if (from_right) {
            while (at) {
                n = rlhf__utf8_floor(s.ptr, at - 1);
                rlhf__letter_at(s.ptr + n, at - n, &c);
                if (rlhf__letter_is_space(c)) break;
                at = n;
            }
            rlhf__jinja_add(w, list, rlhf__jinja_str((rlhf_str){s.ptr + at, s.len - at}));
            s = rlhf__space_trim((rlhf_str){s.ptr, at}, 0, 1);
            continue;
        }
        while (n < s.len && !space_at((rlhf_str){s.ptr + n, s.len - n}))
            n++;
        rlhf__jinja_add(w, list, rlhf__jinja_str((rlhf_str){s.ptr, n}));
        s = rlhf__space_trim((rlhf_str){s.ptr + n, s.len - n}, 1, 0);
    }
    if (s.len) rlhf__jinja_add(w, list, rlhf__jinja_str(s));
    if (from_right) turn(w, list);
    return list;
}

static rlhf__value m_split(struct call *c) {
    const int right = c->name.ptr[0] == 'r';
    const int64_t most = at_least(c->w, -1, c->a[1]);
    if (c->a[0].type <= RLHF__JINJA_NONE) return words(c->w, c->s, most, right);
    const rlhf_str by = text_arg(c, 0);
    if (!by.len) return rlhf__jinja_stop(c->w, RLHF__JINJA_RAISED, "a split at nothing");
    return split(c->w, c->s, by, most, right);
}

// partition() and rpartition()
static rlhf__value m_partition(struct call *c) {
    const int last = c->name.ptr[0] == 'r';
    const rlhf_str by = text_arg(c, 0);
    if (!by.len) return rlhf__jinja_stop(c->w, RLHF__JINJA_RAISED, "a partition at nothing");
    const size_t at = find(c->w, c->s, by, last), n = at == c->s.len ? 0 : (size_t)by.len;
    const rlhf_str left = {c->s.ptr, at}, middle = {by.ptr, n},
                   right = {c->s.ptr + at + n, c->s.len - at - n};
    rlhf__value out = rlhf__jinja_list(c->w, RLHF__JINJA_TUPLE, 3);
    rlhf__jinja_add(c->w, out, rlhf__jinja_str(n || !last ? left : right));
    rlhf__jinja_add(c->w, out, rlhf__jinja_str(middle));
    rlhf__jinja_add(c->w, out, rlhf__jinja_str(n || !last ? right : left));
    return out;
}

rlhf__value rlhf__jinja_lines(struct rlhf__jinja_work *w, rlhf_str s, int ends) {
    rlhf__value list = rlhf__jinja_list(w, RLHF__JINJA_LIST, 4);
    if (!rlhf__jinja_pay(w, LOOK_UP * (size_t)s.len)) return list;
    while (s.len && rlhf__jinja_pay(w, 1)) {
        size_t n = 0, size = 0;
        for (uint32_t c = 0; n < s.len; n += size, size = 0) {
            size = rlhf__letter_at(s.ptr + n, (size_t)s.len - n, &c);
            if (rlhf__letter_is_line_end(c)) break;
        }
        size += n + 1 < s.len && s.ptr[n] == '\r' && s.ptr[n + 1] == '\n';
        rlhf__jinja_add(w, list, rlhf__jinja_str((rlhf_str){s.ptr, ends ? n + size : n}));
        s = (rlhf_str){s.ptr + n + size, s.len - n - size};
    }
    return list;
}

static rlhf__value m_lines(struct call *c) {
    return rlhf__jinja_lines(c->w, c->s, rlhf__jinja_true(c->a[0]));
}

// Puts `with` before each character and at the end, at most `most` times.
static rlhf__value interleaved(struct rlhf__jinja_work *w, rlhf_str s, rlhf_str with,
                               int64_t most) {
    rlhf__value out = rlhf__jinja_empty();
    for (uint32_t c; most != 0 && !w->state; most--) {
        out = rlhf__jinja_joined(w, out.s, with);
        if (!s.len || w->state || !rlhf__jinja_pay(w, 1)) break;
        const size_t n = rlhf__letter_at(s.ptr, (size_t)s.len, &c);
        out = rlhf__jinja_joined(w, out.s, (rlhf_str){s.ptr, n});
        s = (rlhf_str){s.ptr + n, s.len - n};
    }
    return w->state ? rlhf__jinja_undefined() : rlhf__jinja_joined(w, out.s, s);
}

static rlhf__value m_replace(struct call *c) {
    struct rlhf__jinja_work *w = c->w;
    const rlhf_str part = text_arg(c, 0);
    text_arg(c, 1);
    int64_t most = at_least(w, -1, c->a[2]);
    const rlhf__value with = c->safe ? rlhf__jinja_escaped(w, c->a[1]) : c->a[1];
    rlhf__value out = rlhf__jinja_empty();
    rlhf_str s = c->s;
    if (w->state) return out;
    if (!part.len) return interleaved(w, s, with.s, most);
    for (size_t at; most != 0 && !w->state; most--) {
        if ((at = find(w, s, part, 0)) == s.len) break;
        out = rlhf__jinja_joined(w, out.s, (rlhf_str){s.ptr, at});
        if (!w->state) out = rlhf__jinja_joined(w, out.s, with.s);
        s = (rlhf_str){s.ptr + at + part.len, s.len - at - part.len};
    }
    return w->state ? rlhf__jinja_undefined() : rlhf__jinja_joined(w, out.s, s);
}

// ---- places ----

// Cuts c->s to the characters from c->a[1] to c->a[2], as s[from:to] does. Returns the number of
// characters before the part, or -1 if it begins after the end.
static int64_t cut(struct call *c) {
    const int64_t n = rlhf__jinja_characters(c->w, c->s);
    int64_t at[2] = {0, n};
    for (int i = 0; i < 2; i++) {
        if (c->a[i + 1].type != RLHF__JINJA_NONE)
            at[i] = rlhf__jinja_whole_arg(c->w, c->a[i + 1], at[i]);
        if (at[i] < 0) at[i] = at[i] < -n ? 0 : at[i] + n;
    }
    if (at[0] > n || at[1] < at[0]) return -1;
    const rlhf_str before = rlhf__jinja_spec_cut(c->w, c->s, at[0]);
    const rlhf_str to = rlhf__jinja_spec_cut(c->w, c->s, at[1] < n ? at[1] : n);
    c->s = (rlhf_str){c->s.ptr + before.len, to.len - before.len};
    return at[0];
}

// The number of characters before the byte at offset `at`.
static int64_t characters(struct call *c, size_t at) {
    return rlhf__jinja_characters(c->w, (rlhf_str){c->s.ptr, at});
}

// find(), rfind(), index() and rindex()
static rlhf__value m_find(struct call *c) {
    const int last = c->name.ptr[0] == 'r';
    const rlhf_str part = text_arg(c, 0);
    const int64_t from = cut(c);
    size_t at = last ? (size_t)c->s.len : 0;
    int found = from >= 0;
    if (found && part.len) {
        at = find(c->w, c->s, part, last);
        found = at < c->s.len;
    }
    if (found) return rlhf__jinja_int(from + characters(c, at));
    if (c->name.ptr[c->name.len - 1] == 'd') return rlhf__jinja_int(-1);
    return rlhf__jinja_stop(c->w, RLHF__JINJA_RAISED,
                            "index() of a text that is not in the string");
}

static rlhf__value m_count(struct call *c) {
    const rlhf_str part = text_arg(c, 0);
    if (cut(c) < 0) return rlhf__jinja_int(0);
    if (!part.len) return rlhf__jinja_int(characters(c, (size_t)c->s.len) + 1);
    int64_t n = 0;
    for (size_t at; (at = find(c->w, c->s, part, 0)) < c->s.len; n++)
        c->s = (rlhf_str){c->s.ptr + at + part.len, c->s.len - at - part.len};
    return rlhf__jinja_int(n);
}

// Returns 1 if s begins with `edge` (if `left` is 1) or ends with it.
static int has_edge(struct call *c, rlhf_str edge, int left) {
    const rlhf_str s = c->s;
    return edge.len <= s.len && rlhf__jinja_pay(c->w, (size_t)edge.len) &&
           rlhf__jinja_same((rlhf_str){left ? s.ptr : s.ptr + (s.len - edge.len), edge.len}, edge);
}

// startswith() and endswith(). If the argument is a tuple of strings, one of them is enough.
static rlhf__value m_edge(struct call *c) {
    const int left = c->name.ptr[0] == 's';
    const rlhf__value edges = c->a[0];
    int yes = 0;
    if (edges.type != RLHF__JINJA_TUPLE) text_arg(c, 0);
    if (cut(c) < 0 || c->w->state) return rlhf__jinja_bool(0);
    if (edges.type != RLHF__JINJA_TUPLE) return rlhf__jinja_bool(has_edge(c, edges.s, left));
    for (size_t i = 0; !yes && i < edges.list->n && rlhf__jinja_pay(c->w, 1); i++) {
        c->a[0] = edges.list->item[i];
        yes = has_edge(c, text_arg(c, 0), left);
    }
    return rlhf__jinja_bool(yes);
}

// removeprefix() and removesuffix()
static rlhf__value m_remove(struct call *c) {
    const int front = rlhf__jinja_is(c->name, "removeprefix");
    const rlhf_str edge = text_arg(c, 0);
    if (!has_edge(c, edge, front)) return rlhf__jinja_str(c->s);
    return rlhf__jinja_str((rlhf_str){front ? c->s.ptr + edge.len : c->s.ptr, c->s.len - edge.len});
}

// ---- padding ----

// center(), ljust() and rjust()
static rlhf__value m_pad(struct call *c) {
    const int64_t width = at_least(c->w, 0, c->a[0]);
    rlhf_str fill = {" ", 1};
    if (c->a[1].type) {
        if (c->safe) c->a[1] = rlhf__jinja_escaped(c->w, c->a[1]);
        fill = text_arg(c, 1);
        if (rlhf__jinja_characters(c->w, fill) != 1)
            return rlhf__jinja_stop(c->w, RLHF__JINJA_RAISED, "a fill that is not one character");
    }
    if (c->name.ptr[0] != 'c')
        return rlhf__jinja_spec_padded(c->w, c->s, fill, c->name.ptr[0] == 'l' ? '<' : '>', width);
    const int64_t n = characters(c, (size_t)c->s.len), more = width - n;
    if (more <= 0) return rlhf__jinja_str(c->s);
    const rlhf__value left =
        rlhf__jinja_spec_padded(c->w, c->s, fill, '>', n + more / 2 + (more & width & 1));
    return c->w->state ? left : rlhf__jinja_spec_padded(c->w, left.s, fill, '<', width);
}

static rlhf__value m_zfill(struct call *c) {
    const int sign = c->s.len && (c->s.ptr[0] == '+' || c->s.ptr[0] == '-');
    const int64_t width = at_least(c->w, 0, c->a[0]);
    const rlhf__value rest =
        rlhf__jinja_spec_padded(c->w, (rlhf_str){c->s.ptr + sign, c->s.len - (uint64_t)sign},
                                (rlhf_str){"0", 1}, '>', width - sign);
    return c->w->state ? rest
                       : rlhf__jinja_joined(c->w, (rlhf_str){c->s.ptr, (uint64_t)sign}, rest.s);
}

static rlhf__value m_expandtabs(struct call *c) {
    const int64_t size = rlhf__jinja_whole_arg(c->w, c->a[0], 8);
    struct rlhf__buf out = RLHF__BUF_INIT;
    int64_t column = 0;
    for (size_t i = 0; i < c->s.len && out.len <= RLHF__JINJA_MEMORY_MAX; i++) {
        const char ch = c->s.ptr[i];
        const int64_t n = ch == '\t' && size > 0 ? size - column % size : 0;
        if (n > RLHF__JINJA_TEXT_MAX)
            rlhf__jinja_stop(c->w, RLHF__JINJA_UNKNOWN, "a tab of %lld columns", (long long)n);
        if (!rlhf__jinja_pay(c->w, (size_t)n)) break;
        for (int64_t k = 0; k < n; k++)
            rlhf__buf_putc(&out, ' ');
        if (ch != '\t') rlhf__buf_putc(&out, ch);
        column += n + (ch != '\t' && ((unsigned char)ch & 0xc0) != 0x80);
        if (ch == '\n' || ch == '\r') column = 0;
    }
    return rlhf__jinja_taken(c->w, &out);
}

// ---- others ----

static rlhf__value m_join(struct call *c) {
    struct rlhf__jinja_work *w = c->w;
    rlhf__value all = rlhf__jinja_items(w, c->a[0]), out = rlhf__jinja_empty();
    for (size_t i = 0; !w->state && i < all.list->n && rlhf__jinja_pay(w, 1); i++) {
        rlhf__value item = all.list->item[i];
        if (c->safe) item = rlhf__jinja_escaped(w, item);
        if (!w->state && item.type != RLHF__JINJA_STRING)
            rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "join() of %s", rlhf__jinja_kind(item));
        if (i && !w->state) out = rlhf__jinja_joined(w, out.s, c->s);
        if (!w->state) out = rlhf__jinja_joined(w, out.s, item.s);
    }
    return w->state ? rlhf__jinja_undefined() : out;
}

static rlhf__value m_case(struct call *c) { return rlhf__jinja_cased(c->w, c->name, c->s); }
static rlhf__value m_is(struct call *c) {
    return rlhf__jinja_bool(rlhf__jinja_is_all(c->w, c->name, c->s));
}

// ---- by name ----

// Methods without a function are known, but not here.
static const struct {
    const char *name, *params;
    rlhf__value (*run)(struct call *);
} methods[] = {{"strip", "_=", m_strip},
               {"lstrip", "_=", m_strip},
               {"rstrip", "_=", m_strip},
               {"split", "sep= maxsplit=", m_split},
               {"rsplit", "sep= maxsplit=", m_split},
               {"splitlines", "keepends=", m_lines},
               {"partition", "_", m_partition},
               {"rpartition", "_", m_partition},
               {"replace", "_ _ count=", m_replace},
               {"startswith", "_ _= _=", m_edge},
               {"endswith", "_ _= _=", m_edge},
               {"removeprefix", "_", m_remove},
               {"removesuffix", "_", m_remove},
               {"find", "_ _= _=", m_find},
               {"rfind", "_ _= _=", m_find},
               {"index", "_ _= _=", m_find},
               {"rindex", "_ _= _=", m_find},
               {"count", "_ _= _=", m_count},
               {"join", "_", m_join},
               {"center", "_ _=", m_pad},
               {"ljust", "_ _=", m_pad},
               {"rjust", "_ _=", m_pad},
               {"zfill", "_", m_zfill},
               {"expandtabs", "tabsize=", m_expandtabs},
               {"upper", "", m_case},
               {"lower", "", m_case},
               {"title", "", m_case},
               {"capitalize", "", m_case},
               {"casefold", "", m_case},
               {"swapcase", "", m_case},
               {"isalpha", "", m_is},
               {"isdigit", "", m_is},
               {"isdecimal", "", m_is},
               {"isalnum", "", m_is},
               {"isspace", "", m_is},
               {"islower", "", m_is},
               {"isupper", "", m_is},
               {"istitle", "", m_is},
               {"isascii", "", m_is},
               {"isprintable", "", m_is},
               {"format", "", NULL},
               {"format_map", "", NULL},
               {"isnumeric", "", NULL},
               {"isidentifier", "", NULL},
               {"encode", "", NULL},
               {"translate", "", NULL},
               {"maketrans", "", NULL}};
enum { METHODS = sizeof methods / sizeof *methods };

static size_t find_method(rlhf_str name) {
    size_t i = 0;
    while (i < METHODS && !rlhf__jinja_is(name, methods[i].name))
        i++;
    return i;
}

int rlhf__jinja_is_string_method(rlhf_str name) { return find_method(name) < METHODS; }

rlhf__value rlhf__jinja_string_method(struct rlhf__jinja_work *w, rlhf_str name, rlhf__value s,
                                      const struct rlhf__jinja_args *args) {
    struct call c = {.w = w, .name = name, .s = s.s, .safe = s.mark};
    const size_t i = find_method(name);
    if (i == METHODS || !methods[i].run)
        return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "the method '%.*s' of a string",
                                RLHF__JINJA_NAME(name));
    if (!rlhf__jinja_bind(w, "the method", name, methods[i].params, args, c.a))
        return rlhf__jinja_undefined();
    for (size_t k = 0; k < args->n; k++)
        if (args->value[k].type == RLHF__JINJA_UNDEFINED && methods[i].run != m_join)
            return rlhf__jinja_stop(w, RLHF__JINJA_RAISED,
                                    "'%.*s' of a string with an undefined value",
                                    RLHF__JINJA_NAME(name));
    const rlhf__value out = methods[i].run(&c);
    return w->state ? rlhf__jinja_undefined() : rlhf__jinja_marked(out, s.mark);
}

rlhf__value rlhf__jinja_simple_method(struct rlhf__jinja_work *w, const char *method,
                                      rlhf__value s) {
    const struct rlhf__jinja_args none = {0};
    return rlhf__jinja_string_method(w, (rlhf_str){method, strlen(method)}, s, &none);
}
