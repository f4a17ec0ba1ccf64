// grpo_method.h: the parts of group relative policy optimization that grpo.so and grpo_iterative.so
// have in common: the instance, and the functions that are specific to GRPO. common/pg.h has the
// rest.
#ifndef RLHF_ALGOS_GRPO_METHOD_H
#define RLHF_ALGOS_GRPO_METHOD_H

#include "grpo_options.h"

struct rlhf__grpo {
    struct rlhf__pg pg; // must stay the first member
    struct rlhf__grpo_options opt;
};

// The function `compare` of rlhf__pg_method. [step]
void rlhf__grpo_compare(const void *self, const rlhf_rollout *, const double *paid, double *work,
                        int64_t *order, double *advantage);
void rlhf__grpo_terms(const void *self, const rlhf_loss_in *, struct rlhf__span row,
                      const float *adv, double w, const rlhf_head_gradients *d,
                      struct rlhf__pg_update_sums *u);

// These functions call rlhf__pg_create and rlhf__pg_plan, and then do what GRPO needs in addition.
// `bytes` is the size of the instance, which must start with struct rlhf__grpo. [main]
rlhf_status rlhf__grpo_create(const rlhf_host *, const struct rlhf__pg_method *,
                              const struct rlhf__grpo_options *, uint64_t bytes, void **self);
rlhf_status rlhf__grpo_plan(void *self, const rlhf_run_info *, rlhf_plan *out);

#endif
