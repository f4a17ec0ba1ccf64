// transformer/internal.h: functions shared by the core's files. The interface for plugins is
// core.h.
#ifndef RLHF_MODELS_TRANSFORMER_INTERNAL_H
#define RLHF_MODELS_TRANSFORMER_INTERNAL_H

#include "instance.h"
#include "session.h"

// ---- internal.c ----
// Record a failure; returns code. A failure of the compute table needs no message: the backend
// has passed one to its host.
__attribute__((format(printf, 3, 4))) rlhf_status
rlhf__tf_fail(struct rlhf__tf *m, rlhf_status code, const char *fmt, ...);

// rlhf_copy_in that reports a failure with the struct's name.
rlhf_status rlhf__tf_copy_in(struct rlhf__tf *m, const char *what, void *dst, uint32_t own,
                             const void *src, uint32_t first);
// The distribution to score with: d, or temperature 1 over the whole vocabulary.
const rlhf_dist *rlhf__tf_dist(const rlhf_dist *d);

// ---- slots.c: shapes ----
struct rlhf__tf_shape {
    int32_t rows, cols; // cols 0: a vector of rows elements. Absent slots: rows 0
    uint32_t flags, init;
    int32_t group, reserved;
    double init_std;
};
// Shape of a global (layer < 0) or layer slot under m's arch and open arguments.
struct rlhf__tf_shape rlhf__tf_slot_shape(const struct rlhf__tf *m, int32_t layer, int32_t slot);
// The rows of its slot that a name refers to.
struct rlhf__tf_span rlhf__tf_piece_rows(const struct rlhf__tf *m, int32_t layer,
                                         const struct rlhf_tf_name *name);
// 1 when refresh() packs the slot's values and nothing else reads them.
int32_t rlhf__tf_slot_only_packed(int32_t layer, int32_t slot);

// ---- adapter.c ----
// site_of: the matrix product (site) that uses the matrix of a layer slot, or -1. site_slot: the
// slot of a site. site_inputs: the input width of a site.
int32_t rlhf__tf_site_of(int32_t slot);
int32_t rlhf__tf_site_slot(enum rlhf__tf_site site);
int32_t rlhf__tf_site_inputs(const struct rlhf__tf *m, enum rlhf__tf_site site);
// The largest number of columns that A x of a product has in any layer; 0 without adapters.
uint64_t rlhf__tf_low_width(const struct rlhf__tf *m, enum rlhf__tf_site site);
// Finds the products that adapter a targets (a NULL: none). params.c creates their tensors.
rlhf_status rlhf__tf_adapter_create(struct rlhf__tf *m, const rlhf_adapter *a);
rlhf_status rlhf__tf_adapter_weights(struct rlhf__tf *m);
rlhf_status rlhf__tf_adapter_pack(struct rlhf__tf *m);
void rlhf__tf_adapter_destroy(struct rlhf__tf *m);
// The number of outputs of the first `blocks` blocks.
uint64_t rlhf__tf_low_outputs(const struct rlhf__tf_low *low, int32_t blocks);
// The adapter of a matrix product, or NULL.
const struct rlhf__tf_low *rlhf__tf_low_of(const struct rlhf__tf *m, int32_t layer,
                                           enum rlhf__tf_site site);
// u = A x.
rlhf_status rlhf__tf_low_in(const struct rlhf__tf *m, const struct rlhf__tf_low *low, rlhf_dev u,
                            rlhf_dev x, uint32_t rows);
// Computes the gradients of A and B. dy is the gradient of the product's result. Leaves the
// gradient of u in bwd.dlow.
rlhf_status rlhf__tf_low_bwd(struct rlhf__tf *m, const struct rlhf__tf_low *low, rlhf_dev x,
                             rlhf_dev u, rlhf_dev dy, uint32_t rows);

int64_t rlhf__tf_adapter_size(const struct rlhf__tf *m); // number of elements

// ---- open_check.c ----
// Rejects requests in o that this model or its compute backend does not support.
rlhf_status rlhf__tf_open_check(struct rlhf__tf *m, const rlhf_model_open *o);

// ---- base.c ----
// If o has a base, sets m->base and changes *o to match it.
rlhf_status rlhf__tf_base_open(struct rlhf__tf *m, rlhf_model_open *o);

// ---- params.c ----
// Writes the full name of a parameter of a layer (-1: global). Returns the length of the name
// without the NUL. With out NULL, it only returns the length.
size_t rlhf__tf_full_name(const struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer,
                          char *out, size_t cap);
