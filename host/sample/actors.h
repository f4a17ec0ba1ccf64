// actors.h: the messages between the learners and the actors of a run (team/split.h).
//
// A batch has two barriers, which all ranks pass. At the first one, rank 0 announces which
// responses are to be sampled, and the actors receive the weights. Between the barriers, each actor
// samples the responses of some of the groups, and the learners train. At the second barrier, the
// actors hand over the responses. To end the actors, rank 0 announces 0 responses.
#ifndef RLHF_HOST_SAMPLE_ACTORS_H
#define RLHF_HOST_SAMPLE_ACTORS_H

#include "sample/rollout.h"
#include "sample/sampler.h"
#include "sample/ship_weights.h"

struct rlhf__actors; // opaque

// m is as in rlhf__ship_open. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__actors_open(struct rlhf__split *split, struct rlhf__model *m,
                              struct rlhf__actors **out, struct rlhf__error *err);
void rlhf__actors_close(struct rlhf__actors *); // NULL allowed [main]

// Returns the sender of the weights. Borrowed. [any]
const struct rlhf__ship *rlhf__actors_ship(const struct rlhf__actors *);

// ---- on a learner: in the place of a sampler (sampler.h) ----

// Send the policy's weights to the actors, and let them sample. Takes ownership of the array `row`,
// even after a failure. The prompts of q must not change until the batch is complete. [step]
rlhf_status rlhf__actors_begin(struct rlhf__actors *, const struct rlhf__rollout_request *q,
                               int64_t *row, struct rlhf__error *err);
// Wait for the responses. *out must be zeroed. [step]
rlhf_status rlhf__actors_wait(struct rlhf__actors *, struct rlhf__sampled *out,
                              struct rlhf__error *err);
// End the actors. A batch that they are sampling is dropped. [main]
rlhf_status rlhf__actors_end(struct rlhf__actors *, struct rlhf__error *err);

// ---- on an actor ----

// Responses to sample.
struct rlhf__actor_order {
    uint64_t first;      // number of the batch's first response within the run
    int64_t version;     // optimizer steps that the weights have had
    const int64_t *row;  // [n] the prompts of the whole batch; valid until the next order
    uint32_t n, group;   // responses of the batch; adjacent responses per prompt
    uint32_t begin, end; // the responses that this actor samples
};

// Receive an order, and the weights for it. If the order is to end the actors, sets out->n to 0,
// and no weights follow. Errors: those that a learner reports; those of rlhf__ship_weights;
// RLHF_E_INTERNAL. [step]
rlhf_status rlhf__actors_receive(struct rlhf__actors *, struct rlhf__actor_order *out,
                                 struct rlhf__error *err);
// If st is RLHF_OK, hand over the responses. Otherwise report to the other ranks that sampling has
// failed; the responses are then ignored. Returns RLHF_OK if all ranks succeeded, otherwise the
// error of a rank that failed. [step]
rlhf_status rlhf__actors_give(struct rlhf__actors *, const struct rlhf__sampled *, rlhf_status st,
                              struct rlhf__error *err);

#endif
