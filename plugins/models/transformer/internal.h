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

// rlhf_copy_in with a sentence that names the struct.
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
// Rows of its slot that a name stands for.
struct rlhf__tf_span rlhf__tf_piece_rows(const struct rlhf__tf *m, int32_t layer,
                                         const struct rlhf_tf_name *name);
// 1 when refresh() packs the slot's values and nothing else reads them.
int32_t rlhf__tf_slot_only_packed(int32_t layer, int32_t slot);

// ---- adapter.c ----
// The product whose matrix a layer slot is, or -1; and back.
int32_t rlhf__tf_site_of(int32_t slot);
int32_t rlhf__tf_site_slot(enum rlhf__tf_site site);
int32_t rlhf__tf_site_inputs(const struct rlhf__tf *m, enum rlhf__tf_site site);
// Maximum number of columns of a product's A x; 0 if it does not have an adapter in any layer.
uint64_t rlhf__tf_low_width(const struct rlhf__tf *m, enum rlhf__tf_site site);
// Finds the products named by a (NULL: none); params.c creates their tensors.
rlhf_status rlhf__tf_adapter_create(struct rlhf__tf *m, const rlhf_adapter *a);
rlhf_status rlhf__tf_adapter_weights(struct rlhf__tf *m);
rlhf_status rlhf__tf_adapter_pack(struct rlhf__tf *m);
void rlhf__tf_adapter_destroy(struct rlhf__tf *m);
// Outputs of the first `blocks` blocks.
uint64_t rlhf__tf_low_outputs(const struct rlhf__tf_low *low, int32_t blocks);
// The adapter of a product, or NULL.
const struct rlhf__tf_low *rlhf__tf_low_of(const struct rlhf__tf *m, int32_t layer,
                                           enum rlhf__tf_site site);
// u = A x.
rlhf_status rlhf__tf_low_in(const struct rlhf__tf *m, const struct rlhf__tf_low *low, rlhf_dev u,
                            rlhf_dev x, uint32_t rows);
// Gradients of A and B from u, x and dy, the derivative of the product's result; leaves that of u
// in bwd.dlow.
rlhf_status rlhf__tf_low_bwd(struct rlhf__tf *m, const struct rlhf__tf_low *low, rlhf_dev x,
                             rlhf_dev u, rlhf_dev dy, uint32_t rows);

int64_t rlhf__tf_adapter_size(const struct rlhf__tf *m); // its elements

// ---- open_check.c ----
// Rejects requests in o that this model or its compute backend does not support.
rlhf_status rlhf__tf_open_check(struct rlhf__tf *m, const rlhf_model_open *o);

// ---- base.c ----
// Sets m->base, and what of *o follows from it.
rlhf_status rlhf__tf_base_open(struct rlhf__tf *m, rlhf_model_open *o);

// ---- params.c ----
// A name in full, with its layer (-1: global); returns its length without the NUL. out NULL: only
// that.
size_t rlhf__tf_full_name(const struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer,
                          char *out, size_t cap);
rlhf_status rlhf__tf_params_create(struct rlhf__tf *m);
void rlhf__tf_params_destroy(struct rlhf__tf *m);
// The list says of a layer (-1: of what exists once) that its values that pass are gone.
void rlhf__tf_params_forget(struct rlhf__tf *m, int32_t layer);

// ---- storage.c ----
// Gives every tensor its size and its place.
rlhf_status rlhf__tf_storage_create(struct rlhf__tf *m);
void rlhf__tf_storage_destroy(struct rlhf__tf *m);
// Lets go of the values of a layer (-1: of what exists once) that pass, when the device is done.
rlhf_status rlhf__tf_storage_release(struct rlhf__tf *m, int32_t layer);

