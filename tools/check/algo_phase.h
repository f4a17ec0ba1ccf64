// algo_phase.h: the steps of a phase of an algorithm that is tried, from plan() to phase_end().
// What is against the rules is found by each.
#ifndef RLHF_TOOLS_CHECK_ALGO_PHASE_H
#define RLHF_TOOLS_CHECK_ALGO_PHASE_H

#include "check/algo_batch.h"
#include "check/watched.h"

// An instance and its plan; 0 when it does not come to that, which is found or was elsewhere. *t
// needs rlhf__watched_finish also then. [main]
int rlhf__algo_open(struct rlhf__check *c, struct rlhf__watched *t, rlhf_plan *plan);

// A batch after the plan (spread: rlhf__algo_batch_make), the caller's to free(); 0, and *out NULL,
// where its groups are larger than a batch, which is told, or memory ends. [main]
int rlhf__algo_make(struct rlhf__check *c, const rlhf_plan *plan, int32_t spread,
                    struct rlhf__algo_batch **out);

// advantages(), and what it says of rows; 0 when something is found. side: enum rlhf__guard_side.
// [main]
int rlhf__algo_pay(struct rlhf__watched *t, struct rlhf__algo_batch *b, int32_t side);

// loss() of all rows in microbatches of `rows`, its sum in *loss and its derivatives in b->d; 0
// when it failed or something is not finite. [main]
int rlhf__algo_loss(struct rlhf__watched *t, struct rlhf__algo_batch *b, int32_t rows, int32_t side,
                    double *loss);

// minibatch_end() after a step and after one that was skipped, and phase_end(). [main]
void rlhf__algo_end(struct rlhf__watched *t, double loss);

// ---- state: is what an algorithm learns in one phase for the next in what it saves? ----

// A phase, another, and the first again, by one instance: what is said of it then, and was not
// before, is a state, which save() must write. A step (cases.h) of which there is one. [main]
int rlhf__algo_running(struct rlhf__check *c, int32_t step);

#endif
