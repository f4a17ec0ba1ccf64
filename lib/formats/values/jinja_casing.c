// jinja_casing.c: see jinja_casing.h.
#include "values/jinja_casing.h"

#include "values/jinja_letter.h"
#include "values/jinja_print.h"

#include <string.h>

enum { COST = 8 }; // looking up a letter takes as long as reading so many bytes
enum { SIGMA = 0x3A3, FINAL_SIGMA = 0x3C2, SMALL_SIGMA = 0x3C3 };

static uint32_t char_at(rlhf_str s, size_t at, size_t *n) {
    uint32_t c = 0;
    *n = rlhf__letter_at(s.ptr + at, (size_t)s.len - at, &c);
    return c;
}

// Returns 1 if a letter with case follows offset `at`, or precedes it if `back` is 1, with only
// ignorable characters between.
static int touches_letter(struct rlhf__jinja_work *w, rlhf_str s, size_t at, int back) {
    const size_t from = at;
    while (back ? at > 0 : at < s.len) {
        size_t n = 0;
        if (back) do
                at--;
            while (at && ((unsigned char)s.ptr[at] & 0xc0) == 0x80);
        const uint32_t c = char_at(s, at, &n);
        if (!rlhf__letter_is_ignorable(c)) {
            rlhf__jinja_pay(w, COST * (back ? from - at : at - from));
            return rlhf__letter_is_cased(c);
        }
        if (!back) at += n;
    }
    rlhf__jinja_pay(w, COST * (back ? from : (size_t)s.len - from));
    return 0;
}

static void put_cased(struct rlhf__jinja_work *w, struct rlhf__buf *out, rlhf_str s, size_t at,
                      enum rlhf__letter_case to) {
    uint32_t cp[RLHF__LETTER_MAX];
    char utf8[4];
    size_t n = 0, size;
    const uint32_t c = char_at(s, at, &size);
    if (c == SIGMA && to == RLHF__LETTER_LOWER) {
        cp[n++] = touches_letter(w, s, at, 1) && !touches_letter(w, s, at + size, 0) ? FINAL_SIGMA
                                                                                     : SMALL_SIGMA;
    } else {
        n = rlhf__letter_to(to, c, cp);
    }
    for (size_t i = 0; i < n; i++)
        rlhf__buf_put(out, utf8, rlhf__letter_put(cp[i], utf8));
}

rlhf__value rlhf__jinja_cased(struct rlhf__jinja_work *w, rlhf_str method, rlhf_str s) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    const int upper = rlhf__jinja_is(method, "upper"), title = rlhf__jinja_is(method, "title"),
              capital = rlhf__jinja_is(method, "capitalize"),
              swap = rlhf__jinja_is(method, "swapcase"), fold = rlhf__jinja_is(method, "casefold");
    int inside = 0;
    rlhf__jinja_pay(w, COST * (size_t)s.len);
    for (size_t at = 0, n; at < s.len && !w->state; at += n) {
        const uint32_t c = char_at(s, at, &n);
        enum rlhf__letter_case to = RLHF__LETTER_LOWER;
        if (upper || (swap && rlhf__letter_is_lower(c))) to = RLHF__LETTER_UPPER;
        if ((title && !inside) || (capital && !at)) to = RLHF__LETTER_TITLE;
        if (fold) to = RLHF__LETTER_FOLD;
        if (swap && !rlhf__letter_is_lower(c) && !rlhf__letter_is_upper(c))
            rlhf__buf_put(&out, s.ptr + at, n);
        else
            put_cased(w, &out, s, at, to);
        inside = rlhf__letter_is_cased(c);
    }
    return rlhf__jinja_taken(w, &out);
}

// The first letter of each word in upper case, the rest in lower case. The sigma at the end of a
// word does not see the next word.
static void put_word(struct rlhf__jinja_work *w, struct rlhf__buf *out, rlhf_str word) {
    size_t first = 0;
    if (!word.len) return;
    char_at(word, 0, &first);
    put_cased(w, out, word, 0, RLHF__LETTER_UPPER);
    word = (rlhf_str){word.ptr + first, word.len - first};
    for (size_t at = 0, n; at < word.len && !w->state; at += n) {
        char_at(word, at, &n);
        put_cased(w, out, word, at, RLHF__LETTER_LOWER);
    }
}

rlhf__value rlhf__jinja_title(struct rlhf__jinja_work *w, rlhf_str s) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    size_t from = 0;
    rlhf__jinja_pay(w, COST * (size_t)s.len);
    for (size_t at = 0, n; at < s.len && !w->state; at += n) {
        const uint32_t c = char_at(s, at, &n);
        if (!rlhf__letter_is_space(c) && !(c < 0x80 && c && strchr("-({[<", (int)c))) continue;
        put_word(w, &out, (rlhf_str){s.ptr + from, at - from});
        rlhf__buf_put(&out, s.ptr + at, n);
        from = at + n;
    }
    put_word(w, &out, (rlhf_str){s.ptr + from, s.len - from});
    return rlhf__jinja_taken(w, &out);
}

// ---- questions ----

static const struct {
    const char *name;
    int (*is)(uint32_t cp);
} kinds[] = {{"isalpha", rlhf__letter_is_alpha},     {"isdigit", rlhf__letter_is_digit},
             {"isdecimal", rlhf__letter_is_decimal}, {"isalnum", rlhf__letter_is_alnum},
             {"isspace", rlhf__letter_is_space},     {"isprintable", rlhf__letter_is_printable}};

static int is_ascii(rlhf_str s) {
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] >= 0x80) return 0;
    return 1;
}

// islower, isupper and istitle: only letters with case count, and there is at least one.
static int is_cased(rlhf_str method, rlhf_str s) {
    const int lower = rlhf__jinja_is(method, "islower"), title = rlhf__jinja_is(method, "istitle");
    int any = 0, inside = 0;
    for (size_t at = 0, n; at < s.len; at += n) {
        const uint32_t c = char_at(s, at, &n);
        const int small = rlhf__letter_is_lower(c),
                  large = rlhf__letter_is_upper(c) || rlhf__letter_is_title(c);
        if (title   ? (small && !inside) || (large && inside)
            : lower ? large
                    : small || rlhf__letter_is_title(c))
            return 0;
        inside = small || large;
        any |= inside;
    }
    return any;
}

int rlhf__jinja_is_all(struct rlhf__jinja_work *w, rlhf_str method, rlhf_str s) {
    if (!rlhf__jinja_pay(w, COST * (size_t)s.len)) return 0;
    if (rlhf__jinja_is(method, "isascii")) return is_ascii(s);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (!rlhf__jinja_is(method, kinds[k].name)) continue;
        for (size_t at = 0, n; at < s.len; at += n)
            if (!kinds[k].is(char_at(s, at, &n))) return 0;
        return s.len > 0 || rlhf__jinja_is(method, "isprintable");
    }
    return is_cased(method, s);
}
