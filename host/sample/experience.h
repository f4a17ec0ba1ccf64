// experience.h: the rows of a phase with all that is known of them: tokens and numbers, the texts
// that were scored, what the judge says. They are the same rows everywhere, so whoever leaves some
// out does it here, for all of it at once.
#ifndef RLHF_HOST_EXPERIENCE_H
#define RLHF_HOST_EXPERIENCE_H

#include "sample/scoring.h"

// Zero-initialise; release with rlhf__experience_finish.
struct rlhf__experience {
    struct rlhf__rows rows;
    struct rlhf__scored scored;  // n = 0: rows of a file, which nobody scored
    float *judged;               // [rows.n] what the judge says, NaN or Inf included; NULL: nothing
    uint32_t drawn, reserved;    // rows that there were, those left out since included
    uint64_t phase;              // that they are of, from 0; set before they are drawn
    struct rlhf__ahead *ahead;   // what rewards have said of them while they were drawn; NULL
    int64_t sampled;             // response tokens that were sampled for them
    int64_t tokens;              // that went through the model for it; a shared prompt counts once
    const rlhf_compute *compute; // where ref_hidden lies
    rlhf_dev ref_hidden;         // what rows.ref_dev_hidden borrows; NULL: nothing
};

void rlhf__experience_finish(struct rlhf__experience *x); // accepts a zeroed one [step]

// Only the rows with keep[i] != 0 stay, in their order. Errors: RLHF_E_NOMEM, and *x is what it
// was. [any]
rlhf_status rlhf__experience_keep(struct rlhf__experience *x, const uint8_t *keep,
                                  struct rlhf__error *err);

// y's rows come behind x's, their groups numbered on after x's, and its counts of tokens are added;
// y is empty afterwards. Before the reference has seen them and before they are judged. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__experience_join(struct rlhf__experience *x, struct rlhf__experience *y,
                                  struct rlhf__error *err);

#endif