rlhf_status rlhf__tf_params_create(struct rlhf__tf *m);
void rlhf__tf_params_destroy(struct rlhf__tf *m);
// Records in the list that the temporary values of a layer (-1: globals) are freed.
void rlhf__tf_params_forget(struct rlhf__tf *m, int32_t layer);

// ---- storage.c ----
// Sets the size and the location of every tensor.
rlhf_status rlhf__tf_storage_create(struct rlhf__tf *m);
void rlhf__tf_storage_destroy(struct rlhf__tf *m);
// Frees the temporary values of a layer (-1: globals) once the device no longer uses them.
rlhf_status rlhf__tf_storage_release(struct rlhf__tf *m, int32_t layer);

// ---- weights.c ----
rlhf_status rlhf__tf_weights_create(struct rlhf__tf *m);
void rlhf__tf_weights_destroy(struct rlhf__tf *m);
// Packs weights that may have changed, and frees temporary values.
rlhf_status rlhf__tf_weights_pack(struct rlhf__tf *m);
rlhf_status rlhf__tf_lm_ready(struct rlhf__tf *m); // pack the LM head if it is stale or absent

// ---- buffers.c ----
rlhf_status rlhf__tf_reserve(struct rlhf__tf *m, struct rlhf__tf_buf *b, uint64_t bytes);
void rlhf__tf_buf_finish(struct rlhf__tf *m, struct rlhf__tf_buf *b);
void rlhf__tf_work_finish(struct rlhf__tf *m, struct rlhf__tf_work *w);
void rlhf__tf_scratch_finish(struct rlhf__tf *m);
void rlhf__tf_tap_finish(struct rlhf__tf *m);
void rlhf__tf_trim(void *self);
rlhf_status rlhf__tf_host_tmp(struct rlhf__tf *m, uint64_t bytes, void **out);

// ---- check.c ----
rlhf_status rlhf__tf_batch_check(struct rlhf__tf *m, const rlhf_batch *b, int32_t want_resp);
int32_t rlhf__tf_has_prefix(const int32_t *prefix, uint32_t n); // is any entry not -1
// ---- rows.c ----
rlhf_status rlhf__tf_rows_upload(struct rlhf__tf *m, struct rlhf__tf_work *w,
                                 const struct rlhf__tf_layout *l);
// The number of integers of a step with n rows of one token each.
uint64_t rlhf__tf_rows_ints(uint64_t n);

// ---- trunk.c, trunk_bwd.c ----
// Runs the embedding and all layers over w->rows; sets w->x. gen NULL: rows attend only to their
// own tokens.
rlhf_status rlhf__tf_trunk(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_gen *gen);
// Runs the layers from `layer` on over w->rows, in a pre-norm stack. The input is the stream in
// rlhf__tf_acts(layer).in. With mid, it is the stream in .mid, and the attention of `layer` does
// not run. Call trunk_reserve before. Sets w->x.
rlhf_status rlhf__tf_trunk_from(struct rlhf__tf *m, struct rlhf__tf_work *w, int32_t layer,
                                int32_t mid);
// Recomputes, from the input of `layer`, those activations of `layer` that the backward pass reads.
rlhf_status rlhf__tf_layer_again(struct rlhf__tf *m, const struct rlhf__tf_work *w, int32_t layer);
// Recomputes the input of a layer's product if w is lean.
rlhf_status rlhf__tf_input_again(struct rlhf__tf *m, const struct rlhf__tf_work *w, int32_t layer,
                                 enum rlhf__tf_site site);
// Allocates what the trunk needs for w->rows, so that running it does not allocate.
rlhf_status rlhf__tf_trunk_reserve(struct rlhf__tf *m, struct rlhf__tf_work *w);
// Where the activations of a layer of w are, after the trunk has run.
struct rlhf__tf_acts rlhf__tf_acts(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                                   int32_t layer);
rlhf_attn rlhf__tf_attn_geometry(const struct rlhf__tf *m, int32_t layer, int32_t cached);
// Backpropagates from d(loss)/d(w->x) in m->bwd.ds, f32 [total, d], to every trunk gradient.
rlhf_status rlhf__tf_trunk_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w);

// ---- rotary.c ----
// Ensures that m->turn covers the first `positions` positions. Call before recording.
rlhf_status rlhf__tf_turn_reserve(struct rlhf__tf *m, uint32_t positions);
// Arguments of rope and rope_bwd for layer; raw, stats: struct rlhf__tf_acts.
rlhf_rope rlhf__tf_rope_args(const struct rlhf__tf *m, const struct rlhf__tf_rows *rows,
                             int32_t layer, rlhf_dev raw, rlhf_dev stats);

