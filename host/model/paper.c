// paper.c: see paper.h.
#include "model/paper_work.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// Ops that compute nothing name their arguments as the table does.
#pragma GCC diagnostic ignored "-Wunused-parameter"

// ---- memory ----

static rlhf_status p_alloc(void *ctx, uint64_t bytes, rlhf_dev *out) {
    struct rlhf__paper *p = ctx;
    return rlhf__ledger_take(&p->ledger, bytes, p->ledger.use, out);
}
static void p_release(void *ctx, rlhf_dev dev) {
    rlhf__ledger_give(&((struct rlhf__paper *)ctx)->ledger, dev);
}
static uint64_t p_bytes_in_use(void *ctx) { return ((struct rlhf__paper *)ctx)->ledger.now; }
static const char *p_last_error(void *ctx) { return ((struct rlhf__paper *)ctx)->ledger.error; }

// The only memory that is allocated: models write into it.
static rlhf_status p_alloc_host(void *ctx, uint64_t bytes, void **out) {
    *out = bytes > RLHF__LEDGER_MOST ? NULL : aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!*out) return rlhf__ledger_none(&((struct rlhf__paper *)ctx)->ledger, bytes);
    memset(*out, 0, bytes);
    return RLHF_OK;
}
static void p_release_host(void *ctx, void *at) { free(at); }

static rlhf_status p_download(void *ctx, void *host_dst, rlhf_dev src, uint64_t bytes) {
    if (bytes) memset(host_dst, 0, bytes);
    return RLHF_OK;
}
static rlhf_status p_mark(void *ctx, uint64_t *ticket) {
    *ticket = 1;
    return RLHF_OK;
}
static rlhf_status p_record(void *ctx, uint64_t key, int32_t *what) {
    *what = RLHF_RECORD_RUN;
    return RLHF_OK;
}
static rlhf_status p_sumsq(void *ctx, rlhf_dev x, uint64_t n, double *host_out) {
    *host_out = 0;
    return RLHF_OK;
}

// ---- ops that take nothing ----

#define IDLE(name, ...)                                                                            \
    static rlhf_status p_##name(void *ctx, __VA_ARGS__) { return RLHF_OK; }

IDLE(upload, rlhf_dev dst, const void *src, uint64_t bytes)
IDLE(upload_async, rlhf_dev dst, const void *src, uint64_t bytes)
IDLE(copy, rlhf_dev dst, rlhf_dev src, uint64_t bytes)
IDLE(zero, rlhf_dev dst, uint64_t bytes)
IDLE(convert, rlhf_dev dst, int32_t to, rlhf_dev src, int32_t from, uint64_t n)
IDLE(embed, rlhf_dev out, rlhf_dev ids, rlhf_dev pos, rlhf_dev wte, rlhf_dev wpe, uint32_t rows,
     int32_t d)
IDLE(embed_bwd, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout, rlhf_dev ids, rlhf_dev pos,
     uint32_t rows, int32_t d, int32_t vocab, int32_t n_pos)
IDLE(norm, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x, rlhf_dev gamma,
     rlhf_dev beta, double eps, uint32_t rows, int32_t d)

IDLE(act, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype, uint64_t n)
IDLE(act_bwd, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind, int32_t dtype, uint64_t n)
IDLE(add, rlhf_dev dst, rlhf_dev src, int32_t src_dtype, uint64_t n)
IDLE(gather, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n, int32_t d, int32_t dtype)
IDLE(scatter_add, rlhf_dev dx, rlhf_dev dy, int32_t dy_dtype, rlhf_dev idx, uint32_t n, int32_t d)
IDLE(pool, rlhf_dev out, rlhf_dev x, rlhf_dev offset, uint32_t n, int32_t d, int32_t mode)
IDLE(pool_bwd, rlhf_dev dx, rlhf_dev dout, rlhf_dev offset, uint32_t n, int32_t d, int32_t mode)
IDLE(kv_store, rlhf_dev kc, rlhf_dev vc, rlhf_dev k, rlhf_dev v, int64_t stride,
     const rlhf_ragged *r, int32_t d, int32_t dtype)

IDLE(adamw, rlhf_dev w, rlhf_dev g, rlhf_dev m, rlhf_dev v, uint64_t n, const rlhf_adamw *a)
IDLE(sumsq_many, const rlhf_tensors *t, double max_norm, int32_t skip, rlhf_dev clip)
IDLE(adamw_many, const rlhf_tensors *t, const rlhf_adamw *a, rlhf_dev clip)
IDLE(wait, uint64_t ticket)
IDLE(rms_norm, rlhf_dev out, int32_t out_dtype, rlhf_dev stats, rlhf_dev x, rlhf_dev gamma,
     double eps, uint32_t rows, int32_t d)
