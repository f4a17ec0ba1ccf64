// formula.h: the formula of a grader of the type multi (calculate_output): numbers, names of
// graders, + - * / ^ and brackets, and the functions min, max, abs, floor, ceil, exp, sqrt and log.
//
// As in Python, -2^2 is -4, 2^3^2 is 2^9, and log is the natural logarithm.
#ifndef RLHF_REWARDS_GRADER_FORMULA_H
#define RLHF_REWARDS_GRADER_FORMULA_H

#include <rlhf/host.h>

enum { RLHF__FORMULA_NAMES = 32, RLHF__FORMULA_STEPS = 1024, RLHF__FORMULA_STACK = 256 };

// Steps of a stack machine. Zero-initialize.
struct rlhf__formula {
    uint32_t n;
    struct {
        int32_t op;    // private
        uint32_t name; // index of a name
        double number;
    } step[RLHF__FORMULA_STEPS];
};

// Reads a formula with the names name[n]. Returns 1, or 0 with the reason and the place in
// why[cap]. [main]
int rlhf__formula_read(struct rlhf__formula *, const char *text, const char *const *name,
                       uint32_t n, char *why, size_t cap);

// Returns the value, which is not finite if it is not defined, as after a division by 0. [any]
double rlhf__formula_value(const struct rlhf__formula *, const double *value);

// 1 if the text is the name of a function. [any]
int rlhf__formula_is_function(const char *text);

#endif
