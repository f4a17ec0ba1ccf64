// optim.h: the optimiser: AdamW for all parameters, or Muon for the trunk's matrices and AdamW for
// the rest; gradient norm, clipping, and skipping of non-finite steps.
//
// The state is on the device, one or two f32 tensors per parameter. This file does no I/O (it lists
// its tensors for the checkpoint), and the caller gives each step a factor for the learning rates.
#ifndef RLHF_HOST_OPTIM_H
#define RLHF_HOST_OPTIM_H

#include "config/schema.h"
#include "model/compute.h"

#include <rlhf/model.h>

struct rlhf__optim_item {
    rlhf_param param;
    int64_t n; // elements
    int32_t muon, rows, cols, reserved;
    rlhf_dev m, v; // v NULL for muon, where m is the momentum
};

struct rlhf__optim_count {
    int64_t step;        // steps taken, skipped ones not counted
    int64_t skipped;     // in total
    int64_t skipped_row; // in a row, until now
};

struct rlhf__optim {
    const rlhf_compute *compute;
    const struct rlhf__instance *kernels; // whose words a failure has; NULL: unknown
    struct rlhf__optim_config config;
    double head_lr; // of the value head
    struct rlhf__optim_item *items;
    uint32_t n;
    int32_t muon; // 1: some parameters use Muon
    struct rlhf__optim_count count;
    rlhf_dev grads; // all gradients as one range, or NULL
    uint64_t grads_bytes;
    // All parameters as one list (Muon's without a weight), then n_between ranges of grads between
    // them. size 0: the backend takes one tensor per call. len, places and rates are the list's
    // arrays.
    rlhf_tensors list;
    uint32_t n_between, reserved;
    rlhf_dev clip; // rlhf_clip
    uint64_t *len;
    rlhf_dev *places; // g, w, m, v
    double *rates;    // lr, weight_decay; of the current step
};

// Result of one step.
struct rlhf__optim_report {
    double grad_norm;         // L2 over all gradients, before clipping; may be NaN or Inf
    double grad_norm_clipped; // after clipping
    int32_t skipped, reserved;
};

// Create the state for n parameters, of which at least one is trained. Those with RLHF_PARAM_FROZEN
// are left out; all others must have a gradient. params is copied. head_lr is the learning rate of
// the value head, 0 = the same as the rest. kernels, the instance of the backend that made the
// table, is for messages (NULL: unknown). [main]
rlhf_status rlhf__optim_create(const rlhf_compute *, const struct rlhf__instance *kernels,
                               const rlhf_param *params, uint32_t n,
                               const struct rlhf__optim_config *, double head_lr,
                               struct rlhf__optim **out, struct rlhf__error *err);
void rlhf__optim_destroy(struct rlhf__optim *); // NULL allowed [main]

// The gradients are in one range and are zeroed together (rlhf_model_info.grad_base); base NULL:
// zero each one. [main]
void rlhf__optim_range(struct rlhf__optim *, rlhf_dev base, uint64_t bytes);

// One step with learning rates times `factor`, then zero the gradients. A gradient norm that is not
// finite, or loss_ok = 0, skips the update (E_NUMERIC after max_skipped in a row). The caller
// refreshes the model. With lists of tensors it synchronises with the device once. [step]
rlhf_status rlhf__optim_step(struct rlhf__optim *, double factor, int32_t loss_ok,
                             struct rlhf__optim_report *, struct rlhf__error *err);

// State tensor i of the checkpoint: its name ("m.<param>", "v.<param>" or "momentum.<param>", at
// most cap bytes), buffer and parameter. E_INVALID past the end. [any]
rlhf_status rlhf__optim_tensor(const struct rlhf__optim *, uint32_t i, char *name, size_t cap,
                               rlhf_dev *out, const rlhf_param **param);

// The learning-rate schedule, a pure function: the factor of phase `phase` (0 = first) in a run of
// `horizon` phases. It is (phase + 1) / warmup during the warm-up (phase / warmup with
// RLHF__WARMUP_FROM_ZERO), then c->schedule decays it from 1 to c->final_scale. The decay runs from
// the end of the warm-up to the horizon, which is one step after the last phase. [any]
double rlhf__schedule_factor(const struct rlhf__optim_config *c, int64_t phase, int64_t horizon);

#endif
