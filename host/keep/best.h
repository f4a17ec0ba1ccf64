// best.h: chooses the best checkpoint of a run by one metric (checkpoint.best): of those that are
// written, the first with the highest or lowest value in its phase.
//
// It only compares numbers; checkpoint_dir.h sets the link checkpoints/best.
#ifndef RLHF_HOST_BEST_H
#define RLHF_HOST_BEST_H

#include "config/schema.h"
#include "report/metrics.h"

#include <jansson.h>

// Zero-initialise: none yet.
struct rlhf__best {
    int64_t phase; // of the best checkpoint, 0 = none yet
    double value;  // the metric in that phase
    double now;    // the metric in the last phase; NaN = it had none
};

// After a phase: record its value, before the metrics are flushed. [main]
void rlhf__best_see(struct rlhf__best *, const struct rlhf__checkpoint_config *,
                    const struct rlhf__metrics *);

// Call when a checkpoint of `phase` is written; it becomes the best if it is better than the best
// so far. Returns 0 if a metric is named and has no finite value in this phase. [main]
int rlhf__best_offer(struct rlhf__best *, const struct rlhf__checkpoint_config *, int64_t phase);

// State as JSON (new reference, NULL without a named metric or a best checkpoint) and back. A state
// of another metric, or NULL, is ignored: the search starts over. Errors: RLHF_E_INVALID. [main]
json_t *rlhf__best_save(const struct rlhf__best *, const struct rlhf__checkpoint_config *);
rlhf_status rlhf__best_load(struct rlhf__best *, const struct rlhf__checkpoint_config *,
                            const json_t *, struct rlhf__error *err);

#endif
