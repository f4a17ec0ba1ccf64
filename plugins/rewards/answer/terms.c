// terms.c: see terms.h.
#include "answer/terms.h"

#include "answer/units.h"

// ---- terms of TeX ----

enum { LONGEST_GROUP = 1000 }; // bytes; TeX that never closes a brace must not hide the rest

// Moves past a group in braces or brackets. Returns 0 if there is none.
static int take_group(struct rlhf__cursor *c, char open, char close) {
    int depth = 0;
    if (!rlhf__left(c) || *c->at != open) return 0;
    for (const char *at = c->at; at < c->end && at - c->at < LONGEST_GROUP; at++) {
        depth += (*at == open) - (*at == close);
        if (depth) continue;
        c->at = at + 1;
        return 1;
    }
    return 0;
}

// Moves past exponents and indices: "_2", "^{-1}".
static int take_scripts(struct rlhf__cursor *c) {
    const char *begin = c->at;
    while (rlhf__left(c) && (*c->at == '^' || *c->at == '_')) {
        c->at++;
        if (take_group(c, '{', '}')) continue;
        rlhf__take_sign(c);
        while (rlhf__digit_at(c, 0))
            c->at++;
    }
    return c->at > begin;
}

// Moves past one argument: a group, or the digits after spaces.
static void take_argument(struct rlhf__cursor *c) {
    rlhf__skip_spaces(c);
    if (take_group(c, '{', '}') || take_group(c, '(', ')')) return;
    while (rlhf__left(c) && (rlhf__is_digit(*c->at) || (*c->at == '.' && rlhf__digit_at(c, 1))))
        c->at++;
}

static int take_function(struct rlhf__cursor *c) {
    static const struct {
        const char *name;
        int arguments;
    } all[] = {{"sqrt", 1},   {"log", 1},    {"ln", 1},    {"lg", 1},      {"exp", 1},
               {"sin", 1},    {"cos", 1},    {"tan", 1},   {"cot", 1},     {"sec", 1},
               {"csc", 1},    {"sinh", 1},   {"cosh", 1},  {"tanh", 1},    {"arcsin", 1},
               {"arccos", 1}, {"arctan", 1}, {"gcd", 1},   {"lcm", 1},     {"pmod", 1},
               {"bmod", 1},   {"mod", 1},    {"binom", 2}, {"dbinom", 2},  {"tbinom", 2},
               {"frac", 2},   {"max", 1},    {"min", 1},   {"overline", 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const size_t n = strlen(all[i].name);
        if ((size_t)(c->end - c->at) < n + 1 || memcmp(c->at + 1, all[i].name, n) != 0) continue;
        if (c->at + n + 1 < c->end && rlhf__is_letter(c->at[n + 1])) continue;
        c->at += n + 1;
        rlhf__skip_spaces(c);
        take_group(c, '[', ']');
        take_scripts(c);
        for (int k = 0; k < all[i].arguments; k++)
            take_argument(c);
        return 1;
    }
    return 0;
}

int rlhf__take_term(struct rlhf__cursor *c) {
    if (!rlhf__left(c)) return 0;
    if (*c->at == '\\') return take_function(c);
    return (rlhf__next_is(c, "^") || rlhf__next_is(c, "_{")) && take_scripts(c);
}

// ---- before a number ----

static int before_is(const struct rlhf__cursor *c, const char *at, const char *word) {
    const size_t n = strlen(word);
    return (size_t)(at - c->begin) >= n && memcmp(at - n, word, n) == 0;
}

// 1 if "log ", "sqrt(" or the like is before the digits at `at`.
static int is_argument(const struct rlhf__cursor *c, const char *at) {
    static const char *const all[] = {"sqrt", "log", "ln",  "lg",  "exp", "sin",
                                      "cos",  "tan", "cot", "sec", "csc"};
    if (before_is(c, at, "\xc2\xb1") || before_is(c, at, "\xc2\xb1 ")) return 1; // plus or minus
    if (before_is(c, at, "\\pm") || before_is(c, at, "\\pm ")) return 1;
    while (at > c->begin && (rlhf__is_space(at[-1]) || at[-1] == '('))
        at--;
    if (before_is(c, at, "\xe2\x88\x9a") || before_is(c, at, "\xe2\x88\x9b")) return 1; // roots
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *word = at - strlen(all[i]);
        if (before_is(c, at, all[i]) && (word == c->begin || !rlhf__is_letter(word[-1]))) return 1;
    }
    return 0;
}

