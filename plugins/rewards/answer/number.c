// number.c: see number.h.
#include "answer/number.h"

#include <string.h>

// ---- one decimal ----

static void push(struct rlhf__cursor *c, struct rlhf__answer_decimal *x) {
    if (x->n == RLHF__DECIMAL_DIGITS)
        c->over = 1;
    else
        x->digit[x->n++] = *c->at;
    c->at++;
}

// Returns the length in bytes of the thousands separator at the cursor. Returns 0 without a
// separator, or if it is not followed by exactly three digits.
static ptrdiff_t separator(const struct rlhf__cursor *c) {
    ptrdiff_t n = rlhf__next_is(c, "," RLHF__NBSP) ? 3
                  : rlhf__next_is(c, ",")          ? 1
                  : rlhf__next_is(c, RLHF__NBSP)   ? 2
                                                   : 0;
    if (!n || !rlhf__digit_at(c, n) || !rlhf__digit_at(c, n + 1) || !rlhf__digit_at(c, n + 2))
        return 0;
    return rlhf__digit_at(c, n + 3) ? 0 : n;
}

static void take_integer(struct rlhf__cursor *c, struct rlhf__answer_decimal *x) {
    const char *begin = c->at;
    while (rlhf__digit_at(c, 0))
        push(c, x);
    if (c->at - begin > 3 || *begin == '0') return;
    for (ptrdiff_t n = separator(c), same = n; n && n == same; n = separator(c)) {
        c->at += n;
        for (int i = 0; i < 3; i++)
            push(c, x);
    }
}

// Moves past an exponent, which is an optional sign and digits, and sets *out to its value.
static int take_power(struct rlhf__cursor *c, int64_t *out) {
    const struct rlhf__cursor before = *c;
    const int32_t sign = rlhf__take_sign(c);
    int64_t e = 0;
    if (!rlhf__digit_at(c, 0)) {
        *c = before;
        return 0;
    }
    for (; rlhf__digit_at(c, 0); c->at++)
        if (e <= RLHF__DECIMAL_EXPONENT) e = 10 * e + (*c->at - '0');
    if (e > RLHF__DECIMAL_EXPONENT) c->over = 1;
    *out = sign < 0 ? -e : e;
    return 1;
}

int rlhf__take_raised(struct rlhf__cursor *c, int64_t *out) {
    if (!rlhf__take(c, "^")) return 0;
    if (!rlhf__take(c, "{")) return take_power(c, out);
    rlhf__skip_spaces(c);
    if (!take_power(c, out)) return 0;
    rlhf__skip_spaces(c);
    return rlhf__take(c, "}");
}

// Moves past an exponent after the digits: "e-3" or " x 10^{-3}".
static void take_exponent(struct rlhf__cursor *c, struct rlhf__answer_decimal *x) {
    const struct rlhf__cursor before = *c;
    int64_t e = 0;
    if (rlhf__take(c, "e") || rlhf__take(c, "E")) {
        if (take_power(c, &e))
            x->exponent += e;
        else
            *c = before;
        return;
    }
    rlhf__skip_spaces(c);
    if (rlhf__take(c, "\xc3\x97") || rlhf__take(c, "\xc2\xb7") || rlhf__take(c, "x") ||
        rlhf__take(c, "*")) { // times, dot
        rlhf__skip_spaces(c);
        if (rlhf__take(c, "10") && rlhf__take_raised(c, &e)) {
            x->exponent += e;
            return;
        }
    }
    *c = before;
}