IDLE(rms_norm_bwd, rlhf_dev dx, int32_t accumulate, rlhf_dev dgamma, rlhf_dev dy, int32_t dy_dtype,
     rlhf_dev x, rlhf_dev stats, rlhf_dev gamma, uint32_t rows, int32_t d)
IDLE(gate, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype, uint32_t rows, int32_t inner)
IDLE(gate_bwd, rlhf_dev dx, rlhf_dev dy, rlhf_dev x, int32_t kind, int32_t dtype, uint32_t rows,
     int32_t inner)
IDLE(rope, const rlhf_rope *r, rlhf_dev x, uint32_t rows)
IDLE(rope_bwd, const rlhf_rope *r, rlhf_dev dx, rlhf_dev dgamma_q, rlhf_dev dgamma_k, uint32_t rows)
static rlhf_status p_sync(void *ctx) { return RLHF_OK; }
static rlhf_status p_record_end(void *ctx) { return RLHF_OK; }
#define p_download_async p_download

// clang-format off
#define OPS(X)                                                                                     \
    X(last_error) X(alloc) X(release) X(bytes_in_use) X(upload) X(download) X(copy) X(zero)        \
    X(convert) X(sync) X(embed) X(embed_bwd) X(norm) X(act) X(act_bwd) X(add) X(gather)            \
    X(scatter_add) X(pool) X(pool_bwd) X(kv_store) X(sumsq) X(adamw) X(alloc_host)                 \
    X(release_host) X(upload_async) X(download_async) X(mark) X(wait) X(sumsq_many) X(adamw_many)  \
    X(record) X(record_end) X(rms_norm) X(rms_norm_bwd) X(gate) X(gate_bwd) X(rope) X(rope_bwd)
// clang-format on

_Static_assert(sizeof(rlhf_compute) ==
                   offsetof(rlhf_compute, linear_sum) + sizeof(((rlhf_compute *)0)->linear_sum),
               "an op that is new in the table needs its line here or in paper_work.c");

// ---- life ----

rlhf_status rlhf__paper_create(const rlhf_compute *real, uint64_t budget, struct rlhf__paper **out,
                               struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__paper *p = calloc(1, sizeof *p);
    if (!p) return RLHF__NOMEM(err, "out of memory for an account of memory");
    rlhf_compute *t = &p->table;
    p->real = real;
    p->keeps_none = strcmp(real->name, "reference") == 0;
    p->budget = budget;
    *t = (rlhf_compute){.size = sizeof *t,
                        .device = real->device,
                        .dtypes = real->dtypes,
                        .threads = real->threads,
                        .flags = real->flags,
                        .name = real->name,
                        .detail = real->detail,
                        .ctx = p,
                        .slots_hint = real->slots_hint,
                        .microbatch_hint = real->microbatch_hint};
    OPS(RLHF__PAPER_PUT)
    rlhf__paper_fill_work(t, real);
    rlhf__paper_account(p, "models", RLHF__USE_ACTIVATIONS);
    *out = p;
    return RLHF_OK;
}

void rlhf__paper_destroy(struct rlhf__paper *p) {
    if (!p) return;
    rlhf__ledger_finish(&p->ledger);
    free(p);
}

const rlhf_compute *rlhf__paper_table(const struct rlhf__paper *p) { return &p->table; }

void rlhf__paper_account(struct rlhf__paper *p, const char *owner, int32_t use) {
    p->ledger.owner = p->ledger.packer = rlhf__uses_owner(&p->ledger.uses, owner);
    p->ledger.use = use;
}

void rlhf__paper_packs(struct rlhf__paper *p, const char *owner) {
    p->ledger.packer = rlhf__uses_owner(&p->ledger.uses, owner);
}

void rlhf__paper_retag(struct rlhf__paper *p, rlhf_dev dev, int32_t use) {
    rlhf__ledger_retag(&p->ledger, dev, use);
}

const struct rlhf__uses *rlhf__paper_uses(const struct rlhf__paper *p) { return &p->ledger.uses; }
const struct rlhf__uses *rlhf__paper_peak(const struct rlhf__paper *p) {
    return &p->ledger.at_peak;
}