// 1 if the "_" before the digits is an index, and not emphasis of Markdown.
static int is_index(const struct rlhf__cursor *c, const char *at) {
    return at > c->begin &&
           (rlhf__is_letter(at[-1]) || rlhf__is_digit(at[-1]) || rlhf__is_one_of(at[-1], ")]}"));
}

int rlhf__is_part(const struct rlhf__cursor *c) {
    const char *at = c->at;
    if (at == c->begin) return 0;
    const char before = at[-1];
    const int more = at - c->begin > 1;
    if (rlhf__is_letter(before) || rlhf__is_digit(before) || before == '^') return 1;
    if (before == '_') return is_index(c, at - 1);
    if (before == '.' && more && rlhf__is_digit(at[-2])) return 1;
    if (before == '/' && more && !rlhf__is_space(at[-2])) return 1; // x/2; 1/2 is read as a whole
    return is_argument(c, at);
}

// ---- after a number ----

// 1 if the "!" at the cursor is a factorial, and not the end of a sentence: the formula goes on, or
// ends with it.
static int is_factorial(const struct rlhf__cursor *c) {
    static const char operators[] =
        "+-*/=^>\\\xc2\xc3"; // the last two begin the times sign and the like
    const char *at = c->at;
    while (at < c->end && rlhf__is_one_of(*at, "!*_\"'"))
        at++;
    if (at == c->end) return 0;
    if (!rlhf__is_space(*at))
        return rlhf__is_letter(*at) || rlhf__is_digit(*at) || rlhf__is_one_of(*at, "$)},;") ||
               rlhf__is_one_of(*at, operators);
    while (at < c->end && rlhf__is_space(*at) && *at != '\n')
        at++;
    return at < c->end &&
           (rlhf__is_digit(*at) || (*at >= 'a' && *at <= 'z') || rlhf__is_one_of(*at, operators));
}

int rlhf__take_torn(struct rlhf__cursor *c) {
    struct rlhf__cursor here = *c;
    while (rlhf__left(&here) && rlhf__is_one_of(*here.at, ")}"))
        here.at++;
    if (rlhf__next_is(&here, "^")) {
        *c = here;
        return take_scripts(c);
    }
    if (rlhf__next_is(c, "!") && is_factorial(c)) {
        c->at++;
        return 1;
    }
    const int torn = rlhf__left(c) && rlhf__is_one_of(*c->at, "./") && rlhf__digit_at(c, 1);
    while (torn && rlhf__left(c) && (rlhf__is_digit(*c->at) || rlhf__is_one_of(*c->at, "./")))
        c->at++;
    return torn;
}

int rlhf__has_factor(const struct rlhf__cursor *c) {
    static const char *const all[] = {"\\pi",     "\\sqrt",   "\\theta",      "\\alpha",
                                      "\\beta",   "\\ln",     "\\log",        "\\sin",
                                      "\\cos",    "\\tan",    "\\exp",        "\xcf\x80",
                                      "\xce\xb8", "\xce\xb1", "\xe2\x88\x9a", "\xe2\x88\x9e"};
    struct rlhf__cursor here = *c;
    if (rlhf__has_variable(c->at, c->end)) return 1;
    rlhf__skip_spaces(&here);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (rlhf__next_is(&here, all[i])) return 1;
    return 0;
}
