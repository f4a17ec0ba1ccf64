// read.c: see read.h.
#include "answer/read.h"

#include "answer/number.h"

#include <string.h>

// ---- around a number ----

static int take_word(struct rlhf__cursor *c, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n) return 0;
    for (size_t i = 0; i < n; i++)
        if (rlhf__lower(c->at[i]) != word[i]) return 0;
    if ((size_t)(c->end - c->at) > n && rlhf__is_letter(c->at[n])) return 0;
    c->at += n;
    return 1;
}

// Moves past "%", " percent" or " million" after a number.
static void take_suffix(struct rlhf__cursor *c, struct rlhf__reading *out) {
    static const struct {
        const char *word;
        int32_t power, reserved;
    } scales[] = {{"hundred", 2, 0},
                  {"thousand", 3, 0},
                  {"million", 6, 0},
                  {"billion", 9, 0},
                  {"trillion", 12, 0}};
    const struct rlhf__cursor before = *c;
    while (rlhf__take_space(c))
        continue;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (take_word(c, scales[i].word)) {
            if (out->value.num.sign) out->value.num.exponent += scales[i].power;
            return;
        }
    out->percent = rlhf__take(c, "%") || take_word(c, "percent");
    if (!out->percent) *c = before;
}

static int take_currency(struct rlhf__cursor *c) {
    static const char *const all[] = {"$",   "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5", "\xe2\x82\xb9",
                                      "US$", "USD",          "EUR",      "GBP",      "Rs."};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (rlhf__take(c, all[i])) return 1;
    return 0;
}

// Returns 1 if the one or two letters are the symbol of a unit, or the ending of an ordinal number
// (1st).
static int is_symbol(const char *word, size_t n, int joined) {
    static const char all[] = " m g s h l L N J W V A K C F cm mm km dm nm um kg mg ug ml mL dl dL "
                              "cl cL kL ft in yd mi lb"
                              " oz hr hp Hz Pa kW MW kJ MJ kN eV mA mV ms ns us GB MB KB kB TB am "
                              "pm AM PM st nd rd th pt "
                              "qt ha cc ct Rs ";
    char padded[5] = " ";
    if (joined && n == 1 && *word == 'K') return 0; // 5K means five thousand
    memcpy(padded + 1, word, n);
    padded[n + 1] = ' ';
    padded[n + 2] = 0;
    return strstr(all, padded) != NULL;
}

static size_t letters(const char *at, const char *end) {
    size_t n = 0;
    while (at + n < end && rlhf__is_letter(at[n]))
        n++;
    return n;
}

// Returns 1 if a number is directly followed by one or two letters that are not the symbol of a
// unit: 5x.
static int has_variable(const char *at, const char *end) {
    const size_t n = letters(at, end);
    return n > 0 && n < 3 && !is_symbol(at, n, 1);
}

int rlhf__has_term(rlhf_str text) {
    for (uint64_t i = 1; i < text.len; i++)
        if (rlhf__is_digit(text.ptr[i - 1]) && has_variable(text.ptr + i, text.ptr + text.len))
            return 1;
    return 0;
}

// 1 if a factor follows a number: 5\pi.
static int is_factor(const struct rlhf__cursor *c) {
    static const char *const all[] = {"\\pi",     "\\sqrt",   "\\theta",      "\\alpha",
                                      "\\beta",   "\\ln",     "\\log",        "\\sin",
                                      "\\cos",    "\\tan",    "\\exp",        "\xcf\x80",
                                      "\xce\xb8", "\xce\xb1", "\xe2\x88\x9a", "\xe2\x88\x9e"};
    struct rlhf__cursor here = *c;
    rlhf__skip_spaces(&here);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (rlhf__next_is(&here, all[i])) return 1;
    return 0;
}

// 1 at a full stop, comma or the like that ends a sentence or a part of one.
static int is_pause(const char *at, const char *end) {
    return rlhf__is_one_of(*at, ".,;:!?") && (at + 1 == end || rlhf__is_space(at[1]));
}

// Returns 1 if the text after a number makes the number a part of a term. There are two cases: the
// text begins with a factor, a variable or "("; or its part before the next pause contains an
// unknown symbol of one or two letters, but no word of three or more letters.
static int is_term(const struct rlhf__cursor *c) {
    size_t unknown = 0, longest = 0;
    if (is_factor(c) || has_variable(c->at, c->end) || rlhf__next_is(c, "(")) return 1;
    for (const char *at = c->at; at < c->end && !is_pause(at, c->end); at++) {
        const size_t n = letters(at, c->end);
        if (!n) continue;
        if (n > longest) longest = n;
        unknown += n < 3 && !is_symbol(at, n, 0);
        at += n - 1;
    }
    return unknown > 0 && longest < 3;
}

