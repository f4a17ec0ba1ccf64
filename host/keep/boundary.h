// boundary.h: the last phase boundary of a run. The run returns to it if the next phase fails. A
// boundary contains run.json and the plugins' states, as a checkpoint does. It also contains a copy
// (`rollback`) of everything that an update changes: weights and moments; the reference, if the run
// updates it; and, if the run trains a reward model, that model, its optimizer and its pairs.
//
// The boundary is recorded after every phase and kept in memory; checkpoint.h writes files. The
// copy takes as much memory as the tensors that it contains (with AdamW, 12 bytes per trained
// parameter). No copy is made if it would be larger than checkpoint.undo_mib.
#ifndef RLHF_HOST_KEEP_BOUNDARY_H
#define RLHF_HOST_KEEP_BOUNDARY_H

#include "config/schema.h"
#include "keep/checkpoint.h"
#include "keep/iteration.h"
#include "learn/optim.h"
#include "model/model.h"
#include "model/reward_model.h"
#include "report/metrics.h"

#include <jansson.h>

// The best checkpoint so far. A zeroed struct means "none yet".
struct rlhf__best {
    int64_t phase; // phase of the best checkpoint, 0 = none yet
    double value;  // the metric in that phase
    double now;    // the metric in the last phase; NaN = no value
};

// Call this after a phase, before metrics are flushed. Records the value of the metric that selects
// the best checkpoint. [main]
void rlhf__best_see(struct rlhf__best *, const struct rlhf__checkpoint_config *,
                    const struct rlhf__metrics *);

// Call this when the checkpoint of a phase is written. The checkpoint becomes the best one if its
// metric is better than the metrics of all earlier checkpoints. Returns 0 if the configured metric
// has no finite value in this phase, otherwise 1. [main]
int rlhf__best_offer(struct rlhf__best *, const struct rlhf__checkpoint_config *, int64_t phase);

// rlhf__best_save returns the best checkpoint's data as JSON (a new reference), or NULL if no
// metric is configured or no best checkpoint exists. rlhf__best_load reads that JSON. If the JSON
// is NULL or describes another metric, the search for the best checkpoint starts again. Errors:
// RLHF_E_INVALID. [main]
json_t *rlhf__best_save(const struct rlhf__best *, const struct rlhf__checkpoint_config *);
rlhf_status rlhf__best_load(struct rlhf__best *, const struct rlhf__checkpoint_config *,
                            const json_t *, struct rlhf__error *err);

#define RLHF__ROLLBACK_MODELS 4
#define RLHF__ROLLBACK_OPTIMS 3

// Everything that an update changes. A member is NULL if the run lacks that part.
struct rlhf__changing {
    const rlhf_compute *compute;
    const struct rlhf__instance *kernels; // the instance that made `compute`
    struct rlhf__model *model[RLHF__ROLLBACK_MODELS];
    const struct rlhf__optim *optim[RLHF__ROLLBACK_OPTIMS];
    struct rlhf__iteration *iteration;
};

struct rlhf__rollback_item {
    rlhf_dev dev;
    uint64_t bytes;
};

// Zero-initialize; release with rlhf__boundary_finish.
struct rlhf__rollback {
    int32_t taken;                    // 1: the copy was made
    uint64_t bytes;                   // size of all items
    size_t n;                         // number of items, 0 = not listed yet
    struct rlhf__rollback_item *item; // [n]
    char *copy;                       // [bytes], NULL if it would be too large
    // For a reward model in training.
    struct rlhf__reward_head head;
    struct rlhf__replay replay;
    struct rlhf__optim_count count; // of the reward model's optimizer
    uint64_t syncs;
};

// Counters. If none has grown since the boundary, nothing that the copy contains has changed.
struct rlhf__boundary_marks {
    int64_t step[RLHF__ROLLBACK_OPTIMS];
    uint64_t syncs, rounds, pairs;
};

// Zero-initialize; release with rlhf__boundary_finish.
struct rlhf__boundary {
    int64_t phase; // phases done at the boundary
    json_t *run;   // its run.json, but without the best checkpoint
    struct rlhf__plugin_states plugins;
    struct rlhf__best best;
    struct rlhf__boundary_marks marks;
    struct rlhf__rollback rollback;
};

// The current values, for rlhf__boundary_note.
struct rlhf__boundary_now {
    int64_t phase;
    struct rlhf__best best;
    json_t *run; // NULL = out of memory. The boundary takes ownership, even after a failure
    const struct rlhf__cast *cast;
    struct rlhf__changing what;
    int64_t undo_mib; // size limit of the copy
};

// Record the current boundary. After an error the previous boundary is kept. Errors: RLHF_E_NOMEM,
// those of a plugin's save(), RLHF_E_DEVICE. [main]
rlhf_status rlhf__boundary_note(struct rlhf__boundary *b, const struct rlhf__boundary_now *now,
                                struct rlhf__error *err);

// Call this after a phase was abandoned. Restores weights, moments and everything else that an
// update changes. The copy is needed only if a counter of b->marks has grown. Errors:
// RLHF_E_UNSUPPORTED if the copy is needed but was not made (the message names the limit
// `undo_mib`), and errors of the device. [main]
rlhf_status rlhf__boundary_restore(struct rlhf__boundary *b, const struct rlhf__changing *what,
                                   int64_t undo_mib, struct rlhf__error *err);

void rlhf__boundary_finish(struct rlhf__boundary *b); // accepts a zeroed one [main]

#endif
