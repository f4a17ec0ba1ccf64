// classifier.h: a sequence classifier with its own tokenizer: texts in, logits out.
#ifndef RLHF_HOST_MODEL_CLASSIFIER_H
#define RLHF_HOST_MODEL_CLASSIFIER_H

#include "batch/rows.h"
#include "model/model.h"

struct rlhf__classifier;

// Open a classifier directory (architectures ...ForSequenceClassification). The caller owns *out.
// Errors: those of rlhf__model_open; RLHF_E_INVALID if the model is not a classifier. [main]
rlhf_status rlhf__classifier_open(const struct rlhf__model_env *env, const char *dir,
                                  const struct rlhf__model_adapter *adapter,
                                  struct rlhf__classifier **out, struct rlhf__error *err);
// Loads the classifier's model if the model is still on a memory plan. [main]
rlhf_status rlhf__classifier_load(struct rlhf__classifier *c, struct rlhf__error *err);
// Returns the classifier's model; borrowed. [any]
struct rlhf__model *rlhf__classifier_model(const struct rlhf__classifier *c);

void rlhf__classifier_close(struct rlhf__classifier *); // NULL allowed [main]

const struct rlhf__labels *rlhf__classifier_labels(const struct rlhf__classifier *); // [any]

// Computes logits[n, n_labels] of n texts. The logits of a text do not depend on the other texts.
// Each text gets the special tokens that the tokenizer adds, and is cut to the context. Nothing is
// padded. If rendered[i] is 1, text i is the output of the chat template, and special tokens are
// not added to it. If `rendered` is NULL, they are added to every text. [step]
rlhf_status rlhf__classifier_logits(struct rlhf__classifier *, uint32_t n, const rlhf_str *texts,
                                    const uint8_t *rendered, float *logits,
                                    struct rlhf__error *err);

// Make the largest forward pass of a classifier for these rows of a run, with `m`, which is on a
// memory plan: as many rows as it processes at a time, each as long as possible. [main]
rlhf_status rlhf__classifier_largest(const struct rlhf__model *m, const struct rlhf__rows *,
                                     struct rlhf__error *err);

#endif
