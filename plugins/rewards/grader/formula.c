// formula.c: see formula.h.
#include "grader/formula.h"

#include <rlhf/exact.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64, LONGEST_NAME = 64 };

enum op { NUMBER, NAME, ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, NEGATE, FUNCTION };

// In the order of `names`; MIN and MAX combine two values, the others change one.
enum function { MIN, MAX, ABS, FLOOR, CEIL, EXP, SQRT, LOG, N_FUNCTIONS };
static const char *const names[] = {"min", "max", "abs", "floor", "ceil", "exp", "sqrt", "log"};

struct reader {
    struct rlhf__formula *f;
    const char *begin, *at;
    const char *const *name;
    uint32_t n, depth, stack;
    char *why;
    size_t cap;
};

static int function_of(const char *text, size_t n) {
    for (int i = 0; i < N_FUNCTIONS; i++)
        if (strlen(names[i]) == n && memcmp(names[i], text, n) == 0) return i;
    return -1;
}

int rlhf__formula_is_function(const char *text) { return function_of(text, strlen(text)) >= 0; }

static int refuse(struct reader *r, const char *what) {
    snprintf(r->why, r->cap, "%s at character %zu", what, (size_t)(r->at - r->begin));
    return 0;
}

static int add(struct reader *r, int op, uint32_t name, double number) {
    struct rlhf__formula *f = r->f;
    if (f->n == RLHF__FORMULA_STEPS) return refuse(r, "it has more than 1024 parts");
    if (op == NUMBER || op == NAME) {
        if (++r->stack > RLHF__FORMULA_STACK) return refuse(r, "it is nested too deep");
    } else if (op != NEGATE && (op != FUNCTION || name <= MAX))
        r->stack--;
    f->step[f->n].op = op;
    f->step[f->n].name = name;
    f->step[f->n++].number = number;
    return 1;
}

static char peek(struct reader *r) {
    r->at += strspn(r->at, " \t\r\n");
    return *r->at;
}

