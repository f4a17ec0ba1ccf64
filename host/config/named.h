// named.h: the section "models" of a config: directories of the further frozen models that an
// algorithm plans by name (rlhf_plan.named). Its keys are the algorithm's own, so it has no option
// table.
#ifndef RLHF_HOST_CONFIG_NAMED_H
#define RLHF_HOST_CONFIG_NAMED_H

#include "config/config.h"

#define RLHF__NAMED_SECTION "models"

// Set models.<name>; an empty path means "not given". `where` is for messages: "--set" or
// "file:line". Errors: RLHF_E_INVALID if no plan can have the name, if there are more names than a
// plan can have, or if the value is not a text. [main]
rlhf_status rlhf__named_set(struct rlhf__config *c, const char *name, const json_t *value,
                            const char *where, struct rlhf__error *err);

// The path of a named model, or NULL. [any]
const char *rlhf__named_path(const struct rlhf__config *c, const char *name);

// Make existing relative paths absolute. [main]
rlhf_status rlhf__named_absolute(struct rlhf__config *c, struct rlhf__error *err);

// The section as JSON (new reference), NULL if no path is given or memory ran out. [any]
json_t *rlhf__named_json(const struct rlhf__config *c);

#endif
