// sum.c: see sum.h.
#include "sum.h"

#include <stddef.h>

enum { DEEPEST = 32 };

struct reader {
    const char *at, *end;
    const char *why; // the first error; NULL = none
    int depth;
};

static int64_t sum(struct reader *r);

static int64_t wrong(struct reader *r, const char *why) {
    if (!r->why) r->why = why;
    return 0;
}

static void skip_spaces(struct reader *r) {
    while (r->at < r->end && *r->at == ' ')
        r->at++;
}

// Moves past the character c if it is next.
static int take(struct reader *r, char c) {
    skip_spaces(r);
    if (r->why || r->at == r->end || *r->at != c) return 0;
    r->at++;
    return 1;
}

static int64_t bounded(struct reader *r, int64_t v) {
    return v > RLHF__SUM_MOST || v < -RLHF__SUM_MOST ? wrong(r, "the number is too large") : v;
}

static int64_t number(struct reader *r) {
    int64_t v = 0;
    const char *from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && !r->why)
        v = bounded(r, 10 * v + (*r->at++ - '0'));
    return r->at == from ? wrong(r, "it is no sum of whole numbers") : v;
}

static int64_t factor(struct reader *r) {
    int64_t v;
    if (++r->depth > DEEPEST) return wrong(r, "it has too many brackets");
    if (take(r, '-')) {
        v = -factor(r);
    } else if (take(r, '(')) {
        v = sum(r);
        if (!take(r, ')')) wrong(r, "a bracket is not closed");
    } else {
        v = number(r);
    }
    r->depth--;
    return v;
}

static int64_t divided(struct reader *r, int64_t v, int64_t by) {
    if (r->why) return 0;
    if (by == 0) return wrong(r, "it divides by zero");
    return v % by ? wrong(r, "the quotient is no whole number") : v / by;
}

static int64_t product(struct reader *r) {
    int64_t v = factor(r);
    while (!r->why) {
        if (take(r, '*')) {
            if (__builtin_mul_overflow(v, factor(r), &v)) wrong(r, "the number is too large");
            v = bounded(r, v);
        } else if (take(r, '/')) {
            v = divided(r, v, factor(r));
        } else {
            break;
        }
    }
    return v;
}

static int64_t sum(struct reader *r) {
    int64_t v = product(r);
    while (!r->why) {
        if (take(r, '+'))
            v = bounded(r, v + product(r));
        else if (take(r, '-'))
            v = bounded(r, v - product(r));
        else
            break;
    }
    return v;
}

const char *rlhf__sum(rlhf_str expression, int64_t *value) {
    struct reader r = {.at = expression.ptr,
                       .end = expression.ptr ? expression.ptr + expression.len : NULL};
    *value = sum(&r);
    skip_spaces(&r);
    if (!r.why && r.at != r.end) wrong(&r, "it is no sum of whole numbers");
    if (r.why) *value = 0;
    return r.why;
}
