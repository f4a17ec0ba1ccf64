// read.c: see read.h. A cursor moves over the text; what take_* does not find leaves it in place.
#include "answer/read.h"

#include "answer/letters.h"

#include <string.h>

struct cursor {
    const char *begin, *at, *end;
    int32_t over;  // a number had more digits than there is room for
    int32_t loose; // spaces may stand around a fraction's stroke
};

static int left(const struct cursor *c) { return c->at < c->end; }

static int next_is(const struct cursor *c, const char *word) {
    size_t n = strlen(word);
    return (size_t)(c->end - c->at) >= n && memcmp(c->at, word, n) == 0;
}

static int take(struct cursor *c, const char *word) {
    if (!next_is(c, word)) return 0;
    c->at += strlen(word);
    return 1;
}

static int digit_at(const struct cursor *c, ptrdiff_t k) {
    return c->end - c->at > k && rlhf__is_digit(c->at[k]);
}

static int take_space(struct cursor *c) { return take(c, " ") || take(c, RLHF__NBSP); }

static void skip_spaces(struct cursor *c) {
    while (left(c) && (take_space(c) || rlhf__is_space(*c->at)))
        if (rlhf__is_space(*c->at)) c->at++;
}

static int32_t take_sign(struct cursor *c) { return take(c, "-") ? -1 : take(c, "+") ? 1 : 0; }

// ---- one decimal ----

static void push(struct cursor *c, struct rlhf__decimal *x) {
    if (x->n == RLHF__DECIMAL_DIGITS)
        c->over = 1;
    else
        x->digit[x->n++] = *c->at;
    c->at++;
}

// A thousands separator: three digits and no fourth follow. Its bytes, 0 = there is none.
static ptrdiff_t separator(const struct cursor *c) {
    ptrdiff_t n = next_is(c, ",") ? 1 : next_is(c, RLHF__NBSP) ? 2 : 0;
    if (!n || !digit_at(c, n) || !digit_at(c, n + 1) || !digit_at(c, n + 2)) return 0;
    return digit_at(c, n + 3) ? 0 : n;
}

static void take_integer(struct cursor *c, struct rlhf__decimal *x) {
    const char *begin = c->at;
    while (digit_at(c, 0))
        push(c, x);
    if (c->at - begin > 3 || *begin == '0') return;
    for (ptrdiff_t n = separator(c), same = n; n && n == same; n = separator(c)) {
        c->at += n;
        for (int i = 0; i < 3; i++)
            push(c, x);
    }
}

// The digits of an exponent, with a sign; *out = it.
static int take_power(struct cursor *c, int64_t *out) {
    const struct cursor before = *c;
    const int32_t sign = take_sign(c);
    int64_t e = 0;
    if (!digit_at(c, 0)) {
        *c = before;
        return 0;
    }
    for (; digit_at(c, 0); c->at++)
        if (e <= RLHF__DECIMAL_EXPONENT) e = 10 * e + (*c->at - '0');
    if (e > RLHF__DECIMAL_EXPONENT) c->over = 1;
    *out = sign < 0 ? -e : e;
    return 1;
}

// "^6", "^{-6}" behind a ten.
static int take_raised(struct cursor *c, int64_t *out) {
    if (!take(c, "^")) return 0;
    if (!take(c, "{")) return take_power(c, out);
    skip_spaces(c);
    if (!take_power(c, out)) return 0;
    skip_spaces(c);
    return take(c, "}");
}

// "e-3", " x 10^{-3}" behind the digits.
static void take_exponent(struct cursor *c, struct rlhf__decimal *x) {
    const struct cursor before = *c;
    int64_t e = 0;
    if (take(c, "e") || take(c, "E")) {
        if (take_power(c, &e))
            x->exponent += e;
        else
            *c = before;
        return;
    }
    skip_spaces(c);
    if (take(c, "\xc3\x97") || take(c, "\xc2\xb7") || take(c, "x") || take(c, "*")) { // times, dot
        skip_spaces(c);
        if (take(c, "10") && take_raised(c, &e)) {
            x->exponent += e;
            return;
        }
    }
    *c = before;
}

