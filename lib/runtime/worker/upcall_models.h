// upcall_models.h: calls of a plugin in a worker for which models compute. Numbers and rows from
// the worker are checked before they are used.
#ifndef RLHF_HOST_WORKER_UPCALL_MODELS_H
#define RLHF_HOST_WORKER_UPCALL_MODELS_H

#include "worker/upcall_handles.h"

// Maximum bytes of a reply's array, and number of its entries.
#define RLHF__MOST_REPLY (RLHF__WIRE_MAX / 4)
enum { RLHF__MOST_TEXTS = 1 << 24 };

// Serve the call in a frame and write the reply (wire.h). [main]
void rlhf__ear_logits(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out);
void rlhf__ear_reward_score(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out);
void rlhf__ear_language_score(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out);
void rlhf__ear_language_generate(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out);

#endif
