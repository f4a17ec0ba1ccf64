// tests/models/vectors.h: the records of make_vectors.py, and the batch they belong to.
#ifndef TESTS_MODELS_VECTORS_H
#define TESTS_MODELS_VECTORS_H

#include "support.h"

enum { VEC_ROWS = 4, VEC_TOTAL = 24, VEC_LABELS = 3 };
extern const int32_t vec_ids[VEC_TOTAL], vec_offset[VEC_ROWS + 1], vec_prompt_len[VEC_ROWS];

struct vectors {
    char *bytes;
    uint64_t len;
    const char *model;
};

// Opens vectors.bin for the records of a model. The caller keeps the name. Fails the test if the
// file is missing.
struct vectors vectors_open(const char *model);
void vectors_close(struct vectors *v);
// Returns a copy of the record's floats, and their number in *n. Returns NULL if the record is
// missing. Release the copy with test_free.
float *vectors_get(const struct vectors *v, const char *name, uint64_t *n);
// Does the same as vectors_get, but the record must exist with n values.
float *vectors_need(const struct vectors *v, const char *name, uint64_t n);

float vec_weight(uint64_t i); // loss weight of entry i

#define VEC_RTOL 1e-4 // relative to a tensor's largest value
extern const rlhf_batch vec_batch;
// Runs forward, then backward of sign * sum_t weight_t logp_t. logp receives the log-probs.
void vec_lm_step(struct model *m, float sign, float *logp);
// Compares the model's gradients with the vectors. If `partly` is set, compares only those that the
// vectors have, and fails if they lack all of them.
void vec_check_grads(struct model *m, const struct vectors *v, int32_t partly);
// Checks scores and gradients of a classifier with VEC_LABELS labels against the vectors.
void vec_classifier(const struct backend *b, const char *plugin, const struct setting *settings,
                    const char *vectors);

#endif
