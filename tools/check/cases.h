// cases.h: what is tried with a plugin: cases of steps, each step by itself in a child process that
// goes on with the next one, or that another child goes on for after a crash.
#ifndef RLHF_HOST_CHECK_CASES_H
#define RLHF_HOST_CHECK_CASES_H

#include "check/watched.h"

struct rlhf__check_case {
    const char *name;
    int32_t crash; // the rule that a crash is against
    int32_t first; // 1: what follows in the list is not tried when something is found here
    // 1: instances get other options than elsewhere, so what hangs here may do well there
    int32_t other_options, reserved;
    // Try step i; 0 when there is none. What is wrong is put on the board. [main]
    int (*step)(struct rlhf__check *c, int32_t i);
};

// Lists that end with a NULL name. Of every plugin: option table, create, limits, memory, state.
extern const struct rlhf__check_case rlhf__life_cases[];
extern const struct rlhf__check_case rlhf__reward_cases[];
extern const struct rlhf__check_case rlhf__algo_cases[];
extern const struct rlhf__check_case rlhf__model_cases[];

#endif