// Reads a decimal number into *x: digits with separators, a point with digits, an exponent. Sets
// *integer to 1 if the number has no decimal point, else to 0. Returns 1, or 0 if no number is at
// the cursor.
static int take_decimal(struct rlhf__cursor *c, struct rlhf__answer_decimal *x, int *integer) {
    const struct rlhf__cursor before = *c;
    int64_t e;
    *x = (struct rlhf__answer_decimal){.sign = 1};
    *integer = 1;
    if (rlhf__digit_at(c, 0)) take_integer(c, x);
    if (rlhf__left(c) && *c->at == '.' && rlhf__digit_at(c, 1)) {
        const char *point = c->at++;
        *integer = 0;
        while (rlhf__digit_at(c, 0))
            push(c, x);
        x->exponent = -(c->at - point - 1);
    }
    if (c->at == before.at) return 0;
    if (c->at - before.at == 2 && memcmp(before.at, "10", 2) == 0) { // only a power of ten
        const struct rlhf__cursor ten = *c;
        if (rlhf__take_raised(c, &e)) {
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

// Moves past one argument of \frac: "{12}", or a single digit.
static int take_part(struct rlhf__cursor *c, struct rlhf__answer_decimal *x) {
    int integer;
    rlhf__skip_spaces(c);
    if (rlhf__digit_at(c, 0)) {
        rlhf__decimal_set(x, *c->at++ - '0');
        return 1;
    }
    if (!rlhf__take(c, "{")) return 0;
    rlhf__skip_spaces(c);
    const int32_t sign = rlhf__take_sign(c);
    rlhf__skip_spaces(c);
    if (!take_decimal(c, x, &integer)) return 0;
    if (sign < 0) x->sign = -x->sign;
    rlhf__skip_spaces(c);
    return rlhf__take(c, "}");
}

static int take_vulgar(struct rlhf__cursor *c, struct rlhf__ratio *out) {
    static const struct {
        char text[4];
        int8_t num, den;
    } all[] = {{"\xc2\xbc", 1, 4},     {"\xc2\xbd", 1, 2},     {"\xc2\xbe", 3, 4},
               {"\xe2\x85\x90", 1, 7}, {"\xe2\x85\x91", 1, 9}, {"\xe2\x85\x93", 1, 3},
               {"\xe2\x85\x94", 2, 3}, {"\xe2\x85\x95", 1, 5}, {"\xe2\x85\x96", 2, 5},
               {"\xe2\x85\x97", 3, 5}, {"\xe2\x85\x98", 4, 5}, {"\xe2\x85\x99", 1, 6},
               {"\xe2\x85\x9a", 5, 6}, {"\xe2\x85\x9b", 1, 8}, {"\xe2\x85\x9c", 3, 8},
               {"\xe2\x85\x9d", 5, 8}, {"\xe2\x85\x9e", 7, 8}};
    if (!rlhf__left(c) || (unsigned char)*c->at < 0xc2) return 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char word[5] = "";
        memcpy(word, all[i].text, 4);
        if (!rlhf__take(c, word)) continue;
        rlhf__decimal_set(&out->num, all[i].num);
        rlhf__decimal_set(&out->den, all[i].den);
        return 1;
    }
    return 0;
}

// Moves past \frac{3}{4} or a fraction character.
static int take_fraction(struct rlhf__cursor *c, struct rlhf__ratio *out) {
    const struct rlhf__cursor before = *c;
    if (take_vulgar(c, out)) return 1;
    if (rlhf__take(c, "\\frac") && take_part(c, &out->num) && take_part(c, &out->den) &&
        out->den.sign) {
        if (out->den.sign < 0) out->num.sign = -out->num.sign;
        out->den.sign = 1;
        return 1;
    }
    *c = before;
    return 0;
}

// Moves past "/4" after a numerator. Returns -1 if the denominator makes the fraction invalid.
static int take_denominator(struct rlhf__cursor *c, struct rlhf__answer_decimal *den) {
    const struct rlhf__cursor before = *c;
    int integer;
    if (c->loose) rlhf__skip_spaces(c);
    if (rlhf__take(c, "/")) {
        if (c->loose) rlhf__skip_spaces(c);
        if ((rlhf__digit_at(c, 0) || (rlhf__left(c) && *c->at == '.' && rlhf__digit_at(c, 1))) &&
            take_decimal(c, den, &integer))
            return den->sign ? 1 : -1;
    }
    *c = before;
    return 0;
}

// Moves past " 1/2" or "\frac{1}{2}" after an integer. The fraction must be below one, so that two
// separate numbers are not joined.
static int take_rest_of_mixed(struct rlhf__cursor *c, struct rlhf__ratio *part) {
    const struct rlhf__cursor before = *c;
    const int spaced = rlhf__take_space(c);
    int integer;
    if (take_fraction(c, part) && part->num.sign > 0 && rlhf__ratio_value(part, 0) < 1) return 1;
    if (spaced && rlhf__digit_at(c, 0) && take_decimal(c, &part->num, &integer) && integer &&
        take_denominator(c, &part->den) > 0 && rlhf__ratio_value(part, 0) < 1)
        return 1;
    *c = before;
    return 0;
}

// Moves past the rest of a number such as 0.1\overline{6}, of which 0.1 was read. Sets *out to the
// number. Returns 0 if there is no such rest.
static int take_repeating(struct rlhf__cursor *c, const struct rlhf__answer_decimal *first,
                          struct rlhf__ratio *out) {
    const struct rlhf__cursor before = *c;
    struct rlhf__ratio part = {.num = {.sign = 1}, .den = {.sign = 1}};
    const char *point = c->at;
    while (point > c->begin && rlhf__is_digit(point[-1]))
        point--;
    const int decimals = point > c->begin && point[-1] == '.' ? (int)(c->at - point) : 0;
    if ((decimals || rlhf__take(c, ".")) && rlhf__take(c, "\\overline{") && rlhf__digit_at(c, 0)) {
        while (rlhf__digit_at(c, 0))
            push(c, &part.num);
        part.num.exponent = -decimals;
        part.den.n = part.num.n;
        memset(part.den.digit, '9', (size_t)part.den.n);
        rlhf__decimal_settle(&part.num);
        if (rlhf__take(c, "}")) {
            if (!rlhf__ratio_add(first, &part, out)) c->over = 1;
            return 1;
        }
    }
    *c = before;
    return 0;
}

int rlhf__take_magnitude(struct rlhf__cursor *c, struct rlhf__ratio *out) {
    struct rlhf__ratio part;
    struct rlhf__answer_decimal first;
    int integer;
    c->over = 0;
    if (take_fraction(c, out)) return c->over ? -1 : 1;
    if (!take_decimal(c, &first, &integer)) return 0;
    out->num = first;
    rlhf__decimal_set(&out->den, 1);
    if (take_repeating(c, &first, out)) return c->over ? -1 : 1;
    const int stroke = take_denominator(c, &out->den);
    if (stroke == 0 && integer && take_rest_of_mixed(c, &part) && !c->over &&
        !rlhf__ratio_add(&first, &part, out))
        c->over = 1;
    return stroke < 0 || c->over ? -1 : 1;
}