static int take(struct reader *r, char c) {
    if (peek(r) != c) return 0;
    r->at++;
    return 1;
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int read_sum(struct reader *r);

// A number in decimal notation. strtod alone would also accept "inf" and "0x1".
static int read_number(struct reader *r) {
    const char *from = r->at, *at = from;
    char *end;
    while (is_digit(*at) || *at == '.')
        at++;
    const double x = strtod(from, &end);
    if (end < at || (from[0] == '0' && (from[1] == 'x' || from[1] == 'X')))
        return refuse(r, "no number");
    if (!isfinite(x)) return refuse(r, "a number that is too large");
    r->at = end;
    if (is_letter(*end) || *end == '.') return refuse(r, "no number");
    return add(r, NUMBER, 0, x);
}

static int read_call(struct reader *r, int function) {
    uint32_t n = 0;
    do {
        if (!read_sum(r)) return 0;
        n++;
        if (n > 1 && function > MAX) return refuse(r, "a second argument of a function of one");
        if (n > 1 && !add(r, FUNCTION, (uint32_t)function, 0)) return 0;
    } while (take(r, ','));
    if (!take(r, ')')) return refuse(r, "no \")\"");
    return function <= MAX || add(r, FUNCTION, (uint32_t)function, 0);
}

static int read_name(struct reader *r) {
    const char *from = r->at;
    char text[160];
    while (is_letter(*r->at) || is_digit(*r->at))
        r->at++;
    const size_t n = (size_t)(r->at - from);
    const int function = function_of(from, n);
    if (function >= 0 && take(r, '(')) return read_call(r, function);
    for (uint32_t i = 0; i < r->n; i++)
        if (strlen(r->name[i]) == n && memcmp(r->name[i], from, n) == 0) return add(r, NAME, i, 0);
    r->at = from;
    snprintf(text, sizeof text,
             "\"%.*s\", which is not the name of a grader or of a function (min, max, abs, floor, "
             "ceil, exp, sqrt, log),",
             (int)(n < LONGEST_NAME ? n : LONGEST_NAME), from);
    return refuse(r, text);
}

static int read_one(struct reader *r) {
    const char c = peek(r);
    if (is_digit(c) || c == '.') return read_number(r);
    if (is_letter(c)) return read_name(r);
    if (!take(r, '(')) return refuse(r, c ? "an unexpected character" : "its end, too early,");
    if (!read_sum(r)) return 0;
    return take(r, ')') || refuse(r, "no \")\"");
}

// - and + bind weaker than ^ on their right.
static int read_signed(struct reader *r);

static int read_power(struct reader *r) {
    if (!read_one(r)) return 0;
    if (!take(r, '^')) return 1;
    return read_signed(r) && add(r, POWER, 0, 0);
}

static int read_signed(struct reader *r) {
    if (++r->depth > DEEPEST) return refuse(r, "more than 64 levels");
    const int minus = take(r, '-');
    int ok;
    if (minus || take(r, '+'))
        ok = read_signed(r) && (!minus || add(r, NEGATE, 0, 0));
    else
        ok = read_power(r);
    r->depth--;
    return ok;
}

static int read_product(struct reader *r) {
    if (!read_signed(r)) return 0;
    for (;;) {
        const char c = peek(r);
        if (c != '*' && c != '/') return 1;
        r->at++;
        if (c == '*' && *r->at == '*') return refuse(r, "\"**\" (a power is written ^)");
        if (!read_signed(r) || !add(r, c == '*' ? MULTIPLY : DIVIDE, 0, 0)) return 0;
    }
}

static int read_sum(struct reader *r) {
    if (++r->depth > DEEPEST) return refuse(r, "more than 64 levels");
    if (!read_product(r)) return 0;
    for (;;) {
        const char c = peek(r);
        if (c != '+' && c != '-') break;
        r->at++;
        if (!read_product(r) || !add(r, c == '+' ? ADD : SUBTRACT, 0, 0)) return 0;
    }
    r->depth--;
    return 1;
}

int rlhf__formula_read(struct rlhf__formula *f, const char *text, const char *const *name,
                       uint32_t n, char *why, size_t cap) {
    struct reader r = {
        .f = f, .begin = text, .at = text, .name = name, .n = n, .why = why, .cap = cap};
    f->n = 0;
    if (!read_sum(&r)) return 0;
    return peek(&r) == 0 || refuse(&r, "an unexpected character");
}

// ---- the value ----

static double call(uint32_t function, double x) {
    switch (function) {
    case ABS:
        return fabs(x);
    case FLOOR:
        return floor(x);
    case CEIL:
        return ceil(x);
    case EXP:
        return rlhf_exp(x);
    case SQRT:
        return sqrt(x);
    default:
        return rlhf_log(x);
    }
}

static double combine(int op, uint32_t function, double x, double y) {
    switch (op) {
    case ADD:
        return x + y;
    case SUBTRACT:
        return x - y;
    case MULTIPLY:
        return x * y;
    case DIVIDE:
        return y == 0 ? (double)NAN : x / y;
    case POWER:
        return rlhf_pow(x, y);
    default: // a value that is not defined stays so, unlike in fmin
        if (isnan(x) || isnan(y)) return (double)NAN;
        return (function == MIN) == (x < y) ? x : y;
    }
}

double rlhf__formula_value(const struct rlhf__formula *f, const double *value) {
    double stack[RLHF__FORMULA_STACK + 1] = {(double)NAN};
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const int op = f->step[i].op;
        const uint32_t name = f->step[i].name;
        if (op == NUMBER || op == NAME)
            stack[n++] = op == NUMBER ? f->step[i].number : value[name];
        else if (op == NEGATE)
            stack[n - 1] = -stack[n - 1];
        else if (op == FUNCTION && name > MAX)
            stack[n - 1] = call(name, stack[n - 1]);
        else {
            n--;
            stack[n - 1] = combine(op, name, stack[n - 1], stack[n]);
        }
    }
    return stack[0];
}
