// config_json.h: writes a config as JSON, and compares two configs.
#ifndef RLHF_HOST_CONFIG_CONFIG_JSON_H
#define RLHF_HOST_CONFIG_CONFIG_JSON_H

#include "config/schema.h"

// Set *out to the whole config as JSON (new reference), in the form that --print-config prints and
// config.json stores. Reading it with --config gives the same config. [any]
rlhf_status rlhf__config_to_json(const struct rlhf__config *c, json_t **out,
                                 struct rlhf__error *err);

// Compare two configs in the form of rlhf__config_to_json. For each path, call `visit` with the
// values in both configs. Objects, and lists of the same length, are compared member by member. If
// only one config has a member, the value in the other one is NULL. Equal values are visited too.
// Stops at the first error of `visit` and returns that error. [any]
rlhf_status rlhf__config_leaves(const char *path, json_t *was, json_t *is,
                                rlhf_status (*visit)(void *arg, const char *path, const json_t *was,
                                                     const json_t *is, struct rlhf__error *err),
                                void *arg, struct rlhf__error *err);

// Append the config's JSON as text, with a final newline. [any]
rlhf_status rlhf__config_print(const struct rlhf__config *c, struct rlhf__buf *out,
                               struct rlhf__error *err);

#endif
