// transformer/internal.h: functions that the files of the core share. The interface for plugins is
// core.h.
#ifndef RLHF_MODELS_TRANSFORMER_INTERNAL_H
#define RLHF_MODELS_TRANSFORMER_INTERNAL_H

#include "session.h"
#include "transformer/mix/mix.h"

#include <math.h>

// ---- internal.c ----
// Record a failure and return `code`. Do not call this function for a failure of the compute table:
// the backend has already passed a message to its host.
__attribute__((format(printf, 3, 4))) rlhf_status
rlhf__tf_fail(struct rlhf__tf *m, rlhf_status code, const char *fmt, ...);

// Like rlhf_copy_in, but reports failures with the struct's name.
rlhf_status rlhf__tf_copy_in(struct rlhf__tf *m, const char *what, void *dst, uint32_t own,
                             const void *src, uint32_t first);
// The distribution for log-probs: *d or, if `d` is NULL, temperature 1 over the whole vocabulary.
const rlhf_dist *rlhf__tf_dist(const rlhf_dist *d);

// ---- slots.c: shapes ----
struct rlhf__tf_shape {
    int32_t rows, cols; // cols 0: a vector of `rows` elements; rows 0: the slot is absent
    uint32_t flags, init;
    int32_t group;
    double init_std;
};
// Returns the shape of a layer's slot or, if layer < 0, of a global slot. The shape depends on the
// architecture and on the arguments of open().
struct rlhf__tf_shape rlhf__tf_slot_shape(const struct rlhf__tf *m, int32_t layer, int32_t slot);
// Returns which rows of its slot the parameter `name` occupies.
struct rlhf__tf_span rlhf__tf_piece_rows(const struct rlhf__tf *m, int32_t layer,
                                         const struct rlhf_tf_name *name);
// 1 if refresh() packs the slot's values and they are not read in any other way.
int32_t rlhf__tf_slot_only_packed(int32_t layer, int32_t slot);

// ---- adapter.c ----
// site_of: the matrix product (site) that uses the matrix in a layer's slot, or -1. site_slot: the
// slot of a site's matrix. site_inputs, site_outputs: the widths of a site in a layer.
int32_t rlhf__tf_site_of(int32_t slot);
int32_t rlhf__tf_site_slot(enum rlhf__tf_site site);
// Returns the first slot of a product. The slots of a product end before the first slot of the next
// product. The slots of QKV and of FC each begin with those of a norm: the norm before the product
// or, with RLHF_TF_NORM_SUMS, the norm of the sum after the product's block. Those of PROJ and of
// OUT each end with the norm of the block's output (rlhf__tf_norms_after). For TF_N_SITE, returns
// RLHF_TF_N_LAYER.
int32_t rlhf__tf_site_first(enum rlhf__tf_site site);
int32_t rlhf__tf_site_inputs(const struct rlhf__tf *m, int32_t layer, enum rlhf__tf_site site);
int32_t rlhf__tf_site_outputs(const struct rlhf__tf *m, int32_t layer, enum rlhf__tf_site site);
// The largest number of columns that A x of this product has in any layer; 0 without adapters.
uint64_t rlhf__tf_low_width(const struct rlhf__tf *m, enum rlhf__tf_site site);
// Finds the matrix products that the adapter `a` targets. If `a` is NULL, finds none. params.c
// creates the adapter's tensors.
rlhf_status rlhf__tf_adapter_open(struct rlhf__tf *m, const rlhf_adapter *a);
rlhf_status rlhf__tf_adapter_weights(struct rlhf__tf *m);
rlhf_status rlhf__tf_adapter_pack(struct rlhf__tf *m);
void rlhf__tf_adapter_close(struct rlhf__tf *m);
// The total number of outputs of the first `blocks` blocks.
uint64_t rlhf__tf_low_outputs(const struct rlhf__tf_low *low, int32_t blocks);
// The adapter of a matrix product, or NULL.
const struct rlhf__tf_low *rlhf__tf_low_of(const struct rlhf__tf *m, int32_t layer,
                                           enum rlhf__tf_site site);
