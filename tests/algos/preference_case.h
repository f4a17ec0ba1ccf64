// preference_case.h: shared tests of losses over preference rows, for any algorithm: comparison
// with a float64 reference, finite differences, and refusals.
#ifndef RLHF_TESTS_ALGOS_PREFERENCE_CASE_H
#define RLHF_TESTS_ALGOS_PREFERENCE_CASE_H

#include "algos/fixture.h"
#include "support/numbers.h"

enum { PREFERENCE_TOKENS = 64, PREFERENCE_CASES = 16 };

struct preference_case {
    char options[64];
    double loss, d[PREFERENCE_TOKENS]; // the derivative of the loss
    double metrics[6];                 // the values of `names`
};
struct preference_cases {
    size_t n;
    struct preference_case at[PREFERENCE_CASES];
};

// Reads the list `key` of cases with n_values derivatives each.
void preference_read(struct preference_cases *, const json_t *vectors, const char *key,
                     size_t n_values);

// One algorithm and its batch.
struct preference_algo {
    const char *so;
    struct batch *batch;
    float *value, *d;         // of the batch: the inputs of the loss and its derivative
    int32_t n_values;         // in the reference's batch
    void (*load)(void);       // loads the reference's batch
    const char *const *names; // NULL-ended: metrics in addition to objective/loss
};

// Makes a group of n rows with prompt_len + response tokens each. The first row is preferred.
void preference_group(struct batch *, int32_t n, int32_t prompt_len, int32_t response);

// Runs the case in microbatches that end at ends[] (ascending to n). The algorithm must report
// exactly the case's metrics. Then runs another phase, to check that all counters start from zero
// again.
void preference_check(const struct preference_algo *, const struct preference_case *,
                      const int32_t *ends);

// Compares derivatives with differences of the loss.
void preference_differences(const struct preference_algo *, const char *options);

// Returns the status of a loss on rows [0, n) of the batch with the given heads. `ref` may be NULL.
rlhf_status preference_try(struct algo *, const struct batch *, int32_t n, const rlhf_head_values *,
                           rlhf_head_gradients *d, const float *ref);

// Asserts that a bad group gives an error message instead of a wrong number. A group is bad if rows
// are missing, if not exactly one row is preferred, or if a label is wrong. The batch is one group
// of 3 rows.
void preference_refusals(struct algo *, struct batch *, const rlhf_head_values *,
                         rlhf_head_gradients *d);

// Calls minibatch_end() if the algorithm has it, then phase_end().
void preference_phase_end(struct algo *);

#endif
