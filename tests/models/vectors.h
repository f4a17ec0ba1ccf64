// tests/models/vectors.h: the records make_vectors.py writes, and the batch they belong to.
#ifndef TESTS_MODELS_VECTORS_H
#define TESTS_MODELS_VECTORS_H

#include "support.h"

enum { VEC_ROWS = 4, VEC_TOTAL = 24, VEC_LABELS = 3 };
extern const int32_t vec_ids[VEC_TOTAL], vec_offset[VEC_ROWS + 1], vec_prompt_len[VEC_ROWS];

struct vectors {
    char *bytes;
    uint64_t len;
};

// vectors/NAME below the source directory of the test; fails the test when it is missing.
struct vectors vectors_open(const char *name);
void vectors_close(struct vectors *v);
// The record's floats (copied; test_free) and their number, or NULL when there is none.
float *vectors_get(const struct vectors *v, const char *name, uint64_t *n);
// As vectors_get, but the record must exist with n values.
float *vectors_need(const struct vectors *v, const char *name, uint64_t n);

float vec_weight(uint64_t i); // loss weight of entry i

#endif
