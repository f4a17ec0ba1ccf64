// tried_model.h: a model of a plugin on the reference backend, rows for it, and its parameters
// filled with numbers; for a child process that tries a plugin.
#ifndef RLHF_HOST_CHECK_TRIED_MODEL_H
#define RLHF_HOST_CHECK_TRIED_MODEL_H

#include "check/watched.h"
#include "model/compute.h"
#include "model/memory_plan.h"

// Rows that are tried, and their tokens.
enum { RLHF__TRIED_ROWS = 3, RLHF__TRIED_LONGEST = 12, RLHF__TRIED_TOKENS = 36 };

// An instance with a backend, opened.
struct rlhf__tried_model {
    struct rlhf__watched t;
    struct rlhf__compute *compute;
    struct rlhf__memory_plan *memory_plan;
    const rlhf_compute *table;
    rlhf_model_info info;
    int32_t trainable, may_refuse; // may_refuse: what open() refuses is a fact, no finding
};

const rlhf_model_ops *rlhf__tried_ops(const struct rlhf__tried_model *m);

// A failure of a call of the model against a rule, with its words; 1 when it succeeded. After
// rlhf__watched_begin. [main]
int rlhf__tried_fine(struct rlhf__tried_model *m, int32_t rule, rlhf_status st);

// Create and open as `how` says, whose size and compute (and, when it is 0, dtype: f32) are set
// here; on_plan: on a memory plan, whose addresses must not be read. 0: it does not come to an open
// model, which is found, a fact, or the machine's. m is zeroed but for may_refuse. Needs close also
// then. [main]
int rlhf__tried_open(struct rlhf__check *c, struct rlhf__tried_model *m, int on_plan,
                     const rlhf_model_open *how);
void rlhf__tried_close(struct rlhf__tried_model *m); // [main]

// Whether it is small enough for the reference backend and gives one of these heads; said once,
// when not. *info is what it is, opened plainly. [main]
int rlhf__tried_is_small(struct rlhf__check *c, uint32_t heads, rlhf_model_info *info);

enum { RLHF__TRIED_ZERO_B = 1 }; // an adapter's B is 0

// Every parameter: small numbers after the seed, ones added where it begins at one; those that are
// trained plus eps times a direction. Then refresh(). 0 when something failed. [main]
int rlhf__tried_fill(struct rlhf__tried_model *m, uint32_t seed, float eps, int flags);
// The product of all gradients with that direction; NaN when they cannot be read. [main]
double rlhf__tried_along(struct rlhf__tried_model *m);

// Ragged rows of the model's vocabulary.
struct rlhf__tried_rows {
    int32_t ids[RLHF__TRIED_TOKENS], offset[RLHF__TRIED_ROWS + 1], prompt_len[RLHF__TRIED_ROWS];
};
void rlhf__tried_rows_make(const struct rlhf__tried_model *m, struct rlhf__tried_rows *r);
// Rows from .. to-1 as a batch, whose offsets are in offset [RLHF__TRIED_ROWS + 1].
rlhf_batch rlhf__tried_batch(const struct rlhf__tried_rows *r, int32_t from, int32_t to,
                             int32_t *offset);
// Numbers of -1 to 1 for the response tokens into d [RLHF__TRIED_TOKENS], 0 elsewhere. [any]
void rlhf__tried_weights(const struct rlhf__tried_rows *r, uint32_t seed, float *d);

int rlhf__tried_same(float a, float b); // 1 when the bits are the same [any]

#endif