// Digits with separators, a point and an exponent. *integer = 1 when there is no point.
static int take_decimal(struct cursor *c, struct rlhf__decimal *x, int *integer) {
    const struct cursor before = *c;
    int64_t e;
    *x = (struct rlhf__decimal){.sign = 1};
    *integer = 1;
    if (digit_at(c, 0)) take_integer(c, x);
    if (left(c) && *c->at == '.' && digit_at(c, 1)) {
        const char *point = c->at++;
        *integer = 0;
        while (digit_at(c, 0))
            push(c, x);
        x->exponent = -(c->at - point - 1);
    }
    if (c->at == before.at) return 0;
    if (c->at - before.at == 2 && memcmp(before.at, "10", 2) == 0) { // a power of ten alone
        const struct cursor ten = *c;
        if (take_raised(c, &e)) {
            rlhf__decimal_set(x, 1);
            x->exponent = e;
            return 1;
        }
        *c = ten;
    }
    take_exponent(c, x);
    if (!c->over) rlhf__decimal_settle(x);
    return 1;
}

// ---- fractions ----

// One of the two of \frac: "{12}", or a digit alone.
static int take_part(struct cursor *c, struct rlhf__decimal *x) {
    int integer;
    skip_spaces(c);
    if (digit_at(c, 0)) {
        rlhf__decimal_set(x, *c->at++ - '0');
        return 1;
    }
    if (!take(c, "{")) return 0;
    skip_spaces(c);
    const int32_t sign = take_sign(c);
    skip_spaces(c);
    if (!take_decimal(c, x, &integer)) return 0;
    if (sign < 0) x->sign = -x->sign;
    skip_spaces(c);
    return take(c, "}");
}

static int take_vulgar(struct cursor *c, struct rlhf__ratio *out) {
    static const struct {
        char text[4];
        int8_t num, den;
    } all[] = {{"\xc2\xbc", 1, 4},     {"\xc2\xbd", 1, 2},     {"\xc2\xbe", 3, 4},
               {"\xe2\x85\x90", 1, 7}, {"\xe2\x85\x91", 1, 9}, {"\xe2\x85\x93", 1, 3},
               {"\xe2\x85\x94", 2, 3}, {"\xe2\x85\x95", 1, 5}, {"\xe2\x85\x96", 2, 5},
               {"\xe2\x85\x97", 3, 5}, {"\xe2\x85\x98", 4, 5}, {"\xe2\x85\x99", 1, 6},
               {"\xe2\x85\x9a", 5, 6}, {"\xe2\x85\x9b", 1, 8}, {"\xe2\x85\x9c", 3, 8},
               {"\xe2\x85\x9d", 5, 8}, {"\xe2\x85\x9e", 7, 8}};
    if (!left(c) || (unsigned char)*c->at < 0xc2) return 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char word[5] = "";
        memcpy(word, all[i].text, 4);
        if (!take(c, word)) continue;
        rlhf__decimal_set(&out->num, all[i].num);
        rlhf__decimal_set(&out->den, all[i].den);
        return 1;
    }
    return 0;
}

// \frac{3}{4} or a character that is a fraction.
static int take_fraction(struct cursor *c, struct rlhf__ratio *out) {
    const struct cursor before = *c;
    if (take_vulgar(c, out)) return 1;
    if (take(c, "\\frac") && take_part(c, &out->num) && take_part(c, &out->den) && out->den.sign) {
        if (out->den.sign < 0) out->num.sign = -out->num.sign;
        out->den.sign = 1;
        return 1;
    }
    *c = before;
    return 0;
}

