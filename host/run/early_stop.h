// early_stop.h: end a run when the mean of the measured sequence KL, or of the reward, over the
// last `window` phases (fewer at the start) stays above a limit for `patience` phases in a row. The
// windows are part of a checkpoint.
#ifndef RLHF_HOST_EARLY_STOP_H
#define RLHF_HOST_EARLY_STOP_H

#include "config/schema.h"
#include "keep/best.h"
#include "learn/phase.h"

enum rlhf__early_stop_what { RLHF__EARLY_STOP_KL = 0, RLHF__EARLY_STOP_REWARD = 1 };

// What a rule knows of one quantity.
struct rlhf__stop_rule {
    double *ring;   // of the last `window` phases that measured it
    int64_t seen;   // phases that measured it
    int64_t beyond; // checks in a row beyond the limit
};

struct rlhf__early_stop {
    const struct rlhf__early_stop_config *config;
    struct rlhf__stop_rule kl, reward;
};

// config must outlive it. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__early_stop_init(struct rlhf__early_stop *, const struct rlhf__early_stop_config *,
                                  struct rlhf__error *err);
void rlhf__early_stop_finish(struct rlhf__early_stop *); // accepts a zeroed one [main]

// Whether the config gives `what` (enum rlhf__early_stop_what) a limit. [any]
int rlhf__early_stop_looks_at(const struct rlhf__early_stop_config *, int32_t what);

// Refuse limits for what a run of `algo` can never measure: rewards and reference say whether it
// pays responses and compares with a reference. RLHF_E_INVALID. [any]
rlhf_status rlhf__early_stop_check(const struct rlhf__early_stop_config *, const char *algo,
                                   int rewards, int reference, struct rlhf__error *err);

// Refuse a patience that cannot be reached, or a window that cannot be filled, in the phases that
// are left. RLHF_E_INVALID. [any]
rlhf_status rlhf__early_stop_check_left(const struct rlhf__early_stop *, int64_t left,
                                        struct rlhf__error *err);

// Offer what a phase measured of `what`; one that is not finite is beyond every limit. A phase that
// did not measure it is not offered. 1 when the run is to end; *why then says it in a sentence
// without a final period. While fewer phases than the window were offered, their mean is compared.
// [main]
int rlhf__early_stop_offer(struct rlhf__early_stop *, int32_t what, double value, char why[160]);

// Offer what the phase measured, its metrics not flushed yet. 1, and a line in the log, when the
// run is to end. [main]
int rlhf__early_stop_phase(struct rlhf__early_stop *, const struct rlhf__phase *);

// The phase is counted, its metrics are not flushed yet: refuse (RLHF_E_INVALID) a checkpoint.best
// or early_stop.* that needs a metric which no phase has reported. [main]
rlhf_status rlhf__early_stop_measured(const struct rlhf__early_stop *, const struct rlhf__best *,
                                      const struct rlhf__phase *, struct rlhf__error *err);

// State as JSON (new reference, NULL when out of memory) and back. [main]
json_t *rlhf__early_stop_save(const struct rlhf__early_stop *);
rlhf_status rlhf__early_stop_load(struct rlhf__early_stop *, const json_t *,
                                  struct rlhf__error *err);

#endif
