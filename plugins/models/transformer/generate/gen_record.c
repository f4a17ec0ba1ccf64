// transformer/generate/gen_record.c: decoding on a backend that can record its calls (record in
// rlhf/compute.h). A step of one token per row is padded to a fixed number of rows, which is called
// its bucket. The calls of a step are recorded. They are replayed for later steps that have the
// same bucket and pass the same arguments by value (key_of). Values that differ between such steps
// are read from device memory, at fixed addresses.
//
// A row's result does not depend on other rows, so padding and recording do not change samples.
#include "transformer/internal.h"

#include <string.h>

// 8, 16, 32, 64, or the next multiple of 64.
uint32_t rlhf__tf_bucket(uint32_t n) {
    uint32_t b = 8;
    while (b < n && b < 64)
        b *= 2;
    return b >= n ? b : (n + 63) / 64 * 64;
}

#define KEYS_STEP 512 // max_k is rounded up to a multiple, because it can affect attention's launch

// A step's block begins with the integers; the counters follow. Both parts end at a multiple of 64
// bytes.
static uint64_t counters_at(const rlhf_gen *g, uint32_t rows) {
    return rlhf__tf_rows_ints(rows, g) * sizeof(int32_t);
}
static uint64_t block_bytes(const rlhf_gen *g, uint32_t rows) {
    return counters_at(g, rows) + rows * sizeof(uint64_t);
}
static uint64_t drawn_bytes(uint32_t rows, uint64_t words) {
    return rows * (sizeof(int32_t) + sizeof(float) + words * sizeof(uint32_t));
}

static int32_t records(const rlhf_compute *c) {
    return RLHF_COMPUTE_HAS(c, record) && RLHF_COMPUTE_HAS(c, record_end) &&
           RLHF_COMPUTE_HAS(c, alloc_host) && RLHF_COMPUTE_HAS(c, release_host) &&
           RLHF_COMPUTE_HAS(c, upload_async);
}

rlhf_status rlhf__tf_recorded_open(struct rlhf__tf *m, rlhf_gen *g) {
    if (!records(m->c)) return RLHF_OK;
    struct rlhf__tf_recorded *r = m->host->alloc(m->host, sizeof *r);
    if (!r) return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for a generation session");
    g->recorded = r; // the session destroys it even if an allocation below fails
    r->max_rows = rlhf__tf_bucket(g->n_slots);
    r->session = ++m->sessions;
    const uint64_t n = r->max_rows;
    r->slot = m->host->alloc(m->host, (5 * n + 1) * sizeof *r->slot);
    if (!r->slot) return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for %u rows", r->max_rows);
    r->start = r->slot + n;
    r->ids = r->start + n;
    r->prefix = r->ids + n;
    r->offset = r->prefix + n;
    RLHF_TRY(m->c->alloc_host(m->c->ctx, block_bytes(g, r->max_rows), &r->host));
    return rlhf__tf_reserve(m, &r->ints, block_bytes(g, r->max_rows));
}

void rlhf__tf_recorded_close(struct rlhf__tf *m, struct rlhf__tf_recorded *r) {
    if (!r) return;
    rlhf__tf_buf_finish(m, &r->ints);
    rlhf__tf_buf_finish(m, &r->drawn);
    m->c->release_host(m->c->ctx, r->host);
    m->c->release_host(m->c->ctx, r->host_drawn);
    m->host->free(m->host, r->slot);
    m->host->free(m->host, r);
}

int32_t rlhf__tf_is_recorded(const rlhf_gen *g, const rlhf_gen_step *s) {
    if (!g->recorded || !s->n || (uint32_t)s->offset[s->n] != s->n) return 0;
    for (uint32_t i = 0; s->silent && i < s->n; i++)
        if (s->silent[i]) return 0;
    return !g->ring || !g->ring->stage;
}

// ---- one step ----

