// sampler.h: a second instance of the policy, which samples responses on a separate thread while
// the policy trains. It uses a second compute table of the same backend. It gets the policy's
// weights before each batch, and hands over whole batches.
//
// The caller alternates rlhf__sampler_begin and rlhf__sampler_wait. feed/ahead.h keeps the batches.
#ifndef RLHF_HOST_SAMPLE_SAMPLER_H
#define RLHF_HOST_SAMPLE_SAMPLER_H

#include "base/dirs.h"
#include "model/session.h"
#include "sample/rollout.h"

struct rlhf__sampler; // opaque

// The parts that a sampler is created from. Everything is borrowed for its lifetime.
struct rlhf__sampler_request {
    const struct rlhf__session *session;
    const struct rlhf__config *config;
    const struct rlhf__dirs *dirs;
    const struct rlhf__model *policy;
    int64_t threads; // of the sampler's table; 0 = as many as the backend chooses
};

// Open the sampler's instance of the policy. If the session's models are on a memory plan, this
// instance is put on the plan too. Otherwise it is ready to sample. If the policy has an adapter,
// the instance has its own base, packed and frozen. Without an adapter, all parameters are copied
// from the policy, and no weight file is read. Errors: those of rlhf__compute_open and
// rlhf__model_open. [main]
rlhf_status rlhf__sampler_open(const struct rlhf__sampler_request *, struct rlhf__sampler **out,
                               struct rlhf__error *err);
// Load an instance that is on the memory plan. [main]
rlhf_status rlhf__sampler_load(struct rlhf__sampler *, struct rlhf__error *err);
// Cancel sampling and free the sampler. The policy must still exist. NULL allowed. [main]
void rlhf__sampler_close(struct rlhf__sampler *);

// Returns the sampler's instance of the policy. [any]
const struct rlhf__model *rlhf__sampler_model(const struct rlhf__sampler *);

// Returns the table that the sampler uses, also while its model is on the memory plan. [any]
const rlhf_compute *rlhf__sampler_table(const struct rlhf__sampler *);

// Copy the policy's weights, and begin to sample responses to the prompts row[q->n]. The sampler's
// own model, cache and rules replace those of the request q. Takes ownership of the array `row`,
// even after a failure. Do not change the prompts until the batch is complete. [step]
rlhf_status rlhf__sampler_begin(struct rlhf__sampler *, const struct rlhf__rollout_request *q,
                                int64_t *row, struct rlhf__error *err);

// A batch that was sampled.
struct rlhf__sampled {
    struct rlhf__rows rows;
    int64_t tokens; // tokens that the model computed
    double seconds; // from rlhf__sampler_begin to the end of the batch
};

// Wait until the batch is complete. *out must be zeroed. Errors: those of rlhf__rollout. [step]
rlhf_status rlhf__sampler_wait(struct rlhf__sampler *, struct rlhf__sampled *out,
                               struct rlhf__error *err);

#endif
