// transformer/generate/ring.c: the cache of layers with a window that is shorter than the slots.
// Such a layer keeps only the last `window` own tokens of each slot: token o is in the slot's row
// (o - origin) mod window. These are all that a later token sees.
//
// The rows of a step are computed in three parts, one after the other (enum rlhf__tf_part). A row
// is direct if the keys that its queries see are in at most two ranges of the cache, and its new
// tokens overwrite none of these keys. It then reads the cache in place, with the first range as
// its prefix (rlhf_ragged), so decoding moves no keys. Every other row is staged: the old keys that
// its queries see are copied to the stage, the new ones are stored after them, and the last ones
// are copied to the start of the slot. So a staged slot can be another row's prefix. The stage
// serves one layer after the other.
//
// Where a key is does not change a query's bits, so sampling has the bits of forward.
#include "transformer/internal.h"

enum { PULLS = 4 }; // at most two ranges of the prefix and two of the slot

static int32_t has_window(const struct rlhf__tf *m, uint32_t longer_than) {
    for (int32_t l = 0; l < m->arch.n_layer; l++) {
        const int32_t w = rlhf__tf_window(&m->arch, l);
        if (w && (uint32_t)w < longer_than) return 1;
    }
    return 0;
}

rlhf_status rlhf__tf_ring_open(struct rlhf__tf *m, rlhf_gen *g) {
    if (!has_window(m, g->max_len)) return RLHF_OK;
    const uint64_t n = rlhf__tf_bucket(g->n_slots);
    struct rlhf__tf_ring *r = m->host->alloc(m->host, sizeof *r);
    if (!r) return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for a generation session");
    g->ring = r; // the session destroys it even if an allocation below fails
    r->window = m->arch.window;
    r->order = m->host->alloc(m->host, 4 * n * sizeof *r->order);
    r->pull = m->host->alloc(m->host, (PULLS + 1) * (uint64_t)g->n_slots * sizeof *r->pull);
    if (!r->order || !r->pull)
        return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for %u slots", g->n_slots);
    r->kv_base = r->order + n;
    r->prefix_base = r->kv_base + n;
    r->prefix_len = r->prefix_base + n;
    r->push = r->pull + PULLS * (uint64_t)g->n_slots;
    return RLHF_OK;
}

void rlhf__tf_ring_close(struct rlhf__tf *m, struct rlhf__tf_ring *r) {
    if (!r) return;
    rlhf__tf_buf_finish(m, &r->k);
    rlhf__tf_buf_finish(m, &r->v);
    m->host->free(m->host, r->order);
    m->host->free(m->host, r->pull);
    m->host->free(m->host, r);
}

uint64_t rlhf__tf_cache_at(const struct rlhf__tf *m, const rlhf_gen *g, int32_t layer) {
    uint64_t tokens = (uint64_t)rlhf__tf_attention_index(&m->arch, layer) * g->max_len;
    for (int32_t l = 0; g->ring && l < layer; l++)
        if (rlhf__tf_window(&m->arch, l)) tokens -= g->max_len - (uint64_t)g->ring->window;
    return tokens * g->cache_slots * (uint64_t)rlhf_tf_widths(&m->arch).kv * rlhf__tf_esz(m);
}

// ---- the plan of a step ----

// A row of a step. `own` is the number of tokens in its slot, `prefix` the number of tokens before
// them, and `first` the first key that its first query sees, counted from the prefix on.
struct row {
    int32_t slot, from, own, add, prefix, first, origin;
};

static struct row row_of(const rlhf_gen *g, const rlhf_gen_step *s, uint32_t i) {
    struct row x = {.slot = s->slot[i], .from = s->prefix ? s->prefix[i] : -1, .own = s->start[i]};
    x.add = s->offset[i + 1] - s->offset[i];
    x.prefix = x.from < 0 ? 0 : g->slots[x.from].after;
    x.origin = x.own ? g->slots[x.slot].origin : 0;
    const int32_t end = x.prefix + x.own + 1, window = g->ring->window;
    x.first = end > window ? end - window : 0;
    return x;
}

