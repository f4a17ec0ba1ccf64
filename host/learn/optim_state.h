// optim_state.h: the state of an optimizer in a checkpoint: counters as JSON, and f32 tensors in a
// safetensors file.
#ifndef RLHF_HOST_LEARN_OPTIM_STATE_H
#define RLHF_HOST_LEARN_OPTIM_STATE_H

#include "base/folder.h"
#include "learn/optim.h"

#include <jansson.h>

// rlhf__optim_count_save returns {"step", "skipped", "skipped_in_a_row"} (a new reference, or NULL
// if out of memory); rlhf__optim_count_load reads it. Errors: RLHF_E_INVALID; the message does not
// name the file. [main]
json_t *rlhf__optim_count_save(const struct rlhf__optim_count *);
rlhf_status rlhf__optim_count_load(struct rlhf__optim_count *, const json_t *,
                                   struct rlhf__error *err);

// rlhf__optim_write writes the file `name` in a checkpoint's folder, and rlhf__optim_read reads it
// from a path. If the state is divided between processes, rank 0 calls rlhf__optim_write while the
// others call rlhf__optim_give, and every process calls rlhf__optim_read. [main]
rlhf_status rlhf__optim_write(const struct rlhf__optim *o, const struct rlhf__folder *checkpoint,
                              const char *name, struct rlhf__error *err);
rlhf_status rlhf__optim_read(struct rlhf__optim *o, const char *path, struct rlhf__error *err);

// Send this process's part of the state to rank 0. Rank 0 receives the parts in rlhf__optim_write.
// If it does not write the state, rank 0 must call this function instead, so that the others do not
// wait forever. Does nothing if o is NULL or the state is not divided. [main]
rlhf_status rlhf__optim_give(const struct rlhf__optim *o, struct rlhf__error *err);

#endif
