// cases.h: the tests of a plugin as a list of cases. A case consists of steps, which a child
// process runs one after the other. After a crash, another child continues with the next step.
#ifndef RLHF_TOOLS_CHECK_CASES_H
#define RLHF_TOOLS_CHECK_CASES_H

#include "check/probe.h"

struct rlhf__check_case {
    const char *name;
    int32_t crash; // the rule that a crash violates
    int32_t first; // 1: after a finding here, the rest of the list is skipped
    // 1: this case creates instances with special options, as no other case does. So a function
    // that hangs here may work in other cases.
    int32_t other_options;
    // Run step i. Returns 0 if the case has no step i. Violations are reported in the child's log.
    // [main]
    int (*step)(struct rlhf__check *c, int32_t i);
};

// Lists of cases that end with a NULL name. The first list is for every plugin. It tests the option
// table, create(), limits, memory and state.
extern const struct rlhf__check_case rlhf__life_cases[];
extern const struct rlhf__check_case rlhf__reward_cases[];
extern const struct rlhf__check_case rlhf__algo_cases[];
extern const struct rlhf__check_case rlhf__model_cases[];
extern const struct rlhf__check_case rlhf__kernels_cases[];
extern const struct rlhf__check_case rlhf__sink_cases[];
extern const struct rlhf__check_case rlhf__environment_cases[];

// A step of an algorithm's cases. Compares the shards of a minibatch on two processes with the
// shards on one process (algo_shards.c). [main]
int rlhf__try_shards(struct rlhf__check *c, int32_t step);

// Steps of an algorithm's cases. The first function tests choose_prompts(). The second tests it
// with failing allocations (algo_choose.c). [main]
int rlhf__try_choose(struct rlhf__check *c, int32_t step);
int rlhf__try_choose_memory(struct rlhf__check *c, int32_t step);

// Run a phase with the batch: advantages(), loss() and the end of the phase. Sets *loss to the sum
// of the losses. If advantages() or loss() fails, reports the failure and returns 0 (algo.c).
// [main]
struct rlhf__algo_batch;
int rlhf__algo_phase(struct rlhf__probe *t, struct rlhf__algo_batch *b, double *loss);

// A step of a model's cases. It tests adapters, bf16, and the heads other than log-probs
// (model_heads.c). [main]
int rlhf__try_heads(struct rlhf__check *c, int32_t step);

// A step of a model's cases. It tests the model's tap, if the model has a tap (model_tap.c). [main]
int rlhf__try_tap(struct rlhf__check *c, int32_t step);

#endif