// Copies the step and adds padding rows. A padding row has the token 0. The padding rows are at
// consecutive positions of the spare slot.
static void pad(const rlhf_gen *g, const rlhf_gen_step *s, uint32_t rows) {
    struct rlhf__tf_recorded *r = g->recorded;
    uint64_t *counter = (uint64_t *)(void *)((char *)r->host + counters_at(g, rows));
    const uint32_t room = g->ring ? (uint32_t)g->ring->window : g->max_len;
    for (uint32_t i = 0; i < rows; i++) {
        const int32_t own = i < s->n;
        r->slot[i] = own ? s->slot[i] : (int32_t)g->n_slots;
        r->start[i] = own ? s->start[i] : (int32_t)((i - s->n) % room);
        r->ids[i] = own ? s->ids[i] : 0;
        r->prefix[i] = own && s->prefix ? s->prefix[i] : -1;
        r->offset[i] = (int32_t)i;
        counter[i] = own ? s->counter[i] : 0;
    }
    r->offset[rows] = (int32_t)rows;
}

// Returns the key of the step's recording: a hash of all arguments that the step's calls pass by
// value. If two steps have equal keys, their calls are the same.
static uint64_t key_of(const struct rlhf__tf *m, const rlhf_gen *g, const rlhf_gen_step *s,
                       const rlhf_dist *d, const rlhf_dist *logp, uint32_t rows, uint32_t max_k) {
    uint64_t top_p[2], min_p[2], temperature[2], h = 0xcbf29ce484222325u;
    memcpy(&top_p[0], &d->top_p, sizeof *top_p);
    memcpy(&top_p[1], &logp->top_p, sizeof *top_p);
    memcpy(&min_p[0], &d->min_p, sizeof *min_p);
    memcpy(&min_p[1], &logp->min_p, sizeof *min_p);
    memcpy(&temperature[0], &d->inv_temperature, sizeof *temperature);
    memcpy(&temperature[1], &logp->inv_temperature, sizeof *temperature);
    const uint64_t part[] = {(uintptr_t)m,
                             g->recorded->session,
                             rows,
                             max_k,
                             s->prefix != NULL,
                             s->support != NULL,
                             s->seed,
                             s->stream,
                             (uint32_t)d->greedy,
                             (uint32_t)d->top_k,
                             top_p[0],
                             temperature[0],
                             min_p[0],
                             (uint32_t)logp->greedy,
                             (uint32_t)logp->top_k,
                             top_p[1],
                             temperature[1],
                             min_p[1]};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        h = (h ^ part[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h ? h : 1;
}

// Allocates memory for everything that the recorded calls write, because nothing may be allocated
// between record and record_end.
static rlhf_status make_room(struct rlhf__tf *m, struct rlhf__tf_recorded *r, uint32_t words) {
    const uint64_t bytes = drawn_bytes(r->max_rows, words);
    RLHF_TRY(rlhf__tf_lm_ready(m));
    RLHF_TRY(rlhf__tf_trunk_reserve(m, &m->infer));
    RLHF_TRY(rlhf__tf_resp_reserve(m, &m->infer));
    if (r->host_drawn && r->words >= words) return RLHF_OK;
    RLHF_TRY(rlhf__tf_reserve(m, &r->drawn, bytes));
    m->c->release_host(m->c->ctx, r->host_drawn);
    r->host_drawn = NULL;
    RLHF_TRY(m->c->alloc_host(m->c->ctx, bytes, &r->host_drawn));
    r->words = words;
    return RLHF_OK;
}

static rlhf_status issue(struct rlhf__tf *m, rlhf_gen *g, const rlhf_gen_step *s,
                         const rlhf_dist *d, const rlhf_dist *logp) {
    struct rlhf__tf_work *w = &m->infer;
    const struct rlhf__tf_recorded *r = g->recorded;
    const uint64_t rows = w->rows.n;
    RLHF_TRY(rlhf__tf_trunk(m, w, g, NULL));
    RLHF_TRY(rlhf__tf_resp_state(m, w));
    const rlhf_lm_sample a = {
        .size = (uint32_t)sizeof a,
        .rows = w->rows.n,
        .d = m->arch.d,
        .vocab = rlhf__tf_outputs(m),
        .dtype = m->dtype,
        .dist = d,
        .logp_dist = logp,
        .hidden = w->rh_p,
        .weight = m->lm,
        .seed = s->seed,
        .stream = s->stream,
        .counter = rlhf_dev_at(r->ints.p, counters_at(g, w->rows.n)),
        .id = r->drawn.p,
        .logp = rlhf_dev_at(r->drawn.p, rows * sizeof(int32_t)),
        .support = s->support ? rlhf_dev_at(r->drawn.p, drawn_bytes(w->rows.n, 0)) : NULL,
        .logit_scale = m->arch.logit_scale,
        .softcap = m->arch.softcap};
    return m->c->lm_sample(m->c->ctx, &a);
}

static rlhf_status collect(struct rlhf__tf *m, const rlhf_gen *g, const rlhf_gen_step *s,
                           uint32_t rows, uint32_t words) {
    const struct rlhf__tf_recorded *r = g->recorded;
    RLHF_TRY(m->c->download(m->c->ctx, r->host_drawn, r->drawn.p, drawn_bytes(rows, words)));
    const int32_t *id = r->host_drawn;
    const void *logp = id + rows, *support = id + 2 * (uint64_t)rows;
    memcpy(s->next, id, s->n * sizeof *s->next);
    memcpy(s->logp, logp, s->n * sizeof *s->logp);
    if (words) memcpy(s->support, support, (uint64_t)s->n * words * sizeof *s->support);
    return RLHF_OK;
}

rlhf_status rlhf__tf_gen_recorded(struct rlhf__tf *m, rlhf_gen *g, const rlhf_gen_step *s) {
    struct rlhf__tf_recorded *r = g->recorded;
    struct rlhf__tf_work *w = &m->infer;
    const uint32_t rows = rlhf__tf_bucket(s->n);
    const uint32_t words = s->support ? rlhf_support_words(rlhf__tf_outputs(m)) : 0;
    const rlhf_dist *d = rlhf__tf_dist(s->dist);
    const rlhf_dist *logp = s->logp_dist ? s->logp_dist : d;
    const struct rlhf__tf_layout l = {.n = rows,
                                      .total = rows,
                                      .ids = r->ids,
                                      .offset = r->offset,
                                      .prefix = s->prefix ? r->prefix : NULL,
                                      .gen = g,
                                      .slot = r->slot,
                                      .start = r->start,
                                      .recorded = r};
    int32_t what = RLHF_RECORD_RUN;
    pad(g, s, rows);
    if (g->ring) rlhf__tf_ring_pad(g, s->n, rows);
    RLHF_TRY(rlhf__tf_rows_upload(m, w, &l));
    w->rows.ragged.max_k = (w->rows.ragged.max_k + KEYS_STEP - 1) / KEYS_STEP * KEYS_STEP;
    for (int i = 0; i < TF_N_PART; i++) // a replayed step has the numbers of the recorded one
        w->rows.part[i].max_k = w->rows.ragged.max_k;
    RLHF_TRY(make_room(m, r, words));
    RLHF_TRY(m->c->upload_async(m->c->ctx, r->ints.p, r->host, block_bytes(g, rows)));
    const uint64_t key = key_of(m, g, s, d, logp, rows, w->rows.ragged.max_k);
    RLHF_TRY(m->c->record(m->c->ctx, key, &what));
    rlhf_status st = what == RLHF_RECORD_REPLAY ? RLHF_OK : issue(m, g, s, d, logp);
    const rlhf_status end = m->c->record_end(m->c->ctx);
    RLHF_TRY(st < 0 ? st : end);
    rlhf__tf_step_commit(g, s);
    return collect(m, g, s, rows, words);
}
