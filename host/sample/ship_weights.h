// ship_weights.h: sends the policy's weights from the learners of a run to its actors
// (team/split.h). Each learner sends a part of the weights to every actor.
#ifndef RLHF_HOST_SAMPLE_SHIP_WEIGHTS_H
#define RLHF_HOST_SAMPLE_SHIP_WEIGHTS_H

#include "base/buf.h"
#include "model/model.h"
#include "team/split.h"

struct rlhf__ship; // opaque

// On a learner, m is the policy; on an actor, m is the model that samples. m must be loaded.
// Parameters that do not change (the trunk below an adapter) and parameters that sampling does not
// need (value heads) are not sent. `split` and m are borrowed. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__ship_open(const struct rlhf__split *split, struct rlhf__model *m,
                            struct rlhf__ship **out, struct rlhf__error *err);
void rlhf__ship_close(struct rlhf__ship *); // NULL allowed [main]

// Append a description of the data that is sent. The description is the same on learners and
// actors. [main]
void rlhf__ship_describe(const struct rlhf__ship *, struct rlhf__buf *out);

// Send all parameters or, on an actor, receive them and refresh the model. All ranks must call this
// function. If the compute table fails, the exchange continues, so that the other ranks do not
// wait. Errors: those of the table and of the team. [step]
rlhf_status rlhf__ship_weights(struct rlhf__ship *, struct rlhf__error *err);

#endif
