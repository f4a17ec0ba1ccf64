// classifier_config.h: the score head's side of config.json: label names, architecture, pooling.
#ifndef RLHF_HOST_CLASSIFIER_CONFIG_H
#define RLHF_HOST_CLASSIFIER_CONFIG_H

#include "model/model.h"

// Labels of the comma-separated list score.labels; n = 0 for "". Errors: RLHF_E_INVALID (an empty
// or repeated name, fewer than two), RLHF_E_NOMEM. Release with rlhf__labels_finish. [main]
rlhf_status rlhf__score_labels(const char *list, struct rlhf__labels *out, struct rlhf__error *err);

// LABEL_0, LABEL_1, ... [main]
rlhf_status rlhf__score_labels_numbered(int32_t n, struct rlhf__labels *out,
                                        struct rlhf__error *err);

// Make m->config that of a classifier with these labels: architectures
// <Name>ForSequenceClassification, id2label, label2id, num_labels, rlhf_pooling. [main]
rlhf_status rlhf__classifier_config(struct rlhf__model *m, const struct rlhf__labels *labels,
                                    struct rlhf__error *err);

// Name the architecture in config as that of a classifier of its kind. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__classifier_architecture(json_t *config, struct rlhf__error *err);

#endif
