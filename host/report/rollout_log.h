// rollout_log.h: RUN/rollouts.jsonl contains everything that a phase was trained on, so that other
// programs can recompute the updates of the phase. docs/rollouts.md describes the format.
//
// Lines are collected in memory and written when the phase is complete. Nothing is computed here.
#ifndef RLHF_HOST_REPORT_ROLLOUT_LOG_H
#define RLHF_HOST_REPORT_ROLLOUT_LOG_H

#include "base/folder.h"
#include "base/log.h"
#include "batch/rows.h"

struct rlhf__rollout_log; // opaque

// Create RUN/rollouts.jsonl or, if keep_phase >= 0, cut it back as rlhf__jsonl_open does. [main]
rlhf_status rlhf__rollout_log_open(const struct rlhf__folder *run, int64_t keep_phase,
                                   struct rlhf__log *log, struct rlhf__rollout_log **out,
                                   struct rlhf__error *err);
void rlhf__rollout_log_close(struct rlhf__rollout_log *); // NULL allowed [main]

// Fields that only some runs have.
enum rlhf__rollout_log_flag {
    RLHF__LOG_REFERENCE = 1,  // log-probs of a reference
    RLHF__LOG_VALUE = 2,      // values
    RLHF__LOG_ADVANTAGES = 4, // advantages and returns, computed over the whole batch
};

// Begin a phase, counted from 1, with the rows e of its batch. prompt[i] is the index of row i's
// prompt in the prompt file; the array has e->n elements. `named` holds the names of the plan's
// e->n_named models. If the lines of an earlier phase were not written, they are discarded. [main]
void rlhf__rollout_log_rows(struct rlhf__rollout_log *, int64_t phase, const struct rlhf__rows *e,
                            const int64_t *prompt, const char *const *named, uint32_t flags);

// One optimizer step.
struct rlhf__rollout_log_update {
    uint32_t epoch, minibatch, n;
    int32_t skipped;
    const uint32_t *row;           // [n] indices of the minibatch's rows in the batch
    const struct rlhf__rows *part; // [n] those rows
    int32_t own;                   // 1: this step has separate advantages
    double loss;
    double grad_norm, grad_norm_clipped; // of the policy
};
void rlhf__rollout_log_update(struct rlhf__rollout_log *, const struct rlhf__rollout_log_update *);

// Append the phase to the file. A failure leaves the file unchanged. [main]
rlhf_status rlhf__rollout_log_write(struct rlhf__rollout_log *, struct rlhf__error *err);

// Call fsync on the file. This is needed before a checkpoint is committed. [main]
rlhf_status rlhf__rollout_log_sync(struct rlhf__rollout_log *, struct rlhf__error *err);

#endif