// u = A x.
rlhf_status rlhf__tf_low_in(const struct rlhf__tf *m, const struct rlhf__tf_low *low, rlhf_dev u,
                            rlhf_dev x, uint32_t rows);
// Computes the gradients of A and B from dy, the gradient of the product's result. Stores the
// gradient of u = A x in bwd.dlow.
rlhf_status rlhf__tf_low_bwd(struct rlhf__tf *m, const struct rlhf__tf_low *low, rlhf_dev x,
                             rlhf_dev u, rlhf_dev dy, uint32_t rows);

int64_t rlhf__tf_adapter_size(const struct rlhf__tf *m); // number of elements

// ---- open.c ----
// Refuses a setting of `o` that this model or its compute backend does not support.
rlhf_status rlhf__tf_open_check(struct rlhf__tf *m, const rlhf_model_open *o);
// If *o has a base, sets m->base and changes *o to match the base.
rlhf_status rlhf__tf_base_open(struct rlhf__tf *m, rlhf_model_open *o);

// ---- params.c ----
rlhf_status rlhf__tf_params_open(struct rlhf__tf *m);
void rlhf__tf_params_close(struct rlhf__tf *m);

// ---- storage.c ----
// Computes the size and the location of every tensor. Asks o->format_of.
rlhf_status rlhf__tf_storage_open(struct rlhf__tf *m, const rlhf_model_open *o);
void rlhf__tf_storage_close(struct rlhf__tf *m);
// For a tensor with TF_PASSES. take: allocates its values if they are not allocated. release: frees
// them after the device has finished using them.
rlhf_status rlhf__tf_storage_take(struct rlhf__tf *m, struct rlhf__tf_tensor *t);
rlhf_status rlhf__tf_storage_release(struct rlhf__tf *m, struct rlhf__tf_tensor *t);
// Tells the caller of backward() that the gradients of a layer's slots [slot, end) are complete.
// With end = RLHF_TF_N_LAYER, the gradients of the layer's adapters are complete too.
void rlhf__tf_storage_graded(struct rlhf__tf *m, int32_t layer, int32_t slot, int32_t end,
                             const rlhf_forward *f);
// Waits until the values in a layer's slots [slot, end) have been received. Layer -1: the globals.
// f->wanted must be set.
void rlhf__tf_storage_wanted(struct rlhf__tf *m, int32_t layer, int32_t slot, int32_t end,
                             const rlhf_forward *f);

// ---- weights.c ----
rlhf_status rlhf__tf_weights_open(struct rlhf__tf *m);
void rlhf__tf_weights_close(struct rlhf__tf *m);
// Packs the weights that may have changed.
rlhf_status rlhf__tf_weights_pack(struct rlhf__tf *m);
// Packs the weight of a slot whose temporary values are complete.
rlhf_status rlhf__tf_weights_pack_slot(struct rlhf__tf *m, int32_t layer, int32_t slot);
rlhf_status rlhf__tf_lm_ready(struct rlhf__tf *m); // packs the LM head if that is needed
// 1 if forward() may wait for new values (rlhf_forward.wanted).
int32_t rlhf__tf_weights_can_wait(const struct rlhf__tf *m);
// Both functions do nothing unless f->wanted is set. rlhf__tf_weights_receive_globals waits for new
// values of the globals and packs them. rlhf__tf_weights_receive does the same for the slots of a
// product (rlhf__tf_site_first).
rlhf_status rlhf__tf_weights_receive_globals(struct rlhf__tf *m, const rlhf_forward *f);
rlhf_status rlhf__tf_weights_receive(struct rlhf__tf *m, int32_t layer, enum rlhf__tf_site site,
                                     const rlhf_forward *f);

// ---- parts.c ----
// Finds the matrices that stay quantised, from the answers of o->format_of.
rlhf_status rlhf__tf_parts_open(struct rlhf__tf *m, const rlhf_model_open *o);
// The formats of a slot that stays quantised, or NULL.
const struct rlhf__tf_parts *rlhf__tf_parts(const struct rlhf__tf *m, int32_t layer, int32_t slot);