// ---- weights.c ----
rlhf_status rlhf__tf_weights_create(struct rlhf__tf *m);
void rlhf__tf_weights_destroy(struct rlhf__tf *m);
// Packs what may have changed, and lets go of what passes.
rlhf_status rlhf__tf_weights_pack(struct rlhf__tf *m);
rlhf_status rlhf__tf_lm_ready(struct rlhf__tf *m); // pack the LM head if it is stale or absent

// ---- buffers.c ----
rlhf_status rlhf__tf_reserve(struct rlhf__tf *m, struct rlhf__tf_buf *b, uint64_t bytes);
void rlhf__tf_buf_finish(struct rlhf__tf *m, struct rlhf__tf_buf *b);
void rlhf__tf_work_finish(struct rlhf__tf *m, struct rlhf__tf_work *w);
void rlhf__tf_scratch_finish(struct rlhf__tf *m);
void rlhf__tf_trim(void *self);
rlhf_status rlhf__tf_host_tmp(struct rlhf__tf *m, uint64_t bytes, void **out);

// ---- check.c ----
rlhf_status rlhf__tf_batch_check(struct rlhf__tf *m, const rlhf_batch *b, int32_t want_resp);
int32_t rlhf__tf_has_prefix(const int32_t *prefix, uint32_t n); // is any entry not -1
// ---- rows.c ----
rlhf_status rlhf__tf_rows_upload(struct rlhf__tf *m, struct rlhf__tf_work *w,
                                 const struct rlhf__tf_layout *l);
// Integers of a step of n rows of one token each.
uint64_t rlhf__tf_rows_ints(uint64_t n);

// ---- trunk.c, trunk_bwd.c ----
// Embedding and all layers over w->rows; sets w->x. gen NULL: keys are the rows' own tokens.
rlhf_status rlhf__tf_trunk(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_gen *gen);
// Recomputes the activations of `layer` in w that backward reads, from the layer's input.
rlhf_status rlhf__tf_layer_again(struct rlhf__tf *m, const struct rlhf__tf_work *w, int32_t layer);
// Recomputes the input of a layer's product if w is lean.
rlhf_status rlhf__tf_input_again(struct rlhf__tf *m, const struct rlhf__tf_work *w, int32_t layer,
                                 enum rlhf__tf_site site);
// Makes room for what the trunk computes from w->rows, so that it allocates nothing.
rlhf_status rlhf__tf_trunk_reserve(struct rlhf__tf *m, struct rlhf__tf_work *w);
// Where a layer's activations of w lie, once the trunk has run.
struct rlhf__tf_acts rlhf__tf_acts(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                                   int32_t layer);
rlhf_attn rlhf__tf_attn_geometry(const struct rlhf__tf *m, int32_t layer, int32_t cached);
// From d(loss)/d(w->x) in m->bwd.ds, f32 [total, d], to every trunk gradient.
rlhf_status rlhf__tf_trunk_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w);

// ---- rotary.c ----
// Sees to it that m->turn has the first `positions` positions. Before anything is recorded.
rlhf_status rlhf__tf_turn_reserve(struct rlhf__tf *m, uint32_t positions);
// Arguments of rope and rope_bwd for layer; raw, stats: struct rlhf__tf_acts.
rlhf_rope rlhf__tf_rope_args(const struct rlhf__tf *m, const struct rlhf__tf_rows *rows,
                             int32_t layer, rlhf_dev raw, rlhf_dev stats);

// ---- norm.c ----
// The architecture's norm of x, f32 [rows, d], with the gain at gamma (and what follows it). out in
// dtype; stats f32 [rows, rlhf__tf_stats()] for backward, or NULL.
rlhf_status rlhf__tf_norm(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                          rlhf_dev out, int32_t dtype, rlhf_dev stats, rlhf_dev x, uint32_t rows);
// Gradients of the gain, and of x in dx, f32 (added to it when accumulate), from dy in dy_dtype.
rlhf_status rlhf__tf_norm_bwd(const struct rlhf__tf *m, const struct rlhf__tf_tensor *gamma,
                              rlhf_dev dx, int32_t accumulate, rlhf_dev dy, int32_t dy_dtype,
                              rlhf_dev x, rlhf_dev stats, uint32_t rows);

