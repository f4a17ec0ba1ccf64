// transformer/rows.c: copies a checked batch, or a generation step, to the device as one block of
// integers without padding.
#include "internal.h"

#include <string.h>

// The segments of the block. Each starts at a multiple of 64 bytes.
struct block {
    int32_t *host;
    rlhf_dev dev;
    uint64_t ids, pos, offset, start, kv_base, prefix_base, prefix_len, resp, target, read, ref,
        pool, from, to, ring, end;
};

// The integers of a ring: offsets of each part, then kv_base, prefix_base and prefix_len.
static uint64_t ring_ints(uint64_t n) { return 4 * n + TF_N_PART; }

static uint64_t seg(uint64_t at, uint64_t n) { return (at + n + 15) & ~(uint64_t)15; }

static void block_lay_out(struct block *k, uint64_t n, uint64_t total, uint64_t n_resp,
                          uint64_t n_ref, const rlhf_gen *g) {
    const uint64_t n_states = g && g->kept ? n : 0;
    k->ids = 0;
    k->pos = seg(k->ids, total);
    k->offset = seg(k->pos, total);
    k->start = seg(k->offset, n + 1);
    k->kv_base = seg(k->start, n);
    k->prefix_base = seg(k->kv_base, n);
    k->prefix_len = seg(k->prefix_base, n);
    k->resp = seg(k->prefix_len, n);
    k->target = seg(k->resp, n_resp);
    k->read = seg(k->target, n_resp);
    k->ref = seg(k->read, n_resp);
    k->pool = seg(k->ref, n_ref);
    k->from = seg(k->pool, n);
    k->to = seg(k->from, n_states);
    k->ring = seg(k->to, n_states);
    k->end = g && g->ring ? seg(k->ring, ring_ints(n)) : k->ring;
}

// The row of the caller that is row i on the device.
static uint32_t row_at(const struct rlhf__tf_layout *l, uint32_t i) {
    return l->order ? (uint32_t)l->order[i] : i;
}

static int32_t draws(const struct rlhf__tf_layout *l, uint32_t i) {
    return !l->silent || !l->silent[i];
}

static uint32_t count_resp(const struct rlhf__tf_layout *l) {
    uint32_t r = 0;
    for (uint32_t i = 0; l->gen && i < l->n; i++)
        r += draws(l, i) ? 1 : 0;
    for (uint32_t i = 0; l->prompt_len && i < l->n; i++)
        for (int32_t t = l->offset[i] + l->prompt_len[i]; t < l->offset[i + 1]; t++)
            r += rlhf__tf_is_response(l->turn, t) ? 1 : 0;
    return r;
}

// Sets *base to the position of row i's prefix, and returns the prefix's number of tokens (0 if row
// i has no prefix).
static int32_t prefix_of(const struct rlhf__tf_layout *l, uint32_t i, int32_t *base) {
    const int32_t p = l->prefix ? l->prefix[i] : -1;
    *base = 0;
    if (p < 0) return 0;
    *base = l->gen ? p * (int32_t)l->gen->max_len : l->offset[p];
    return l->gen ? l->gen->slots[p].after : l->offset[p + 1] - l->offset[p];
}

// The position in the batch at which the score of row i is read.
static int32_t pooled(const struct rlhf_tf_arch *a, const struct rlhf__tf_layout *l, uint32_t i) {
    const int32_t first = l->offset[i], end = l->offset[i + 1];
    if (l->pooling == RLHF_POOL_FIRST) return first;
    if (!a->pads || l->gen) return end - 1;
    for (int32_t t = end - 1; t >= first; t--)
        if (l->ids[t] != a->pad_id) return t;
    return first;
}

