// inspect_samples.h: `inspect --samples`: texts sampled from both models with the same random
// numbers.
#ifndef RLHF_TOOLS_INSPECT_INSPECT_SAMPLES_H
#define RLHF_TOOLS_INSPECT_INSPECT_SAMPLES_H

#include "base/env.h"
#include "model/model.h"

struct rlhf__samples_request {
    const struct rlhf__model *model[2]; // base and tuned, with the same tokenizer
    const char *name[2];
    const char *prompt;
    int64_t n, max_new, seed;
    double temperature;
    int32_t json, bos;
};

// Sample n texts from each model and print them side by side, or as a JSON object. Text k of both
// models is sampled with the same random numbers, so all differences come from the models. Errors:
// RLHF_E_INVALID (an invalid prompt, or different tokenizers), RLHF_E_CANCELLED. [step]
rlhf_status rlhf__inspect_samples(const struct rlhf__env *, const struct rlhf__samples_request *,
                                  struct rlhf__error *err);

#endif
