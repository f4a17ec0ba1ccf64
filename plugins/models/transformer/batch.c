// transformer/batch.c: checks of a ragged batch in host memory, and its upload as one block of
// integers. What it is not: padding; there is none.
#include "internal.h"

#include <string.h>

static rlhf_status check_row(struct rlhf__tf *m, const rlhf_batch *b, uint32_t i,
                             int32_t want_resp) {
    const int64_t len = (int64_t)b->offset[i + 1] - b->offset[i];
    if (len < 1 || b->offset[i + 1] > (int64_t)b->total)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch row %u: %lld tokens, at least 1 is needed",
                             i, (long long)len);
    if (len > m->arch.n_ctx)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %u: %lld tokens do not fit the model's context of %d", i,
                             (long long)len, m->arch.n_ctx);
    if (want_resp && (b->prompt_len[i] < 1 || b->prompt_len[i] > len))
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch row %u: prompt_len %d is outside 1 .. %lld",
                             i, b->prompt_len[i], (long long)len);
    for (int32_t t = b->offset[i]; t < b->offset[i + 1]; t++)
        if (b->ids[t] < 0 || b->ids[t] >= m->arch.n_vocab)
            return rlhf__tf_fail(m, RLHF_E_INVALID,
                                 "batch row %u: token id %d is outside the vocabulary of %d", i,
                                 b->ids[t], m->arch.n_vocab);
    return RLHF_OK;
}

rlhf_status rlhf__tf_batch_check(struct rlhf__tf *m, const rlhf_batch *b, int32_t want_resp) {
    if (!b || !b->n || !b->ids || !b->offset || (want_resp && !b->prompt_len))
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch: no rows");
    if (b->total > INT32_MAX || b->offset[0] != 0 || b->offset[b->n] != (int64_t)b->total)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch: offsets do not cover its %u tokens",
                             b->total);
    for (uint32_t i = 0; i < b->n; i++)
        RLHF_TRY(check_row(m, b, i, want_resp));
    return RLHF_OK;
}

// Segments of the block, each starting at a multiple of 64 bytes.
struct block {
    int32_t *host;
    uint64_t ids, pos, offset, start, kv_base, resp, target, read, pool, end;
};

static uint64_t seg(uint64_t at, uint64_t n) { return (at + n + 15) & ~(uint64_t)15; }

static void block_lay_out(struct block *k, uint64_t n, uint64_t total, uint64_t n_resp) {
    k->ids = 0;
    k->pos = seg(k->ids, total);
    k->offset = seg(k->pos, total);
    k->start = seg(k->offset, n + 1);
    k->kv_base = seg(k->start, n);
    k->resp = seg(k->kv_base, n);
    k->target = seg(k->resp, n_resp);
    k->read = seg(k->target, n_resp);
    k->pool = seg(k->read, n_resp);
    k->end = seg(k->pool, n);
}

static uint32_t count_resp(const struct rlhf__tf_layout *l) {
    uint32_t r = 0;
    if (l->last) return l->n;
    for (uint32_t i = 0; l->prompt_len && i < l->n; i++)
        r += (uint32_t)(l->offset[i + 1] - l->offset[i] - l->prompt_len[i]);
    return r;
}

static void fill_rows(const struct block *k, const struct rlhf__tf_layout *l,
                      struct rlhf__tf_rows *rows) {
    int32_t *h = k->host;
    memcpy(h + k->ids, l->ids, l->total * sizeof *h);
    memcpy(h + k->offset, l->offset, (l->n + 1) * sizeof *h);
    rows->ragged.max_q = rows->ragged.max_k = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const int32_t a = l->offset[i], z = l->offset[i + 1];
        const int32_t start = l->start ? l->start[i] : 0;
        for (int32_t t = a; t < z; t++)
            h[k->pos + (uint64_t)t] = start + t - a;
        h[k->start + i] = start;
        h[k->kv_base + i] = l->kv_base ? l->kv_base[i] : a;
        h[k->pool + i] = l->pooling == RLHF_POOL_FIRST ? a : z - 1;
        if ((uint32_t)(z - a) > rows->ragged.max_q) rows->ragged.max_q = (uint32_t)(z - a);
        if ((uint32_t)(start + z - a) > rows->ragged.max_k)
            rows->ragged.max_k = (uint32_t)(start + z - a);
    }
}

static void fill_resp(const struct block *k, const struct rlhf__tf_layout *l) {
    int32_t *resp = k->host + k->resp, *target = k->host + k->target, *read = k->host + k->read;
    for (uint32_t i = 0; i < l->n; i++) {
        const int32_t a = l->offset[i], z = l->offset[i + 1];
        if (l->last) {
            *resp++ = z - 1;
        } else if (l->prompt_len) {
            for (int32_t t = a + l->prompt_len[i]; t < z; t++) {
                *resp++ = t - 1;
                *target++ = l->ids[t];
                *read++ = t;
            }
        }
    }
}

rlhf_status rlhf__tf_rows_upload(struct rlhf__tf *m, struct rlhf__tf_work *w,
                                 const struct rlhf__tf_layout *l) {
    struct rlhf__tf_rows *r = &w->rows;
    struct block k;
    void *tmp;
    r->n = l->n;
    r->total = l->total;
    r->n_resp = count_resp(l);
    r->resp_is_all = l->last && l->n == l->total;
    block_lay_out(&k, l->n, l->total, r->n_resp);
    RLHF_TRY(rlhf__tf_host_tmp(m, k.end * sizeof(int32_t), &tmp));
    RLHF_TRY(rlhf__tf_reserve(m, &w->ints, k.end * sizeof(int32_t)));
    k.host = tmp;
    fill_rows(&k, l, r);
    fill_resp(&k, l);
    RLHF_TRY(m->c->upload(m->c->ctx, w->ints.p, k.host, k.end * sizeof(int32_t)));
    r->ids = rlhf_dev_at(w->ints.p, k.ids * sizeof(int32_t));
    r->pos = rlhf_dev_at(w->ints.p, k.pos * sizeof(int32_t));
    r->resp = rlhf_dev_at(w->ints.p, k.resp * sizeof(int32_t));
    r->target = rlhf_dev_at(w->ints.p, k.target * sizeof(int32_t));
    r->read = rlhf_dev_at(w->ints.p, k.read * sizeof(int32_t));
    r->pool = rlhf_dev_at(w->ints.p, k.pool * sizeof(int32_t));
    r->ragged.n = l->n;
    r->ragged.total = l->total;
    r->ragged.offset = rlhf_dev_at(w->ints.p, k.offset * sizeof(int32_t));
    r->ragged.start = rlhf_dev_at(w->ints.p, k.start * sizeof(int32_t));
    r->ragged.kv_base = rlhf_dev_at(w->ints.p, k.kv_base * sizeof(int32_t));
    return RLHF_OK;
}