// True if the row's own tokens have all stayed in place, and will after this step.
static int fits(const rlhf_gen *g, const struct row *x) {
    return x->own + x->add <= g->ring->window && !x->origin;
}

// The part of a row. Call it for rows that do not fill a prefix after those that do.
static enum rlhf__tf_part part_of(const rlhf_gen *g, const struct row *x) {
    const struct rlhf__gen_slot *p = x->from < 0 ? NULL : &g->slots[x->from];
    const int whole = !p || x->first >= x->prefix || p->after - p->next_origin <= g->ring->window;
    if (fits(g, x) ? whole : x->add == 1) return TF_DIRECT;
    return g->slots[x->slot].use == TF_FILLED ? TF_FILLS : TF_STAGED;
}

static void add_direct(const rlhf_gen *g, const struct row *x, uint32_t at) {
    struct rlhf__tf_ring *r = g->ring;
    const int32_t base = x->slot * r->window;
    r->kv_base[at] = base;
    if (fits(g, x)) {
        const int32_t from = x->from < 0 ? 0 : x->from * r->window - g->slots[x->from].next_origin;
        r->prefix_len[at] = x->prefix;
        r->prefix_base[at] = from;
    } else { // the own tokens before `turn` are in the slot's end, the other ones in its start
        const int32_t turn = x->origin + (x->own - x->origin) / r->window * r->window;
        r->prefix_len[at] = x->prefix + turn;
        r->prefix_base[at] = base + r->window - turn - x->prefix;
    }
}

// Plans to copy the tokens from .. end-1 of a slot to the stage.
static void pull(struct rlhf__tf_ring *r, uint32_t part, int32_t slot, int32_t origin, int32_t from,
                 int32_t end, int32_t *to) {
    while (from < end) {
        const int32_t row = (from - origin) % r->window, left = r->window - row;
        const int32_t n = end - from < left ? end - from : left;
        r->pull[r->n_pull[part]++] =
            (struct rlhf__tf_move){slot * r->window + row, *to, (uint32_t)n};
        from += n;
        *to += n;
    }
}

static void add_staged(rlhf_gen *g, const struct row *x, uint32_t at, uint32_t part,
                       int32_t *stage) {
    struct rlhf__tf_ring *r = g->ring;
    struct rlhf__gen_slot *slot = &g->slots[x->slot];
    const int32_t old = x->first > x->prefix ? x->first - x->prefix : 0, end = x->own + x->add;
    const int32_t keep = end < r->window ? end : r->window;
    r->kv_base[at] = *stage - x->first;
    r->prefix_base[at] = r->prefix_len[at] = 0;
    if (x->from >= 0)
        pull(r, part, x->from, g->slots[x->from].next_origin, x->first, x->prefix, stage);
    pull(r, part, x->slot, x->origin, old, x->own, stage);
    *stage += x->add;
    r->push[r->n_push[part]++] =
        (struct rlhf__tf_move){x->slot * r->window, *stage - keep, (uint32_t)keep};
    slot->next_origin = end - keep;
    slot->held = 0; // if the step fails, the slot no longer has the tokens
    if ((uint32_t)*stage > r->stage) r->stage = (uint32_t)*stage;
}

void rlhf__tf_ring_plan(rlhf_gen *g, const rlhf_gen_step *s) {
    struct rlhf__tf_ring *r = g->ring;
    uint32_t at = 0;
    r->stage = 0;
    r->sorted = 1;
    for (uint32_t i = 0; i < g->n_slots; i++)
        g->slots[i].next_origin = g->slots[i].origin;
    for (uint32_t i = 0; i < s->n; i++)
        if (!s->start[i]) g->slots[s->slot[i]].next_origin = 0;
    for (uint32_t part = 0; part < TF_N_PART; part++) {
        int32_t stage = 0;
        r->rows[part] = at;
        r->n_pull[part] = part ? r->n_pull[part - 1] : 0;
        r->n_push[part] = part ? r->n_push[part - 1] : 0;
        for (uint32_t i = 0; i < s->n; i++) {
            const struct row x = row_of(g, s, i);
            if (part_of(g, &x) != part) continue;
            if (part == TF_DIRECT)
                add_direct(g, &x, at);
            else
                add_staged(g, &x, at, part, &stage);
            if (i != at) r->sorted = 0;
            r->order[at++] = (int32_t)i;
        }
        r->rows[part] = at - r->rows[part];
    }
}

