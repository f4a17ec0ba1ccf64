// grades.h: the grades of all graders of a file for the rows of one call.
#ifndef RLHF_REWARDS_GRADER_GRADES_H
#define RLHF_REWARDS_GRADER_GRADES_H

#include "grader/judge.h"
#include "python_calls.h"

struct rlhf__grades {
    const rlhf_host *host;
    const struct rlhf__grader_spec *spec;
    struct rlhf__grader_judge *judge; // NULL if no grader asks a model
    struct rlhf__python *python;      // [spec->n] of the graders in Python
    const rlhf_reward_in *in;
    double *of;      // [spec->n][in->n] NaN: invalid
    uint8_t *failed; // [in->n] 1: a service did not answer
    char why[RLHF__WHY];
};

// Grades all rows. Errors: RLHF_E_CANCELLED, RLHF_E_NOMEM, and those of rlhf__python_score. Release
// with rlhf__grades_finish, even after a failure. [step]
rlhf_status rlhf__grades_init(struct rlhf__grades *);
void rlhf__grades_finish(struct rlhf__grades *); // [step]

// The grade of row i, which is 0 if it is invalid; *valid: 1 if it, and the grades in it, are
// valid. [step]
double rlhf__grades_row(const struct rlhf__grades *, uint32_t i, int *valid);

// Report the metrics invalid, passed and, of each grader of a `multi`, NAME/mean and NAME/passed.
// [step]
void rlhf__grades_report(const struct rlhf__grades *);

#endif
