// optim.h: the optimizer: AdamW for all parameters, or Muon for the trunk's matrices and AdamW for
// the rest. It also computes the gradient norm, clips gradients, and skips a step if the loss or
// the gradient norm is not finite.
//
// The state is on the device, as one or two f32 tensors per parameter. optim_state.h writes and
// reads it. The caller passes a factor for the learning rates to each step.
#ifndef RLHF_HOST_LEARN_OPTIM_H
#define RLHF_HOST_LEARN_OPTIM_H

#include "config/schema.h"
#include "model/compute.h"
#include "team/share.h"

#include <rlhf/model.h>

struct rlhf__optim_blocks;

struct rlhf__optim_item {
    rlhf_param param;
    int64_t n; // number of elements
    int32_t muon, rows, cols;
    rlhf_dev m, v; // with Muon, m is the momentum and v is NULL
};

struct rlhf__optim_count {
    int64_t step;        // steps taken, without skipped ones
    int64_t skipped;     // steps skipped in total
    int64_t skipped_row; // consecutive skipped steps, up to now
};

struct rlhf__optim {
    const rlhf_compute *compute;
    // instance whose messages explain failures; NULL: not known
    const struct rlhf__instance *kernels;
    struct rlhf__optim_config config;
    double head_lr; // learning rate of the value head
    struct rlhf__optim_item *items;
    uint32_t n;
    int32_t muon; // 1: some parameters use Muon
    struct rlhf__optim_count count;
    rlhf_dev grads; // all gradients as one range; NULL if they are separate
    uint64_t grads_bytes;
    // A list of all parameters, followed by the n_between ranges of `grads` that are between the
    // parameters' gradients. The weight pointer of a parameter that uses Muon is NULL. list.size is
    // 0 if the backend lacks functions for lists. The arrays `len`, `places` and `rates` belong to
    // the list.
    rlhf_tensors list;
    uint32_t n_between;
    rlhf_dev clip; // the device's rlhf_clip
    uint64_t *len;
    rlhf_dev *places; // g, w, m, v
    double *rates;    // lr, weight_decay of the current step
    // The parameters in blocks, if minibatches are divided into shards (optim_blocks.h); else NULL.
    struct rlhf__optim_blocks *blocks;
};

// The inputs of rlhf__optim_open. `kernels` and `share` are borrowed for the optimizer's
// lifetime, all others only until rlhf__optim_open returns.
struct rlhf__optim_spec {
    const struct rlhf__instance *kernels; // the table's instance, for messages; NULL: not known
    // n parameters, at least one of which is trained. Parameters with RLHF_PARAM_FROZEN are left
    // out; all others must have a gradient.
    const rlhf_param *params;
    uint32_t n;
    const struct rlhf__optim_config *config;
    double head_lr; // learning rate of the value head; 0 = the same as the rest
    // All gradients as one range (rlhf_model_info.grad_base), which can be zeroed at once. NULL:
    // each gradient is zeroed separately.
    rlhf_dev grads;
    uint64_t grads_bytes;
    const struct rlhf__share
        *share; // NULL: minibatches have one shard; else must outlive the optimizer
};

// The result of one step.
struct rlhf__optim_report {
    double grad_norm;         // L2 norm of all gradients before clipping; may be NaN or Inf
    double grad_norm_clipped; // after clipping
    int32_t skipped;
};

// Create the state of an optimizer. [main]
rlhf_status rlhf__optim_open(const rlhf_compute *, const struct rlhf__optim_spec *,
                             struct rlhf__optim **out, struct rlhf__error *err);
void rlhf__optim_close(struct rlhf__optim *); // NULL allowed [main]

// Take a step, in which `factor` multiplies the learning rates, then zero the gradients. If the
// gradient norm is not finite, or loss_ok is 0, the update is skipped. Returns RLHF_E_NUMERIC after
// max_skipped consecutive skips. The caller must refresh the model afterwards. If the backend takes
// lists of tensors, waits for the device once. [step]
rlhf_status rlhf__optim_step(struct rlhf__optim *, double factor, int32_t loss_ok,
                             struct rlhf__optim_report *, struct rlhf__error *err);

// Get tensor i of the state for the checkpoint: its name ("m.<param>", "v.<param>" or
// "momentum.<param>", at most cap bytes), its buffer and its parameter. Errors: RLHF_E_INVALID if i
// is past the end. [any]
rlhf_status rlhf__optim_tensor(const struct rlhf__optim *, uint32_t i, char *name, size_t cap,
                               rlhf_dev *out, const rlhf_param **param);

// ---- the state, whole or divided between processes ----

// Returns 1 if the state is divided between processes. [any]
int rlhf__optim_divided(const struct rlhf__optim *);
// Returns the bytes of the whole state of an optimizer for these parameters. [any]
uint64_t rlhf__optim_state_bytes(const struct rlhf__optim_config *, const rlhf_param *, uint32_t n);
// Returns the number of elements of tensor i of the state, 0 past the end. [any]
uint64_t rlhf__optim_elements(const struct rlhf__optim *, uint32_t i);
// rlhf__optim_get copies elements [from, from + n) of tensor i of the state to `host`;
// rlhf__optim_put copies `host` to these elements. If the state is divided between processes, all
// processes must call rlhf__optim_get in the same order. Only rank 0 then receives the elements; on
// the other ranks `host` may be NULL. rlhf__optim_put sets only the elements that the process has.
// [main]
rlhf_status rlhf__optim_get(const struct rlhf__optim *, uint32_t i, uint64_t from, uint64_t n,
                            float *host, struct rlhf__error *err);
rlhf_status rlhf__optim_put(struct rlhf__optim *, uint32_t i, uint64_t from, uint64_t n,
                            const float *host, struct rlhf__error *err);
// Get the k-th piece of device memory that holds this process's part of the state. Returns 0 past
// the end. [any]
int rlhf__optim_memory(const struct rlhf__optim *, uint32_t k, rlhf_dev *out, uint64_t *bytes);

// ---- parts of a step, for optim_blocks.c ----

// Return the learning rate and the weight decay of a parameter. [any]
double rlhf__optim_lr(const struct rlhf__optim *, const struct rlhf__optim_item *);
double rlhf__optim_decay(const struct rlhf__optim *, const struct rlhf__optim_item *);
// Returns the AdamW settings of the next step. [any]
rlhf_adamw rlhf__optim_adamw(const struct rlhf__optim *, double lr, double decay, double scale);
// Take Muon's step for a matrix. [step]
rlhf_status rlhf__optim_muon(const struct rlhf__optim *, const struct rlhf__optim_item *,
                             double factor, double grad_scale, struct rlhf__error *err);
// Zero all gradients. [step]
rlhf_status rlhf__optim_zero(const struct rlhf__optim *, struct rlhf__error *err);

#endif