// Returns 1 if the rest of the text is a unit: words, or symbols such as "km/h" and "cm^2". Digits
// are allowed only in an exponent, and operators such as + are not allowed.
static int rest_is_unit(struct rlhf__cursor *c) {
    int64_t power;
    char before = ' ';
    while (rlhf__left(c)) {
        const char here = *c->at;
        if (here == '^') {
            if (!rlhf__is_letter(before) && before != ')') return 0;
            if (!rlhf__take_raised(c, &power)) return 0;
        } else if (here == '-') { // a hyphen between two words
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
    struct rlhf__cursor c = {text.ptr, text.ptr, text.ptr + text.len, 0, 1};
    memset(out, 0, sizeof *out);
    rlhf__skip_spaces(&c);
    int32_t sign = rlhf__take_sign(&c);
    rlhf__skip_spaces(&c);
    if (units && take_currency(&c)) rlhf__skip_spaces(&c);
    if (!sign) sign = rlhf__take_sign(&c);
    if (rlhf__take_magnitude(&c, &out->value) <= 0) return 0;
    take_suffix(&c, out);
    out->term = is_term(&c);
    if (out->term) return 0;
    rlhf__skip_spaces(&c);
    if (units ? !rest_is_unit(&c) : rlhf__left(&c)) return 0;
    if (sign < 0) out->value.num.sign = -out->value.num.sign;
    return 1;
}

// ---- numbers inside a text ----

static int before_is(const struct rlhf__cursor *c, const char *at, const char *word) {
    const size_t n = strlen(word);
    return (size_t)(at - c->begin) >= n && memcmp(at - n, word, n) == 0;
}

// Returns 1 if the text before the cursor shows that the digits at the cursor are a part of
// something longer, such as a word.
static int is_part(const struct rlhf__cursor *c) {
    const char *at = c->at;
    if (at == c->begin) return 0;
    const char before = at[-1];
    if (rlhf__is_letter(before) || rlhf__is_digit(before) || before == '_' || before == '^')
        return 1;
    if (before == '.' && at - c->begin > 1 && rlhf__is_digit(at[-2])) return 1;
    return before_is(c, at, "^{") || before_is(c, at, "_{") || before_is(c, at, "^-") ||
           before_is(c, at, "^{-") || before_is(c, at, "_{-");
}

// Returns the sign of the number that begins at `at`. A currency sign may be between the sign and
// the number. The 3 in "5-3" has no sign.
static int32_t sign_before(const struct rlhf__cursor *c, const char *at) {
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

// Skips the rest of a form that only begins like a number, such as ".3" in 1.2.3, "/3" in 1/2/3, or
// "^5" in 2^5. Returns 1 if there was such a rest.
static int take_torn(struct rlhf__cursor *c) {
    const int torn = rlhf__left(c) &&
                     (*c->at == '^' || ((*c->at == '.' || *c->at == '/') && rlhf__digit_at(c, 1)));
    while (torn && rlhf__left(c) && (rlhf__is_digit(*c->at) || rlhf__is_one_of(*c->at, "./^{}-")))
        c->at++;
    return torn;
}

static int may_begin(const struct rlhf__cursor *c) {
    return rlhf__digit_at(c, 0) || (*c->at == '.' && rlhf__digit_at(c, 1)) || *c->at == '\\' ||
           (unsigned char)*c->at == 0xc2 || (unsigned char)*c->at == 0xe2;
}

static int find(rlhf_str text, int last, struct rlhf__reading *out) {
    struct rlhf__cursor c = {text.ptr, text.ptr, text.ptr + text.len, 0, 0};
    int found = 0;
    while (rlhf__left(&c)) {
        struct rlhf__reading r = {0};
        const char *begin = c.at;
        if (!may_begin(&c) || is_part(&c)) {
            c.at++;
            continue;
        }
        const int32_t sign = sign_before(&c, begin);
        const int taken = rlhf__take_magnitude(&c, &r.value);
        if (c.at == begin) c.at++;
        if (taken == 0 || take_torn(&c) || taken < 0) continue;
        if (has_variable(c.at, c.end) || is_factor(&c)) continue;
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
