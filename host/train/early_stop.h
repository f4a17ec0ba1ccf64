// early_stop.h: end a run when the mean over a window of the measured sequence KL, or of the
// reward, stays beyond a limit for `patience` checks in a row. The window is part of a checkpoint.
#ifndef RLHF_HOST_EARLY_STOP_H
#define RLHF_HOST_EARLY_STOP_H

#include "config/schema.h"

struct rlhf__early_stop {
    const struct rlhf__early_stop_config *config;
    double *kl, *reward;              // ring of the last `window` phases
    int64_t seen;                     // phases offered
    int64_t beyond_kl, beyond_reward; // checks in a row beyond the limit
};

// config must outlive it. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__early_stop_init(struct rlhf__early_stop *, const struct rlhf__early_stop_config *,
                                  struct rlhf__error *err);
void rlhf__early_stop_finish(struct rlhf__early_stop *); // accepts a zeroed one [main]

// Offer a phase's numbers (kl may be NaN: not measured). 1 when the run is to end; *why then says
// it in a sentence without a final period. Checks begin when the window is full. [main]
int rlhf__early_stop_offer(struct rlhf__early_stop *, double kl, double reward, char why[160]);

// State as JSON (new reference, NULL when out of memory) and back. [main]
json_t *rlhf__early_stop_save(const struct rlhf__early_stop *);
rlhf_status rlhf__early_stop_load(struct rlhf__early_stop *, const json_t *,
                                  struct rlhf__error *err);

#endif