// ---- norm.c ----
// out = the architecture's norm of x, f32 [rows, d], in dtype. gamma is the gain; its bias, if any,
// follows it. stats, f32 [rows, rlhf__tf_stats()], is for the backward pass, or NULL.
rlhf_status rlhf__tf_norm(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                          rlhf_dev out, int32_t dtype, rlhf_dev stats, rlhf_dev x, uint32_t rows);
// Computes the gradient of the gain, and that of x in dx, f32, from dy in dy_dtype. With
// accumulate, adds to dx.
rlhf_status rlhf__tf_norm_bwd(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                              rlhf_dev dx, int32_t accumulate, rlhf_dev dy, int32_t dy_dtype,
                              rlhf_dev x, rlhf_dev stats, uint32_t rows);

// ---- heads.c, heads_bwd.c, small_heads.c ----
// Gathers the states w->rows.resp from w->x, applies the final norm in f32 (w->rf_p) and copies the
// result in the act dtype (w->rh_p).
rlhf_status rlhf__tf_resp_state(struct rlhf__tf *m, struct rlhf__tf_work *w);
rlhf_status rlhf__tf_resp_reserve(struct rlhf__tf *m, struct rlhf__tf_work *w); // as trunk_reserve
rlhf_status rlhf__tf_heads(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                           const rlhf_forward *f, const rlhf_heads *out);
rlhf_status rlhf__tf_heads_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                               const rlhf_forward *f, const rlhf_heads *grad);
// Arguments of lm_head for w after heads.c has prepared it; heads: bits of enum rlhf_head.
void rlhf__tf_lm_args(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                      const rlhf_forward *f, rlhf_lm_head *out);
rlhf_status rlhf__tf_value(struct rlhf__tf *m, struct rlhf__tf_work *w);
// Overwrites d_rf, f32 [n_resp, d], with the gradient of w->rf; NULL: the head is detached.
rlhf_status rlhf__tf_value_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d_value,
                               rlhf_dev d_rf);
rlhf_status rlhf__tf_full_norm(struct rlhf__tf *m, struct rlhf__tf_work *w);
rlhf_status rlhf__tf_score(struct rlhf__tf *m, struct rlhf__tf_work *w, float *host_out);
// The score head at each response token, in w->result.
rlhf_status rlhf__tf_token_score(struct rlhf__tf *m, struct rlhf__tf_work *w);
// Adds the gradient of the score head to m->bwd.ds. host_d [n, n_labels]; d device f32 [n_resp].
rlhf_status rlhf__tf_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const float *host_d);
rlhf_status rlhf__tf_token_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d);
int32_t rlhf__tf_pooling(const struct rlhf__tf *m);

// 1 if a forward pass for these heads fills out->dev_hidden.
int32_t rlhf__tf_gives_dev_hidden(uint32_t heads, const rlhf_heads *out);
// f->kl_dev_row if f reads it, otherwise NULL.
const int32_t *rlhf__tf_reference_rows(const rlhf_forward *f);

// ---- gen.c ----
rlhf_status rlhf__tf_gen_open(void *self, uint32_t n_slots, uint32_t max_len, rlhf_gen **out);
rlhf_status rlhf__tf_gen_step(void *self, rlhf_gen *, const rlhf_gen_step *);
void rlhf__tf_gen_close(void *self, rlhf_gen *);

// Refuses a step that does not fit the session; fills `use` and `after` of its slots.
rlhf_status rlhf__tf_step_check(struct rlhf__tf *m, rlhf_gen *, const rlhf_gen_step *);
void rlhf__tf_step_commit(rlhf_gen *, const rlhf_gen_step *); // after the step has run

// ---- gen_record.c ----
// The state that a session of n_slots needs to record its steps. *out is NULL if the backend does
// not record.
rlhf_status rlhf__tf_recorded_create(struct rlhf__tf *m, uint32_t n_slots,
                                     struct rlhf__tf_recorded **out);
void rlhf__tf_recorded_destroy(struct rlhf__tf *m, struct rlhf__tf_recorded *r); // NULL allowed
// 1 if the session records the checked step s: one token per row, and every row samples.
int32_t rlhf__tf_is_recorded(const rlhf_gen *g, const rlhf_gen_step *s);
// Runs a step for which rlhf__tf_is_recorded returns 1, after the checks, up to sampling.
rlhf_status rlhf__tf_gen_recorded(struct rlhf__tf *m, rlhf_gen *g, const rlhf_gen_step *s);

#endif
