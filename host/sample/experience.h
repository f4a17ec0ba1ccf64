// experience.h: the rows of a phase and all their data: tokens and numbers, the texts that were
// scored, and the judge's scores. The functions of this file remove a row from all the data at the
// same time.
#ifndef RLHF_HOST_SAMPLE_EXPERIENCE_H
#define RLHF_HOST_SAMPLE_EXPERIENCE_H

#include "sample/scoring.h"

// What was counted in the episodes of a batch.
struct rlhf__episode_counts {
    int64_t cut, specials;   // replies that were cut; special tokens in replies
    int64_t forged;          // turns of the policy with marks of other speakers
    int64_t failures;        // answers that an environment could not give at once
    int64_t lost;            // episodes that were given up after a failure
    int64_t calls, faults;   // calls of tools; those that the host answered with an error
    double seconds;          // in the environment, while all rows waited
    int64_t past, rewritten; // turns with a reply; those that the chat template would rewrite
    int32_t tools;           // 1: the environment has tools
    int32_t chat;            // 1: a chat template writes the conversation
};

// Add y's counts to x's. [any]
void rlhf__episode_counts_add(struct rlhf__episode_counts *x, const struct rlhf__episode_counts *y);

// Zero-initialize; release with rlhf__experience_finish.
struct rlhf__experience {
    struct rlhf__rows rows;
    struct rlhf__scored scored; // n = 0: rows of a file are not scored
    float *judged;              // [rows.n] the judge's scores, maybe NaN or Inf; NULL: no judge
    uint32_t drawn;             // number of rows sampled, including those removed since
    int32_t referred;           // 1: the rows have the reference's log-probs
    int64_t phase;              // the phase of the rows, from 0; set before they are sampled
    struct rlhf__reward_overlap *overlap; // rewards that were computed during sampling; may be NULL
    int64_t sampled;                      // response tokens sampled for the rows
    // The number of tokens that the model computed for the rows; a shared prompt counts once.
    int64_t tokens;
    // How many seconds it took to sample the rows while the previous phase trained. 0 if they were
    // sampled in their own phase, or if the time is not known.
    double seconds;
    struct rlhf__episode_counts replies; // of the rows' episodes
    const rlhf_compute *compute;         // owns ref_hidden
    rlhf_dev ref_hidden;                 // borrowed by rows.ref_dev_hidden; may be NULL
};

void rlhf__experience_finish(struct rlhf__experience *x); // accepts a zeroed struct [step]

// Keep only the rows with keep[i] != 0, in order. If RLHF_E_NOMEM is returned, *x is unchanged.
// [any]
rlhf_status rlhf__experience_keep(struct rlhf__experience *x, const uint8_t *keep,
                                  struct rlhf__error *err);

// Move y's rows to the end of x's rows, and add y's token counts to x's. The groups from y are
// renumbered to follow those of x. Afterwards y is empty. Call this before hidden states exist for
// the rows and before the rows are judged. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__experience_join(struct rlhf__experience *x, struct rlhf__experience *y,
                                  struct rlhf__error *err);

#endif