// ---- frozen.c ----
// Implement the functions of the same names in rlhf_model_ops.
rlhf_status rlhf__tf_fill_begin(void *self, uint32_t i, rlhf_dev *value);
rlhf_status rlhf__tf_fill_end(void *self, uint32_t i);
rlhf_status rlhf__tf_fill_blocks(void *self, uint32_t i, int64_t from, int64_t rows,
                                 const void *blocks);
// Refuses parameters with temporary values that have not been filled.
rlhf_status rlhf__tf_frozen_check(struct rlhf__tf *m);

// ---- internal.c: names ----
// Writes the full name of a parameter of a layer (-1: global). Returns the length of the name
// without the NUL. If out is NULL, it only returns the length.
size_t rlhf__tf_full_name(const struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer,
                          char *out, size_t cap);

// ---- internal.c: buffers ----
rlhf_status rlhf__tf_reserve(struct rlhf__tf *m, struct rlhf__tf_buf *b, uint64_t bytes);
void rlhf__tf_buf_finish(struct rlhf__tf *m, struct rlhf__tf_buf *b);
void rlhf__tf_work_finish(struct rlhf__tf *m, struct rlhf__tf_work *w);
void rlhf__tf_scratch_finish(struct rlhf__tf *m);
void rlhf__tf_tap_finish(struct rlhf__tf *m);
void rlhf__tf_trim(void *self);
rlhf_status rlhf__tf_host_tmp(struct rlhf__tf *m, uint64_t bytes, void **out);

// ---- check.c ----
rlhf_status rlhf__tf_batch_check(struct rlhf__tf *m, const rlhf_batch *b, int32_t want_resp);
int32_t rlhf__tf_has_prefix(const int32_t *prefix, uint32_t n); // 1 if any entry is not -1
// ---- rows.c ----
rlhf_status rlhf__tf_rows_upload(struct rlhf__tf *m, struct rlhf__tf_work *w,
                                 const struct rlhf__tf_layout *l);
// The number of integers of a step of the session with n rows, each with one token.
uint64_t rlhf__tf_rows_ints(uint64_t n, const rlhf_gen *g);

// ---- trunk.c, trunk_bwd.c ----
// Computes the sum of the embeddings of ids and, unless pos is NULL, of positions: f32 [rows, d].
rlhf_status rlhf__tf_embed(const struct rlhf__tf *m, rlhf_dev out, rlhf_dev ids, rlhf_dev pos,
                           uint32_t rows);
// Runs the embedding and all layers over w->rows; sets w->x. If `gen` is NULL, rows attend only to
// their own tokens. forward() passes its argument as `f`; if f->wanted is set, the trunk then waits
// for new values. All other callers pass NULL as `f`.
rlhf_status rlhf__tf_trunk(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_gen *gen,
                           const rlhf_forward *f);
// Runs the layers over w->rows, from `layer` to the last, and sets w->x. If
// `mid` is 0, the input is the stream in rlhf__tf_acts(layer).in. Otherwise, the input is the
// stream in rlhf__tf_acts(layer).mid, and the attention of `layer` is skipped. Call
// rlhf__tf_trunk_reserve before this function. Not for RLHF_TF_NORM_SUMS.
rlhf_status rlhf__tf_trunk_from(struct rlhf__tf *m, struct rlhf__tf_work *w, int32_t layer,
                                int32_t mid);
// Recomputes the activations of `layer` that the backward pass needs, from the input of `layer`.
rlhf_status rlhf__tf_layer_again(struct rlhf__tf *m, const struct rlhf__tf_work *w, int32_t layer);
// Recomputes the input of a layer's product, if it is not kept: in a lean work, and after a gate.
rlhf_status rlhf__tf_input_again(struct rlhf__tf *m, const struct rlhf__tf_work *w, int32_t layer,
                                 enum rlhf__tf_site site);
// Allocates the memory that the trunk needs for w->rows, so that running the trunk does not
// allocate.
rlhf_status rlhf__tf_trunk_reserve(struct rlhf__tf *m, struct rlhf__tf_work *w);
// The locations of the activations of a layer of w, after the trunk has run.
struct rlhf__tf_acts rlhf__tf_acts(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                                   int32_t layer);
// Computes all gradients of the trunk. The input is d(loss)/d(w->x) in m->bwd.ds, f32 [total, d].
rlhf_status rlhf__tf_trunk_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_forward *f);

