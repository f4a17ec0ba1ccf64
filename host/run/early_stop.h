// early_stop.h: ends a run whose sequence KL or reward stays above a limit. The measured sequence
// KL and the reward are each averaged over a window of the last phases. The setting
// early_stop.window is the maximum number of phases in the window. The run ends when an average has
// stayed above its limit for early_stop.patience phases. The windows are part of a checkpoint.
#ifndef RLHF_HOST_RUN_EARLY_STOP_H
#define RLHF_HOST_RUN_EARLY_STOP_H

#include "config/schema.h"
#include "keep/boundary.h"
#include "learn/phase.h"

enum rlhf__early_stop_what { RLHF__EARLY_STOP_KL = 0, RLHF__EARLY_STOP_REWARD = 1 };

// A rule's state for one quantity.
struct rlhf__stop_rule {
    double *ring;   // values of the last `window` phases with a value
    int64_t seen;   // phases with a value
    int64_t beyond; // consecutive checks above the limit
};

struct rlhf__early_stop {
    const struct rlhf__early_stop_config *config;
    struct rlhf__stop_rule kl, reward;
};

// `config` must outlive the struct. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__early_stop_init(struct rlhf__early_stop *, const struct rlhf__early_stop_config *,
                                  struct rlhf__error *err);
void rlhf__early_stop_finish(struct rlhf__early_stop *); // accepts a zeroed one [main]

// Returns 1 if the config sets a limit for `what` (enum rlhf__early_stop_what). [any]
int rlhf__early_stop_looks_at(const struct rlhf__early_stop_config *, int32_t what);

// Reject limits for quantities that a run of `algo` cannot measure. `samples` is 1 if the run
// samples responses, `rewards` is 1 if it has rewards, and `reference` is 1 if it has a reference.
// Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__early_stop_check(const struct rlhf__early_stop_config *, const char *algo,
                                   int samples, int rewards, int reference,
                                   struct rlhf__error *err);

// Reject a `patience` or a `window` that is larger than the number of remaining phases. Errors:
// RLHF_E_INVALID. [any]
rlhf_status rlhf__early_stop_check_left(const struct rlhf__early_stop *, int64_t left,
                                        struct rlhf__error *err);

// Check one phase's `value` of the quantity `what`. Do not call this for a phase without a value. A
// value that is not finite counts as greater than every limit. Until the window is full, the mean
// of the values so far is compared with the limit. Returns 1 if the run must end, and writes the
// reason to `why`, as a sentence without a final period. [main]
int rlhf__early_stop_offer(struct rlhf__early_stop *, int32_t what, double value, char why[160]);

// Check the values of a phase whose metrics have not been flushed. If the run must end, logs a line
// and returns 1. [main]
int rlhf__early_stop_phase(struct rlhf__early_stop *, const struct rlhf__phase *);

// Reject a checkpoint.best or early_stop.* setting whose metric the run does not report. Call this
// after the phase was counted and before its metrics are flushed. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__early_stop_measured(const struct rlhf__early_stop *, const struct rlhf__best *,
                                      const struct rlhf__phase *, struct rlhf__error *err);

// Convert the state to JSON (new reference, NULL if out of memory) and back. [main]
json_t *rlhf__early_stop_save(const struct rlhf__early_stop *);
rlhf_status rlhf__early_stop_load(struct rlhf__early_stop *, const json_t *,
                                  struct rlhf__error *err);

#endif
