// algo_phase.h: the steps of a phase of the algorithm under test, from plan() to phase_end(). Each
// reports violations of the rules.
#ifndef RLHF_TOOLS_CHECK_ALGO_PHASE_H
#define RLHF_TOOLS_CHECK_ALGO_PHASE_H

#include "check/algo_batch.h"
#include "check/probe.h"

// Create an instance and get its plan; 0 if that fails, which has been reported. *t needs
// rlhf__probe_finish in any case. [main]
int rlhf__algo_open(struct rlhf__check *c, struct rlhf__probe *t, rlhf_plan *plan);

// A batch for the plan (spread: rlhf__algo_batch_make), to be freed by the caller; 0 and *out NULL
// if its groups are larger than a batch, which is reported, or if out of memory. [main]
int rlhf__algo_make(struct rlhf__check *c, const rlhf_plan *plan, int32_t spread,
                    struct rlhf__algo_batch **out);

// Call advantages() and check its results; 0 if it reported something. side: enum rlhf__guard_side.
// [main]
int rlhf__algo_pay(struct rlhf__probe *t, struct rlhf__algo_batch *b, int32_t side);

// Call loss() for all rows in microbatches of `rows`; *loss = the sum, b->d = its derivatives. 0 if
// it failed or a value is not finite. [main]
int rlhf__algo_loss(struct rlhf__probe *t, struct rlhf__algo_batch *b, int32_t rows, int32_t side,
                    double *loss);

// Call minibatch_end() after a step and after a skipped step, then phase_end(). [main]
void rlhf__algo_end(struct rlhf__probe *t, double loss);

// ---- state: does save() write everything that one phase learns for the next? ----

// One instance runs a phase, another one, and the first again. If its results for the first now
// differ, it has state, which save() must write. There is one step (cases.h). [main]
int rlhf__algo_running(struct rlhf__check *c, int32_t step);

#endif