// ---- rotary.c ----
// Ensures that the tables in m->turn cover at least `positions` positions. Call before recording.
rlhf_status rlhf__tf_turn_reserve(struct rlhf__tf *m, uint32_t positions);
// The arguments of rope and rope_bwd for this layer. For raw and stats, see struct rlhf__tf_acts.
rlhf_rope rlhf__tf_rope_args(const struct rlhf__tf *m, const struct rlhf__tf_rows *rows,
                             int32_t layer, rlhf_dev raw, rlhf_dev stats);

// ---- trunk.c: the norm ----
// Computes the architecture's norm of x (f32 [rows, d]) and stores it in `out`, as `dtype`. `gamma`
// is the gain; if the norm has a bias, the bias follows the gain. `stats`, f32 [rows,
// rlhf__tf_stats()], receives the numbers that the backward pass needs; it may be NULL.
rlhf_status rlhf__tf_norm(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                          rlhf_dev out, int32_t dtype, rlhf_dev stats, rlhf_dev x, uint32_t rows);
// From dy, in dy_dtype, computes the gradient of the gain and the gradient of x. Stores the
// gradient of x in dx (f32) or, if accumulate is set, adds it to dx.
rlhf_status rlhf__tf_norm_bwd(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                              rlhf_dev dx, int32_t accumulate, rlhf_dev dy, int32_t dy_dtype,
                              rlhf_dev x, rlhf_dev stats, uint32_t rows);

// ---- heads.c, small_heads.c ----
// Gathers the states at the positions w->rows.resp from w->x and applies the final norm to them.
// Stores the result in f32 (w->rf_p) and in the act dtype (w->rh_p).
rlhf_status rlhf__tf_resp_state(struct rlhf__tf *m, struct rlhf__tf_work *w);
rlhf_status rlhf__tf_resp_reserve(struct rlhf__tf *m, struct rlhf__tf_work *w); // see trunk_reserve
rlhf_status rlhf__tf_heads(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                           const rlhf_forward *f, const rlhf_heads *out);
rlhf_status rlhf__tf_heads_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                               const rlhf_forward *f, const rlhf_heads *grad);
// The arguments of lm_head for w, after heads.c has prepared w. heads: bits of enum rlhf_head.
void rlhf__tf_lm_args(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                      const rlhf_forward *f, rlhf_lm_head *out);
rlhf_status rlhf__tf_value(struct rlhf__tf *m, struct rlhf__tf_work *w);
// Overwrites d_rf, f32 [n_resp, d], with the gradient of w->rf. d_rf must be NULL if the head is
// detached.
rlhf_status rlhf__tf_value_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d_value,
                               rlhf_dev d_rf);
rlhf_status rlhf__tf_full_norm(struct rlhf__tf *m, struct rlhf__tf_work *w);
rlhf_status rlhf__tf_score(struct rlhf__tf *m, struct rlhf__tf_work *w, float *host_out);
// Computes the score head at each response token, in w->result.
rlhf_status rlhf__tf_token_score(struct rlhf__tf *m, struct rlhf__tf_work *w);
// Both functions add the score head's part of the gradient to m->bwd.ds. The first is for pooled
// scores, with host_d [n, n_labels] in host memory; the second is for token scores, with d f32
// [n_resp] in device memory.
rlhf_status rlhf__tf_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const float *host_d);
rlhf_status rlhf__tf_token_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d);
int32_t rlhf__tf_pooling(const struct rlhf__tf *m);

// 1 if a forward pass for these heads fills out->dev_hidden.
int32_t rlhf__tf_gives_dev_hidden(uint32_t heads, const rlhf_heads *out);
// f->kl_dev_row if the forward pass reads it, otherwise NULL.
const int32_t *rlhf__tf_reference_rows(const rlhf_forward *f);