// "/4" behind a numerator. -1: there is one, but it makes no number.
static int take_denominator(struct cursor *c, struct rlhf__decimal *den) {
    const struct cursor before = *c;
    int integer;
    if (c->loose) skip_spaces(c);
    if (take(c, "/")) {
        if (c->loose) skip_spaces(c);
        if ((digit_at(c, 0) || (left(c) && *c->at == '.' && digit_at(c, 1))) &&
            take_decimal(c, den, &integer))
            return den->sign ? 1 : -1;
    }
    *c = before;
    return 0;
}

// " 1/2" or "\frac{1}{2}" behind an integer: less than one, so that two numbers side by side stay
// two.
static int take_rest_of_mixed(struct cursor *c, struct rlhf__ratio *part) {
    const struct cursor before = *c;
    const int spaced = take_space(c);
    int integer;
    if (take_fraction(c, part) && part->num.sign > 0 && rlhf__ratio_value(part, 0) < 1) return 1;
    if (spaced && digit_at(c, 0) && take_decimal(c, &part->num, &integer) && integer &&
        take_denominator(c, &part->den) > 0 && rlhf__ratio_value(part, 0) < 1)
        return 1;
    *c = before;
    return 0;
}

// A number without its sign. -1: digits that make none (5/0); the cursor is behind them.
static int take_magnitude(struct cursor *c, struct rlhf__ratio *out) {
    struct rlhf__ratio part;
    struct rlhf__decimal first;
    int integer;
    c->over = 0;
    if (take_fraction(c, out)) return c->over ? -1 : 1;
    if (!take_decimal(c, &first, &integer)) return 0;
    out->num = first;
    rlhf__decimal_set(&out->den, 1);
    const int stroke = take_denominator(c, &out->den);
    if (stroke == 0 && integer && take_rest_of_mixed(c, &part) && !c->over &&
        !rlhf__ratio_add(&first, &part, out))
        c->over = 1;
    return stroke < 0 || c->over ? -1 : 1;
}

// ---- what stands around it ----

static int take_word(struct cursor *c, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n) return 0;
    for (size_t i = 0; i < n; i++)
        if (rlhf__lower(c->at[i]) != word[i]) return 0;
    if ((size_t)(c->end - c->at) > n && rlhf__is_letter(c->at[n])) return 0;
    c->at += n;
    return 1;
}

// "%", " percent", " million" behind it.
static void take_suffix(struct cursor *c, struct rlhf__reading *out) {
    static const struct {
        const char *word;
        int32_t power, reserved;
    } scales[] = {{"hundred", 2, 0},
                  {"thousand", 3, 0},
                  {"million", 6, 0},
                  {"billion", 9, 0},
                  {"trillion", 12, 0}};
    const struct cursor before = *c;
    while (take_space(c))
        continue;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (take_word(c, scales[i].word)) {
            if (out->value.num.sign) out->value.num.exponent += scales[i].power;
            return;
        }
    out->percent = take(c, "%") || take_word(c, "percent");
    if (!out->percent) *c = before;
}

static int take_currency(struct cursor *c) {
    static const char *const all[] = {"$",   "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5", "\xe2\x82\xb9",
                                      "US$", "USD",          "EUR",      "GBP",      "Rs."};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (take(c, all[i])) return 1;
    return 0;
}

// Whether the rest is a unit: words, "km/h", "cm^2"; no digits but in an exponent, no operation.
static int rest_is_unit(struct cursor *c) {
    int64_t power;
    char before = ' ';
    while (left(c)) {
        const char here = *c->at;
        if (here == '^') {
            if (!rlhf__is_letter(before) && before != ')') return 0;
            if (!take_raised(c, &power)) return 0;
        } else if (here == '-') { // joins two words
            if (!rlhf__is_letter(before) || c->end - c->at < 2 || !rlhf__is_letter(c->at[1]))
                return 0;
            c->at++;
        } else if (rlhf__is_letter(here) || rlhf__is_space(here) || (unsigned char)here >= 0x80 ||
                   rlhf__is_one_of(here, "./'\"()$")) {
            c->at++;
        } else {
            return 0;
        }
        before = here;
    }
    return 1;
}

