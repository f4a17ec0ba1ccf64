// open_inner.h: what opening a model is made of (open.c): its config, its instance, its backend.
#ifndef RLHF_HOST_OPEN_INNER_H
#define RLHF_HOST_OPEN_INNER_H

#include "model/model.h"

// ---- open_config.c ----
// m->config, n_labels, labels and pooling from the directory's config.json. Errors: RLHF_E_INVALID
// names file and field; those of rlhf__adapter_config. [main]
rlhf_status rlhf__model_read_config(struct rlhf__model *m, const struct rlhf__model_spec *spec,
                                    struct rlhf__error *err);

// ---- open_instance.c ----
// The plugin of the config's model_type, and an instance of it. Errors: RLHF_E_INVALID names the
// type and those that there are. [main]
rlhf_status rlhf__model_open_instance(struct rlhf__model *m, struct rlhf__error *err);

// ---- open_backend.c ----
// open(), info() and param() of the instance on m->compute, and what they answer looked at. Errors:
// theirs, RLHF_E_INVALID and RLHF_E_UNSUPPORTED for answers that are none. [main]
rlhf_status rlhf__model_open_backend(struct rlhf__model *m, const struct rlhf__model_spec *spec,
                                     struct rlhf__error *err);

#endif
