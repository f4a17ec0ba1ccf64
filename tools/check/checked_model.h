// checked_model.h: a model under test on the reference backend. Generates rows for the model and
// fills its parameters with numbers. Used in a child process that tests a plugin.
#ifndef RLHF_TOOLS_CHECK_CHECKED_MODEL_H
#define RLHF_TOOLS_CHECK_CHECKED_MODEL_H

#include "check/probe.h"
#include "estimate/memory_plan.h"
#include "model/compute.h"

// Number of test rows, number of tokens of the longest row, and number of all tokens.
enum { RLHF__CHECKED_ROWS = 3, RLHF__CHECKED_LONGEST = 12, RLHF__CHECKED_TOKENS = 36 };

// An opened instance with its backend.
struct rlhf__checked_model {
    struct rlhf__probe t;
    struct rlhf__compute *compute;
    struct rlhf__memory_plan *memory_plan;
    const rlhf_compute *table;
    rlhf_model_info info;
    int32_t trainable, may_refuse; // may_refuse 1: a refusal by open() is a fact, not a finding
    int32_t filled, reserved;      // filled 1: all parameters have been filled once
};

const rlhf_model_ops *rlhf__checked_ops(const struct rlhf__checked_model *m);

// Call param() and return its status. [main]
rlhf_status rlhf__checked_param(struct rlhf__checked_model *m, uint32_t i, rlhf_param *out);

// If a call of the model failed (`st` is its status), report its message as a violation of `rule`.
// Returns 1 if the call succeeded. Call this function after rlhf__probe_begin. [main]
int rlhf__checked_fine(struct rlhf__checked_model *m, int32_t rule, rlhf_status st);

// Create a model and open it as `how` describes, but ignore the members `size` and `compute`. A
// dtype of 0 means f32. If on_plan is 1, opens the model on a memory plan, so that its memory
// cannot be read. Returns 0 if the model cannot be opened, and reports this unless the machine is
// the cause. Before the call, all members of *m except may_refuse must be zero. Call
// rlhf__checked_close in any case. [main]
int rlhf__checked_open(struct rlhf__check *c, struct rlhf__checked_model *m, int on_plan,
                       const rlhf_model_open *how);
void rlhf__checked_close(struct rlhf__checked_model *m); // [main]

// Returns 1 if the model is small enough for the reference backend and has one of these heads.
// Otherwise reports the reason as a fact (only once) and returns 0. Opens the model without options
// to find out. Sets *info to the model's description. [main]
int rlhf__checked_is_small(struct rlhf__check *c, uint32_t heads, rlhf_model_info *info);

enum { RLHF__CHECKED_ZERO_B = 1 }; // an adapter's B is 0

// Fill all parameters with small numbers from the seed, and add 1 to those whose initial value is
// 1. A second call leaves out parameters whose values the model does not keep. Add eps times a
// fixed direction to the trained parameters. Then call refresh(). Returns 0 if a call failed.
// [main]
int rlhf__checked_fill(struct rlhf__checked_model *m, uint32_t seed, float eps, int flags);
// Returns the dot product of all gradients with the direction of rlhf__checked_fill; NaN if the
// gradients cannot be read. [main]
double rlhf__checked_along(struct rlhf__checked_model *m);

// Test rows of different lengths, with ids of the model's vocabulary.
struct rlhf__checked_rows {
    int32_t ids[RLHF__CHECKED_TOKENS], offset[RLHF__CHECKED_ROWS + 1],
        prompt_len[RLHF__CHECKED_ROWS];
};
void rlhf__checked_rows_make(const struct rlhf__checked_model *m, struct rlhf__checked_rows *r);
// Returns the rows `from` to `to` - 1 as a batch. The batch's offsets are written to `offset`
// [RLHF__CHECKED_ROWS + 1].
rlhf_batch rlhf__checked_batch(const struct rlhf__checked_rows *r, int32_t from, int32_t to,
                               int32_t *offset);
// Set `d` [RLHF__CHECKED_TOKENS] to random numbers between -1 and 1 for the response tokens, and to
// 0 for the other tokens. [any]
void rlhf__checked_weights(const struct rlhf__checked_rows *r, uint32_t seed, float *d);

int rlhf__checked_same(float a, float b); // 1 if the bits are equal [any]

#endif
