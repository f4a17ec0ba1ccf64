// weights.h: `inspect --weights`: how each tensor of a model changed.
#ifndef RLHF_TOOLS_INSPECT_WEIGHTS_H
#define RLHF_TOOLS_INSPECT_WEIGHTS_H

#include "base/env.h"
#include "base/error.h"
#include "report/progress.h"

struct rlhf__weights_request {
    const char *base, *tuned, *adapter; // base NULL: the base that the run or the adapter names
    int32_t json, no_rank;              // no_rank: leave out singular values
    struct rlhf__progress *progress;
};

// Compare the weights of two models and print a line for each tensor. Reads only files and opens no
// plugin. Errors: RLHF_E_INVALID (invalid directories, models with different tensors), RLHF_E_IO,
// RLHF_E_CANCELLED. [main]
rlhf_status rlhf__inspect_weights(const struct rlhf__env *, const struct rlhf__weights_request *,
                                  struct rlhf__error *err);

#endif
