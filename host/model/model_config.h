// model_config.h: the fields of config.json that all architectures have. They are checked before a
// model is opened. The fields of a score head (labels, pooling, architecture) are also written
// here. The plugin reads the fields that are specific to its architecture.
#ifndef RLHF_HOST_MODEL_MODEL_CONFIG_H
#define RLHF_HOST_MODEL_MODEL_CONFIG_H

#include "model/model.h"

// Rejects configs that this program does not support: quantized weights (quantization_config), an
// unknown dtype, an unknown use (architectures), an encoder with a decoder, pruned heads, several
// labels per text (problem_type, if `labels` > 1), and a number of labels that does not match their
// names. The message names `dir`, the field and its value. Errors: RLHF_E_INVALID,
// RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__config_common(const json_t *config, const char *dir, struct rlhf__error *err);
rlhf_status rlhf__config_labels(const json_t *config, const char *dir, int32_t labels,
                                struct rlhf__error *err);

// Sets m->config, n_labels, labels and pooling from the directory's config.json. Errors:
// RLHF_E_INVALID, with file and field; those of rlhf__adapter_config. [main]
rlhf_status rlhf__model_read_config(struct rlhf__model *m, const struct rlhf__model_spec *spec,
                                    struct rlhf__error *err);

// ---- a score head ----

// Set *out to the labels in score.labels, a comma-separated list. For "", out->n is 0. Release *out
// with rlhf__labels_finish. Errors: RLHF_E_INVALID (an empty or repeated name, fewer than two
// names), RLHF_E_NOMEM. [main]
rlhf_status rlhf__score_labels(const char *list, struct rlhf__labels *out, struct rlhf__error *err);

// Set *out to n labels LABEL_0, LABEL_1, ... [main]
rlhf_status rlhf__score_labels_numbered(int32_t n, struct rlhf__labels *out,
                                        struct rlhf__error *err);

// Turn m->config into the config of a classifier with these labels: architectures
// <Name>ForSequenceClassification, id2label, label2id, num_labels, rlhf_pooling. [main]
rlhf_status rlhf__classifier_config(struct rlhf__model *m, const struct rlhf__labels *labels,
                                    struct rlhf__error *err);

// Change the architecture in `config` to the classifier of the same family. Errors: RLHF_E_NOMEM.
// [any]
rlhf_status rlhf__classifier_architecture(json_t *config, struct rlhf__error *err);

#endif
