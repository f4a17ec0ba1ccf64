// checkpoint_size.h: how much disk space checkpoints need, and whether it is there.
#ifndef RLHF_HOST_KEEP_CHECKPOINT_SIZE_H
#define RLHF_HOST_KEEP_CHECKPOINT_SIZE_H

#include "config/schema.h"
#include "learn/phase.h"

// Returns the bytes of a checkpoint's large files: weights and the optimizer's state. The models
// may be on a memory plan. [main]
uint64_t rlhf__checkpoint_bytes(const struct rlhf__config *, const struct rlhf__cast *);

// Returns how many checkpoints the run has on disk at most, while it writes one; at least 1. Those
// that only the clock or a signal asks for are counted up to checkpoint.keep. [any]
int64_t rlhf__checkpoints_at_once(const struct rlhf__checkpoint_config *, int64_t phases);

// Returns RLHF_E_IO if a checkpoint does not fit into the free space of the open folder. [main]
rlhf_status rlhf__checkpoint_fits(const struct rlhf__config *, const struct rlhf__cast *,
                                  const struct rlhf__folder *, struct rlhf__error *err);

// Warn if the next checkpoint does not fit into the free space of the open folder. [main]
void rlhf__checkpoint_foresee(const struct rlhf__config *, const struct rlhf__cast *,
                              const struct rlhf__folder *, struct rlhf__log *log);

#endif