// ---- heads.c, heads_bwd.c, small_heads.c ----
// Gather w->rows.resp from w->x, final norm in f32 (w->rf_p), copy in the act dtype (w->rh_p).
rlhf_status rlhf__tf_resp_state(struct rlhf__tf *m, struct rlhf__tf_work *w);
rlhf_status rlhf__tf_resp_reserve(struct rlhf__tf *m, struct rlhf__tf_work *w); // as trunk_reserve
rlhf_status rlhf__tf_heads(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                           const rlhf_forward *f, const rlhf_heads *out);
rlhf_status rlhf__tf_heads_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const rlhf_batch *b,
                               const rlhf_forward *f, const rlhf_heads *grad);
// Arguments of lm_head for w as heads.c left it; heads: bits of enum rlhf_head to compute.
void rlhf__tf_lm_args(const struct rlhf__tf *m, const struct rlhf__tf_work *w,
                      const rlhf_forward *f, rlhf_lm_head *out);
rlhf_status rlhf__tf_value(struct rlhf__tf *m, struct rlhf__tf_work *w);
// d_rf f32 [n_resp, d] is overwritten with the gradient of w->rf, unless NULL (detached).
rlhf_status rlhf__tf_value_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d_value,
                               rlhf_dev d_rf);
rlhf_status rlhf__tf_full_norm(struct rlhf__tf *m, struct rlhf__tf_work *w);
rlhf_status rlhf__tf_score(struct rlhf__tf *m, struct rlhf__tf_work *w, float *host_out);
// The score head at each response token, in w->result.
rlhf_status rlhf__tf_token_score(struct rlhf__tf *m, struct rlhf__tf_work *w);
// Add the gradient of the score head to m->bwd.ds. host_d [n, n_labels]; d device f32 [n_resp].
rlhf_status rlhf__tf_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, const float *host_d);
rlhf_status rlhf__tf_token_score_bwd(struct rlhf__tf *m, struct rlhf__tf_work *w, rlhf_dev d);
int32_t rlhf__tf_pooling(const struct rlhf__tf *m);

// 1 when a forward for these heads fills out->dev_hidden.
int32_t rlhf__tf_gives_dev_hidden(uint32_t heads, const rlhf_heads *out);
// f->kl_dev_row where f reads it, else NULL.
const int32_t *rlhf__tf_reference_rows(const rlhf_forward *f);

// ---- gen.c ----
rlhf_status rlhf__tf_gen_open(void *self, uint32_t n_slots, uint32_t max_len, rlhf_gen **out);
rlhf_status rlhf__tf_gen_step(void *self, rlhf_gen *, const rlhf_gen_step *);
void rlhf__tf_gen_close(void *self, rlhf_gen *);

// Refuse a step that does not fit the session; fills `use` and `after` of its slots.
rlhf_status rlhf__tf_step_check(struct rlhf__tf *m, rlhf_gen *, const rlhf_gen_step *);
void rlhf__tf_step_commit(rlhf_gen *, const rlhf_gen_step *); // the step is done

// ---- gen_record.c ----
// What a session of n_slots needs to record its steps; *out NULL where the backend does not record.
rlhf_status rlhf__tf_recorded_create(struct rlhf__tf *m, uint32_t n_slots,
                                     struct rlhf__tf_recorded **out);
void rlhf__tf_recorded_destroy(struct rlhf__tf *m, struct rlhf__tf_recorded *r); // NULL allowed
// 1 when the checked step s is one that the session records: a token a row, and every row draws.
int32_t rlhf__tf_is_recorded(const rlhf_gen *g, const rlhf_gen_step *s);
// Such a step, checked, up to what it draws.
rlhf_status rlhf__tf_gen_recorded(struct rlhf__tf *m, rlhf_gen *g, const rlhf_gen_step *s);

#endif