static void fill_rows(const struct rlhf_tf_arch *arch, const struct block *k,
                      const struct rlhf__tf_layout *l, struct rlhf__tf_rows *rows) {
    int32_t *h = k->host;
    int32_t *offset = h + k->offset;
    rows->ragged.max_q = rows->ragged.max_k = 0;
    offset[0] = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const uint32_t row = row_at(l, i);
        const int32_t a = l->offset[row], z = l->offset[row + 1], to = offset[i];
        const int32_t shared = prefix_of(l, row, &h[k->prefix_base + i]);
        const int32_t start = shared + (l->gen ? l->start[row] : 0);
        memcpy(h + k->ids + to, l->ids + a, (size_t)(z - a) * sizeof *h);
        for (int32_t t = 0; t < z - a; t++)
            h[k->pos + (uint64_t)to + (uint64_t)t] = start + t;
        offset[i + 1] = to + z - a;
        h[k->prefix_len + i] = shared;
        h[k->start + i] = start;
        h[k->kv_base + i] = l->gen ? l->slot[row] * (int32_t)l->gen->max_len : to;
        h[k->pool + i] = to + pooled(arch, l, row) - a;
        if ((uint32_t)(z - a) > rows->ragged.max_q) rows->ragged.max_q = (uint32_t)(z - a);
        if ((uint32_t)(start + z - a) > rows->ragged.max_k)
            rows->ragged.max_k = (uint32_t)(start + z - a);
    }
}

static void fill_resp(const struct block *k, const struct rlhf__tf_layout *l) {
    int32_t *resp = k->host + k->resp, *target = k->host + k->target, *read = k->host + k->read;
    for (uint32_t i = 0; i < l->n; i++) {
        const int32_t a = l->offset[i], z = l->offset[i + 1];
        if (l->gen) {
            if (draws(l, row_at(l, i))) *resp++ = k->host[k->offset + i + 1] - 1;
        } else if (l->prompt_len) {
            for (int32_t t = a + l->prompt_len[i]; t < z; t++) {
                if (!rlhf__tf_is_response(l->turn, t)) continue;
                *resp++ = t - 1;
                *target++ = l->ids[t];
                *read++ = t;
            }
        }
    }
}

uint64_t rlhf__tf_rows_ints(uint64_t n, const rlhf_gen *g) {
    struct block k;
    block_lay_out(&k, n, n, n, 0, g);
    return k.end;
}

// The slots of the states with which the rows begin, and those of the states that they leave.
// Not for the padding rows of a recorded step.
static void fill_states(const struct block *k, const struct rlhf__tf_layout *l) {
    int32_t *from = k->host + k->from, *to = k->host + k->to;
    for (uint32_t i = 0; i < l->n; i++) {
        const uint32_t row = row_at(l, i);
        const int32_t slot = l->slot[row], pads = (uint32_t)slot >= l->gen->n_slots;
        to[i] = pads ? -1 : slot;
        from[i] = pads ? -1 : l->start[row] ? slot : l->prefix ? l->prefix[row] : -1;
    }
}

static void fill_ring(const struct block *k, uint64_t n, const struct rlhf__tf_ring *ring) {
    const int32_t *from = k->host + k->offset;
    int32_t *to = k->host + k->ring;
    for (uint32_t part = 0; part < TF_N_PART; part++, from += ring->rows[part - 1])
        for (uint32_t i = 0; i <= ring->rows[part]; i++)
            *to++ = from[i] - from[0];
    memcpy(to, ring->kv_base, n * sizeof *to);
    memcpy(to + n, ring->prefix_base, n * sizeof *to);
    memcpy(to + 2 * n, ring->prefix_len, n * sizeof *to);
}

// Sets k->host to memory for the block on the host, and k->dev to its destination on the device.
// The block of a recorded step is copied to the device by gen_record.c, every other block by
// rlhf__tf_rows_upload.
static rlhf_status place(struct rlhf__tf *m, struct rlhf__tf_work *w,
                         const struct rlhf__tf_layout *l, struct block *k) {
    void *tmp = NULL;
    k->dev = l->recorded ? l->recorded->ints.p : NULL;
    k->host = l->recorded ? l->recorded->host : NULL;
    if (l->recorded) return RLHF_OK;
    RLHF_TRY(rlhf__tf_host_tmp(m, k->end * sizeof(int32_t), &tmp));
    RLHF_TRY(rlhf__tf_reserve(m, &w->ints, k->end * sizeof(int32_t)));
    k->host = tmp;
    k->dev = w->ints.p;
    return RLHF_OK;
}

