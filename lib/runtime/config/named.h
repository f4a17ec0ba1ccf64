// named.h: the section "models" of a config: the directories of additional frozen models that an
// algorithm names in its plan (rlhf_plan.named). The algorithm chooses the keys, so there is no
// option table.
#ifndef RLHF_HOST_CONFIG_NAMED_H
#define RLHF_HOST_CONFIG_NAMED_H

#include "config/schema.h"

#define RLHF__NAMED_SECTION "models"

// Set models.<name>; an empty path means "not given". `where` is "--set" or "file:line", for
// messages. Errors: RLHF_E_INVALID if this name is not allowed in plans, if there are more names
// than a plan can have, or if the value is not a string. [main]
rlhf_status rlhf__named_set(struct rlhf__config *c, const char *name, const json_t *value,
                            const char *where, struct rlhf__error *err);

// Returns the path of a named model, or NULL. [any]
const char *rlhf__named_path(const struct rlhf__config *c, const char *name);

// Replace relative paths of existing directories with absolute paths. [main]
rlhf_status rlhf__named_absolute(struct rlhf__config *c, struct rlhf__error *err);

// Returns the section as JSON (new reference), or NULL if no path is given or memory ran out. [any]
json_t *rlhf__named_json(const struct rlhf__config *c);

#endif