// ---- generate/gen.c ----
rlhf_status rlhf__tf_gen_open(void *self, uint32_t n_slots, uint32_t max_len, rlhf_gen **out);
rlhf_status rlhf__tf_gen_step(void *self, rlhf_gen *, const rlhf_gen_step *);
void rlhf__tf_gen_close(void *self, rlhf_gen *);

// ---- check.c: steps ----
// Refuses a step that does not fit the session. Sets `use` and `after` of the slots that the step
// uses.
rlhf_status rlhf__tf_step_check(struct rlhf__tf *m, rlhf_gen *, const rlhf_gen_step *);
void rlhf__tf_step_commit(rlhf_gen *, const rlhf_gen_step *); // call after the step has run

// ---- generate/ring.c ----
// Sets g->ring if the session's slots are longer than the window of a layer.
rlhf_status rlhf__tf_ring_open(struct rlhf__tf *m, rlhf_gen *g);
void rlhf__tf_ring_close(struct rlhf__tf *m, struct rlhf__tf_ring *r); // NULL allowed
// The offset in bytes of a layer's keys in g->k, and of its values in g->v. For layer n_layer: the
// size of g->k.
uint64_t rlhf__tf_cache_at(const struct rlhf__tf *m, const rlhf_gen *g, int32_t layer);
// Plans a step that has been checked. If the step then fails, its staged slots are empty.
void rlhf__tf_ring_plan(rlhf_gen *g, const rlhf_gen_step *s);
// Adds padding rows n .. rows-1 to the plan of a recorded step, one token each in the spare slot.
void rlhf__tf_ring_pad(const rlhf_gen *g, uint32_t n, uint32_t rows);
rlhf_status rlhf__tf_ring_reserve(struct rlhf__tf *m, struct rlhf__tf_ring *r);
// Attention of a layer with a ring. k and v: the layer's cache. out: act dtype [total, q].
rlhf_status rlhf__tf_ring_attend(const struct rlhf__tf *m, const struct rlhf__tf_ring *ring,
                                 const struct rlhf__tf_rows *rows, const rlhf_attn *a,
                                 const struct rlhf__tf_qkv *s, rlhf_dev k, rlhf_dev v,
                                 rlhf_dev out);

// ---- generate/states.c ----
// Sets g->kept if some layers have a state. Call it before rlhf__tf_recorded_open.
rlhf_status rlhf__tf_kept_open(struct rlhf__tf *m, rlhf_gen *g);
void rlhf__tf_kept_close(struct rlhf__tf *m, struct rlhf__tf_kept *k); // NULL allowed
// Plans a step that has been checked. If the step then fails, its slots are empty.
void rlhf__tf_kept_plan(rlhf_gen *g, const rlhf_gen_step *s);
// The states of a layer for a step; leaves *out if g is NULL.
struct rlhf__tf_states {
    rlhf_states conv, delta;
};
void rlhf__tf_states_of(const struct rlhf__tf *m, const rlhf_gen *g,
                        const struct rlhf__tf_rows *rows, int32_t layer,
                        struct rlhf__tf_states *out);

// ---- generate/gen_record.c ----
// The number of rows to which a recorded step of n rows is padded.
uint32_t rlhf__tf_bucket(uint32_t n);
// Sets g->recorded to the state that the session needs to record its steps, if the backend can
// record. Call it after rlhf__tf_ring_open and rlhf__tf_kept_open.
rlhf_status rlhf__tf_recorded_open(struct rlhf__tf *m, rlhf_gen *g);
void rlhf__tf_recorded_close(struct rlhf__tf *m, struct rlhf__tf_recorded *r); // NULL allowed
// Returns 1 if the session records step s, that is, if each row has one token, every row samples,
// and the ring stages none. The step must have been checked and planned.
int32_t rlhf__tf_is_recorded(const rlhf_gen *g, const rlhf_gen_step *s);
// Runs a step for which rlhf__tf_is_recorded returned 1: everything after the checks and before
// sampling.
rlhf_status rlhf__tf_gen_recorded(struct rlhf__tf *m, rlhf_gen *g, const rlhf_gen_step *s);

#endif