static rlhf_dev at(const struct block *k, uint64_t segment) {
    return rlhf_dev_at(k->dev, segment * sizeof(int32_t));
}

// Sets the rows of each part. The arrays of prefixes are left out if no row of the part has one,
// except in a recorded step.
static void set_parts(const struct block *k, struct rlhf__tf_rows *r,
                      const struct rlhf__tf_ring *ring, int32_t recorded) {
    const uint64_t base = k->ring + r->n + TF_N_PART;
    uint64_t first = 0;
    for (uint32_t part = 0; part < TF_N_PART; part++) {
        rlhf_ragged *p = &r->part[part];
        const uint64_t offset = k->ring + first + part, n = ring->rows[part];
        int32_t shared = recorded;
        for (uint64_t i = first; i < first + n; i++)
            shared |= ring->prefix_len[i] > 0;
        *p = r->ragged;
        p->n = (uint32_t)n;
        p->total = (uint32_t)k->host[offset + n];
        p->offset = at(k, offset);
        p->start = at(k, k->start + first);
        p->kv_base = at(k, base + first);
        p->prefix_base = shared ? at(k, base + r->n + first) : NULL;
        p->prefix_len = shared ? at(k, base + 2 * (uint64_t)r->n + first) : NULL;
        first += n;
    }
}

rlhf_status rlhf__tf_rows_upload(struct rlhf__tf *m, struct rlhf__tf_work *w,
                                 const struct rlhf__tf_layout *l) {
    struct rlhf__tf_rows *r = &w->rows;
    struct block k;
    r->n = l->n;
    r->total = l->total;
    r->n_resp = count_resp(l);
    r->resp_is_all = l->gen && r->n_resp == l->total;
    const struct rlhf__tf_ring *ring = l->gen ? l->gen->ring : NULL;
    const int32_t kept = l->gen && l->gen->kept;
    block_lay_out(&k, l->n, l->total, r->n_resp, l->ref ? r->n_resp : 0, l->gen);
    RLHF_TRY(place(m, w, l, &k));
    fill_rows(&m->arch, &k, l, r);
    fill_resp(&k, l);
    if (ring) fill_ring(&k, l->n, ring);
    if (kept) fill_states(&k, l);
    RLHF_TRY(rlhf__tf_turn_reserve(m, r->ragged.max_k));
    if (l->ref) memcpy(k.host + k.ref, l->ref, r->n_resp * sizeof *k.host);
    if (!l->recorded) RLHF_TRY(m->c->upload(m->c->ctx, k.dev, k.host, k.end * sizeof(int32_t)));
    r->ids = at(&k, k.ids);
    r->pos = at(&k, k.pos);
    r->resp = at(&k, k.resp);
    r->target = at(&k, k.target);
    r->read = at(&k, k.read);
    r->ref = l->ref ? at(&k, k.ref) : NULL;
    r->pool = at(&k, k.pool);
    r->from = kept ? at(&k, k.from) : NULL;
    r->to = kept ? at(&k, k.to) : NULL;
    r->ragged.size = sizeof r->ragged;
    r->ragged.n = l->n;
    r->ragged.total = l->total;
    r->ragged.offset = at(&k, k.offset);
    r->ragged.start = at(&k, k.start);
    r->ragged.kv_base = at(&k, k.kv_base);
    // A recorded step always has the prefix arrays, because the recorded calls have them as
    // arguments.
    const int32_t shared = l->recorded ? l->prefix != NULL : rlhf__tf_has_prefix(l->prefix, l->n);
    r->ragged.prefix_base = shared ? at(&k, k.prefix_base) : NULL;
    r->ragged.prefix_len = shared ? at(&k, k.prefix_len) : NULL;
    if (ring) set_parts(&k, r, ring, l->recorded != NULL);
    return RLHF_OK;
}
