// checks.h: the compared numbers of a phase. A check has the run's number, the recomputed number,
// their difference, the limit, and whether the difference is within the limit.
#ifndef RLHF_TOOLS_VERIFY_CHECKS_H
#define RLHF_TOOLS_VERIFY_CHECKS_H

#include "base/error.h"

// The largest allowed differences. If all are 0, the numbers must be equal to the bit.
struct rlhf__check_limits {
    double number;   // of a loss, a metric, a log-prob, ...: relative to 1 + |recomputed|
    double norm;     // of a gradient norm: relative to the largest one of the phase
    double update;   // of the weights: length of the difference relative to the update's length
    double moments;  // of an element of a moment: relative to the largest one of its tensor
    double rounding; // of an element of a weight, relative to the element
};

// Returns the limits for a run whose matrix products are in bf16 (bf16 = 1) or in f32 (bf16 = 0).
// `exact` is 1 if the recomputing machine has exactly the arithmetic of the run. [any]
struct rlhf__check_limits rlhf__check_limits(int bf16, int exact);

struct rlhf__recompute_check {
    char what[120];  // "loss", "metric lr", "weights"
    char where[200]; // of the largest difference: "update 3", a tensor's name; may be empty
    double run, again, difference, relative, limit;
    double moved; // the largest `relative` of this number in the trials (recompute_rounding.h)
    int32_t has_values; // 1: run and again are set
    int32_t wrong;
    int32_t raised; // raised 1: the limit was raised to what rounding does
};

// Zero-initialize; release with rlhf__checks_finish.
struct rlhf__checks {
    struct rlhf__recompute_check *item; // [n]
    size_t n, cap;
};

void rlhf__checks_finish(struct rlhf__checks *);

// Append a check. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__checks_add(struct rlhf__checks *, const struct rlhf__recompute_check *,
                             struct rlhf__error *err);

// Append a failed check for something that is missing or cannot be compared. Stores `why` in the
// member `where`. [any]
rlhf_status rlhf__checks_fail(struct rlhf__checks *, const char *what, const char *why,
                              struct rlhf__error *err);

// Compare one pair of numbers: difference / scale must not exceed the limit. If neither is finite,
// they count as equal. If difference / scale is the largest so far, stores the pair and `where` in
// *worst. [any]
void rlhf__check_see(struct rlhf__recompute_check *worst, double run, double again, double scale,
                     const char *where);

// rlhf__checks_wrong returns the number of failed checks, and rlhf__checks_raised the number of
// those that passed only because their limit was raised. rlhf__checks_exact returns 1 if all
// differences are exactly 0. [any]
size_t rlhf__checks_wrong(const struct rlhf__checks *);
size_t rlhf__checks_raised(const struct rlhf__checks *);
int rlhf__checks_exact(const struct rlhf__checks *);

#endif
