// room.h: will a model find room on a device with memory of its own? Asked before anything of it is
// loaded, from what its config.json says; a model that nothing is known of is let through. What is
// counted is what weights and their training need at least: not activations, caches, or the LM
// head's workspace.
#ifndef RLHF_HOST_ROOM_H
#define RLHF_HOST_ROOM_H

#include "model/model.h"

// Parameters of a transformer with this config.json (without heads), or 0: it does not say its
// width, blocks, vocabulary and positions under names known here. [any]
uint64_t rlhf__room_parameters(const json_t *config);

// RLHF_E_INVALID, with what it takes at least and what there is, when the model does not fit into
// what is left of env's device; RLHF_OK where it computes in the host's memory. [main]
rlhf_status rlhf__room_check(const struct rlhf__model_env *env, const struct rlhf__model_spec *spec,
                             const json_t *config, struct rlhf__error *err);

// The same of a model in `dir` that is trained with an optimiser of `moments` values a parameter. A
// directory that cannot be read is let through: whoever opens it says why. [main]
rlhf_status rlhf__room_check_dir(const struct rlhf__model_env *env, const char *dir,
                                 int32_t moments, struct rlhf__error *err);

#endif
