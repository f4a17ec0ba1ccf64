// config_common.h: fields of config.json that mean the same in every architecture, and that a model
// must not open without having looked at. An architecture's own fields are its plugin's.
#ifndef RLHF_HOST_CONFIG_COMMON_H
#define RLHF_HOST_CONFIG_COMMON_H

#include "base/error.h"

#include <jansson.h>

// Refuse by field and value: weights that are quantized (quantization_config), a dtype that is
// none, a use that is not one here (architectures), an encoder with a decoder, pruned heads, labels
// that are not one of several (problem_type, where labels > 1), and a number of labels that
// contradicts their names. dir is for messages. Errors: RLHF_E_INVALID, RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__config_common(const json_t *config, const char *dir, struct rlhf__error *err);
rlhf_status rlhf__config_labels(const json_t *config, const char *dir, int32_t labels,
                                struct rlhf__error *err);

#endif
