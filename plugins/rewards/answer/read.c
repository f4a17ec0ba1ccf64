// read.c: see read.h.
#include "answer/read.h"

#include "answer/number.h"
#include "answer/terms.h"
#include "answer/units.h"
#include "answer/words.h"

#include <string.h>

// ---- around a number ----

// Moves past " million", "%" or " percent" after a number.
static void take_suffix(struct rlhf__cursor *c, struct rlhf__answer_reading *out) {
    const int32_t power = rlhf__take_scale(c);
    if (power && out->value.num.sign) out->value.num.exponent += power;
    const struct rlhf__cursor before = *c;
    while (rlhf__take_space(c))
        continue;
    out->percent = !power && (rlhf__take(c, "%") || rlhf__take_word(c, "percent"));
    if (!out->percent) *c = before;
}

static const char *const money[] = {"$",   "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5", "\xe2\x82\xb9",
                                    "US$", "USD",          "EUR",      "GBP",      "Rs."};
enum { MONEY = sizeof money / sizeof *money, MONEY_SIGNS = 5 };

static int take_currency(struct rlhf__cursor *c) {
    for (size_t i = 0; i < MONEY; i++)
        if (rlhf__take(c, money[i])) return 1;
    return 0;
}

static int32_t take_any_sign(struct rlhf__cursor *c) {
    const int32_t sign = rlhf__take_sign(c);
    return sign ? sign : rlhf__take_sign_word(c);
}

// ---- a number alone ----

int rlhf__has_term(rlhf_str text) {
    for (uint64_t i = 1; i < text.len; i++)
        if (rlhf__is_digit(text.ptr[i - 1]) &&
            rlhf__has_variable(text.ptr + i, text.ptr + text.len))
            return 1;
    return 0;
}

int rlhf__read_whole(rlhf_str text, int units, struct rlhf__answer_reading *out) {
    struct rlhf__cursor c = {text.ptr, text.ptr, text.ptr + text.len, 0, 1};
    memset(out, 0, sizeof *out);
    rlhf__skip_spaces(&c);
    int32_t sign = take_any_sign(&c);
    rlhf__skip_spaces(&c);
    if (units && take_currency(&c)) rlhf__skip_spaces(&c);
    if (!sign) sign = take_any_sign(&c);
    if (rlhf__take_magnitude(&c, &out->value) <= 0) return 0;
    take_suffix(&c, out);
    out->term = rlhf__has_factor(&c) || rlhf__next_is(&c, "(") || rlhf__next_is(&c, "^") ||
                rlhf__has_unknown_symbol(&c) || rlhf__is_changed(&c, 1);
    if (out->term) return 0;
    rlhf__skip_spaces(&c);
    if (units ? !rlhf__rest_is_unit(&c) : rlhf__left(&c)) return 0;
    if (sign < 0) out->value.num.sign = -out->value.num.sign;
    return 1;
}

// ---- numbers inside a text ----

// 1 if a sign at `at` belongs to the number after it, and is not a subtraction. `word`: the sign is
// a word, before which a word may be, but not a variable.
static int is_sign(const struct rlhf__cursor *c, const char *at, int word) {
    while (word && at > c->begin && rlhf__is_space(at[-1]))
        at--;
    if (at == c->begin) return 1;
    if (rlhf__is_digit(at[-1]) || rlhf__is_one_of(at[-1], ")}]%$")) return !word && at[-1] == '$';
    if (!rlhf__is_letter(at[-1])) return 1;
    return word && at - c->begin > 1 && rlhf__is_letter(at[-2]);
}

// Returns the sign of the number that begins at `at`. A currency sign may be between the sign and
// the number. The 3 in "5-3" has no sign.
static int32_t sign_before(const struct rlhf__cursor *c, const char *at) {
    for (size_t i = 0; i < MONEY_SIGNS; i++) {
        const size_t n = strlen(money[i]);
        if ((size_t)(at - c->begin) < n || memcmp(at - n, money[i], n) != 0) continue;
        at -= n;
        break;
    }
    const char *word = rlhf__sign_word_before(c, at);
    if (word) return is_sign(c, word, 1) ? -1 : 1;
    return at > c->begin && at[-1] == '-' && is_sign(c, at - 1, 0) ? -1 : 1;
}

static int may_begin(const struct rlhf__cursor *c) {
    return rlhf__digit_at(c, 0) || (*c->at == '.' && rlhf__digit_at(c, 1)) || *c->at == '\\' ||
           (unsigned char)*c->at == 0xc2 || (unsigned char)*c->at == 0xe2;
}

// Reads the number at the cursor. Returns 0 if there is none, or if it is a part of a term; the
// cursor then moves past what is not a number.
static int take_number(struct rlhf__cursor *c, struct rlhf__answer_reading *out) {
    const char *begin = c->at;
    *out = (struct rlhf__answer_reading){0};
    const int32_t sign = sign_before(c, begin);
    const int taken = rlhf__take_magnitude(c, &out->value);
    if (taken == 0 && c->at == begin && !rlhf__take_term(c)) c->at++;
    if (taken == 0 || rlhf__take_torn(c) || taken < 0) return 0;
    if (rlhf__has_factor(c)) return 0;
    take_suffix(c, out);
    if (rlhf__is_changed(c, 0)) return 0;
    out->value.num.sign *= sign;
    return 1;
}

static int find(rlhf_str text, int last, struct rlhf__answer_reading *out) {
    struct rlhf__cursor c = {text.ptr, text.ptr, text.ptr + text.len, 0, 0};
    struct rlhf__answer_reading r;
    int found = 0;
    while (rlhf__left(&c) && (last || !found)) {
        if (rlhf__next_is(&c, "^") || rlhf__next_is(&c, "_{"))
            rlhf__take_term(&c);
        else if (!may_begin(&c) || (rlhf__is_part(&c) && !rlhf__take_term(&c)))
            c.at++;
        else if (take_number(&c, &r)) {
            *out = r;
            found = 1;
        }
    }
    return found;
}

int rlhf__read_first(rlhf_str text, struct rlhf__answer_reading *out) { return find(text, 0, out); }
int rlhf__read_last(rlhf_str text, struct rlhf__answer_reading *out) { return find(text, 1, out); }