void rlhf__tf_ring_pad(const rlhf_gen *g, uint32_t n, uint32_t rows) {
    struct rlhf__tf_ring *r = g->ring;
    for (uint32_t i = n; i < rows; i++) {
        r->order[i] = (int32_t)i;
        r->kv_base[i] = (int32_t)g->n_slots * r->window;
        r->prefix_base[i] = r->prefix_len[i] = 0;
    }
    r->rows[TF_DIRECT] = rows;
}

// ---- the attention of a layer ----

rlhf_status rlhf__tf_ring_reserve(struct rlhf__tf *m, struct rlhf__tf_ring *r) {
    const uint64_t kv = (uint64_t)rlhf_tf_widths(&m->arch).kv * rlhf__tf_esz(m);
    if (!r->stage) return RLHF_OK;
    RLHF_TRY(rlhf__tf_reserve(m, &r->k, r->stage * kv));
    return rlhf__tf_reserve(m, &r->v, r->stage * kv);
}

// A layer's cache of keys or values, and the stage.
struct memory {
    rlhf_dev cache, stage;
};

// Copies tokens of `bytes` bytes: to the stage or, with `back`, from the stage.
static rlhf_status move(const struct rlhf__tf *m, const struct memory *x,
                        const struct rlhf__tf_move *v, uint64_t bytes, int back) {
    const rlhf_dev cache = rlhf_dev_at(x->cache, (uint64_t)v->cache * bytes);
    const rlhf_dev stage = rlhf_dev_at(x->stage, (uint64_t)v->stage * bytes);
    return m->c->copy(m->c->ctx, back ? cache : stage, back ? stage : cache, v->n * bytes);
}

static rlhf_status move_all(const struct rlhf__tf *m, const struct memory of[2],
                            const struct rlhf__tf_move *v, const uint32_t *end, uint32_t part,
                            int back) {
    const uint64_t bytes = (uint64_t)rlhf_tf_widths(&m->arch).kv * rlhf__tf_esz(m);
    for (uint32_t i = part ? end[part - 1] : 0; i < end[part]; i++)
        for (int k = 0; k < 2; k++)
            RLHF_TRY(move(m, &of[k], &v[i], bytes, back));
    return RLHF_OK;
}

rlhf_status rlhf__tf_ring_attend(const struct rlhf__tf *m, const struct rlhf__tf_ring *ring,
                                 const struct rlhf__tf_rows *rows, const rlhf_attn *a,
                                 const struct rlhf__tf_qkv *s, rlhf_dev k, rlhf_dev v,
                                 rlhf_dev out) {
    const struct memory of[2] = {{k, ring->k.p}, {v, ring->v.p}};
    const uint64_t esz = rlhf__tf_esz(m);
    uint64_t token = 0; // the first token of the part
    for (uint32_t part = 0; part < TF_N_PART; part++) {
        const rlhf_ragged *r = &rows->part[part];
        const uint64_t at = token * (uint64_t)a->q_stride * esz;
        const int staged = part != TF_DIRECT;
        const rlhf_dev kc = staged ? ring->k.p : k, vc = staged ? ring->v.p : v;
        if (!r->n) continue;
        if (staged) RLHF_TRY(move_all(m, of, ring->pull, ring->n_pull, part, 0));
        RLHF_TRY(m->c->kv_store(m->c->ctx, kc, vc, rlhf_dev_at(s->k, at), rlhf_dev_at(s->v, at),
                                a->q_stride, r, (int32_t)a->kv_stride, m->dtype));
        RLHF_TRY(m->c->attention(m->c->ctx, a, r,
                                 rlhf_dev_at(out, token * (uint64_t)a->out_stride * esz), NULL,
                                 rlhf_dev_at(s->q, at), kc, vc));
        if (staged) RLHF_TRY(move_all(m, of, ring->push, ring->n_push, part, 1));
        token += r->total;
    }
    return RLHF_OK;
}