int rlhf__read_whole(rlhf_str text, int units, struct rlhf__reading *out) {
    struct cursor c = {text.ptr, text.ptr, text.ptr + text.len, 0, 1};
    memset(out, 0, sizeof *out);
    skip_spaces(&c);
    int32_t sign = take_sign(&c);
    skip_spaces(&c);
    if (units && take_currency(&c)) skip_spaces(&c);
    if (!sign) sign = take_sign(&c);
    if (take_magnitude(&c, &out->value) <= 0) return 0;
    take_suffix(&c, out);
    skip_spaces(&c);
    if (units ? !rest_is_unit(&c) : left(&c)) return 0;
    if (sign < 0) out->value.num.sign = -out->value.num.sign;
    return 1;
}

// ---- in a text ----

static int before_is(const struct cursor *c, const char *at, const char *word) {
    const size_t n = strlen(word);
    return (size_t)(at - c->begin) >= n && memcmp(at - n, word, n) == 0;
}

// Whether what stands before digits at the cursor makes them part of something else.
static int is_part(const struct cursor *c) {
    const char *at = c->at;
    if (at == c->begin) return 0;
    const char before = at[-1];
    if (rlhf__is_letter(before) || rlhf__is_digit(before) || before == '_' || before == '^')
        return 1;
    if (before == '.' && at - c->begin > 1 && rlhf__is_digit(at[-2])) return 1;
    return before_is(c, at, "^{") || before_is(c, at, "_{") || before_is(c, at, "^-") ||
           before_is(c, at, "^{-") || before_is(c, at, "_{-");
}

// The sign of the number that begins at `at`, also in front of a currency sign; "5-3" has none.
static int32_t sign_before(const struct cursor *c, const char *at) {
    static const char *const money[] = {"$", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5",
                                        "\xe2\x82\xb9"};
    for (size_t i = 0; i < sizeof money / sizeof *money; i++)
        if (before_is(c, at, money[i])) {
            at -= strlen(money[i]);
            break;
        }
    if (!before_is(c, at, "-")) return 1;
    if (--at == c->begin) return -1;
    return rlhf__is_letter(at[-1]) || rlhf__is_digit(at[-1]) || rlhf__is_one_of(at[-1], ")}]%")
               ? 1
               : -1;
}

// Behind a number: what makes it and the digits to come something else (1.2.3, 1/2/3, 2^5). The
// cursor is then behind all of it.
static int take_torn(struct cursor *c) {
    const int torn =
        left(c) && (*c->at == '^' || ((*c->at == '.' || *c->at == '/') && digit_at(c, 1)));
    while (torn && left(c) && (rlhf__is_digit(*c->at) || rlhf__is_one_of(*c->at, "./^{}-")))
        c->at++;
    return torn;
}

static int may_begin(const struct cursor *c) {
    return digit_at(c, 0) || (*c->at == '.' && digit_at(c, 1)) || *c->at == '\\' ||
           (unsigned char)*c->at == 0xc2 || (unsigned char)*c->at == 0xe2;
}

static int find(rlhf_str text, int last, struct rlhf__reading *out) {
    struct cursor c = {text.ptr, text.ptr, text.ptr + text.len, 0, 0};
    int found = 0;
    while (left(&c)) {
        struct rlhf__reading r = {0};
        const char *begin = c.at;
        if (!may_begin(&c) || is_part(&c)) {
            c.at++;
            continue;
        }
        const int32_t sign = sign_before(&c, begin);
        const int taken = take_magnitude(&c, &r.value);
        if (c.at == begin) c.at++;
        if (taken == 0 || take_torn(&c) || taken < 0) continue;
        take_suffix(&c, &r);
        r.value.num.sign *= sign;
        *out = r;
        found = 1;
        if (!last) break;
    }
    return found;
}

int rlhf__read_first(rlhf_str text, struct rlhf__reading *out) { return find(text, 0, out); }
int rlhf__read_last(rlhf_str text, struct rlhf__reading *out) { return find(text, 1, out); }
