// transformer/internal.c: helpers for all files of the core: reporting failures, reading the host's
// structs, the default distribution, names, device buffers that grow to fit the largest batch seen,
// and scratch memory on the host.
#include "internal.h"

#include <stdio.h>
#include <string.h>

// ---- failures, structs ----

static const rlhf_dist unit_dist = RLHF_DIST_WHOLE;

const rlhf_dist *rlhf__tf_dist(const rlhf_dist *d) { return d ? d : &unit_dist; }

rlhf_status rlhf__tf_fail(struct rlhf__tf *m, rlhf_status code, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return m->host->fail(m->host, code, text);
}

rlhf_status rlhf__tf_copy_in(struct rlhf__tf *m, const char *what, void *dst, uint32_t own,
                             const void *src, uint32_t first) {
    uint32_t size;
    memcpy(&size, src, sizeof size);
    rlhf_status st = rlhf_copy_in(dst, own, src, first);
    if (st == RLHF_E_UNSUPPORTED)
        return rlhf__tf_fail(m, st, "%s sets a field newer than this model (%u > %u bytes)", what,
                             size, own);
    if (st < 0)
        return rlhf__tf_fail(m, st, "%s says it has %u bytes, at least %u are needed", what, size,
                             first);
    return RLHF_OK;
}

double rlhf__tf_embed_scale(const struct rlhf__tf *m) {
    const float scale = (float)m->arch.embed_scale;
    uint32_t bits;
    if (!m->arch.embed_rounded || m->dtype != RLHF_BF16) return (double)scale;
    memcpy(&bits, &scale, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000; // to nearest even
    float rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    return (double)rounded;
}

// ---- names ----

size_t rlhf__tf_full_name(const struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer,
                          char *out, size_t cap) {
    char prefix[64] = "";
    if (layer >= 0) {
        const char *mark = strstr(m->arch.layer_prefix, "%d");
        const int head = (int)(mark - m->arch.layer_prefix);
        snprintf(prefix, sizeof prefix, "%.*s%d%s", head, m->arch.layer_prefix, (int)layer,
                 mark + 2);
    }
    const int len = snprintf(out, out ? cap : 0, "%s%s", prefix, n->name);
    return (size_t)len;
}

// ---- buffers ----

#define MANY ((uint64_t)8 << 20)

rlhf_status rlhf__tf_reserve(struct rlhf__tf *m, struct rlhf__tf_buf *b, uint64_t bytes) {
    if (b->p && b->bytes >= bytes) return RLHF_OK;
    // Grow a small buffer by at least a quarter, and a large one (many MiB) by at least a
    // sixteenth. If batches grow step by step, only few of them then need an allocation. If
    // microbatches have similar sizes, little memory is left unused.
    const uint64_t grown = b->bytes + b->bytes / (b->bytes < MANY ? 4 : 16);
    if (bytes < grown) bytes = grown;
    rlhf__tf_buf_finish(m, b);
    RLHF_TRY(m->c->alloc(m->c->ctx, bytes, &b->p));
    b->bytes = bytes;
    return RLHF_OK;
}

void rlhf__tf_buf_finish(struct rlhf__tf *m, struct rlhf__tf_buf *b) {
    m->c->release(m->c->ctx, b->p);
    b->p = NULL;
    b->bytes = 0;
}

typedef void buf_fn(struct rlhf__tf *m, struct rlhf__tf_buf *b, uint64_t *bytes);

static void finish(struct rlhf__tf *m, struct rlhf__tf_buf *b, uint64_t *bytes) {
    (void)bytes;
    rlhf__tf_buf_finish(m, b);
}

static void add_up(struct rlhf__tf *m, struct rlhf__tf_buf *b, uint64_t *bytes) {
    (void)m;
    *bytes += b->bytes;
}

static void each_scored(struct rlhf__tf *m, struct rlhf__tf_scored *s, buf_fn *f, uint64_t *bytes) {
    struct rlhf__tf_buf *all[] = {&s->px, &s->pstats, &s->pf, &s->p1, &s->p1a, &s->score};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        f(m, all[i], bytes);
}

static void each_work(struct rlhf__tf *m, struct rlhf__tf_work *w, buf_fn *f, uint64_t *bytes) {
    struct rlhf__tf_buf *all[] = {
        &w->ints,   &w->emb,    &w->emb_stats, &w->in,           &w->mid,    &w->h1,
        &w->h2,     &w->stats1, &w->stats2,    &w->qkv,          &w->raw,    &w->raw_stats,
        &w->sum,    &w->att,    &w->branch,    &w->branch_stats, &w->lse,    &w->fc,
        &w->ac,     &w->rx,     &w->rstats,    &w->rf,           &w->rh,     &w->ref,
        &w->result, &w->v1,     &w->full,      &w->fstats,       &w->support};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        f(m, all[i], bytes);
    for (size_t i = 0; i < TF_N_SITE; i++)
        f(m, &w->low[i], bytes);
    each_scored(m, &w->pooled, f, bytes);
    each_scored(m, &w->token, f, bytes);
}

static void each_scratch(struct rlhf__tf *m, buf_fn *f, uint64_t *bytes) {
    struct rlhf__tf_scratch *s = &m->bwd;
    struct rlhf__tf_buf *all[] = {&s->ds,     &s->ds2,  &s->dy,    &s->wide, &s->narrow,
                                  &s->datt,   &s->dres, &s->drh,   &s->drf,  &s->drx,
                                  &s->dscore, &s->dp1,  &s->dpf,   &s->dpx,  &s->dfull,
                                  &s->dfc,    &s->dlow, &s->mixed, &s->mix};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        f(m, all[i], bytes);
}

void rlhf__tf_work_finish(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    each_work(m, w, finish, NULL);
    w->valid = 0;
}

void rlhf__tf_scratch_finish(struct rlhf__tf *m) { each_scratch(m, finish, NULL); }

void rlhf__tf_tap_finish(struct rlhf__tf *m) {
    rlhf__tf_work_finish(m, &m->tap.work);
    rlhf__tf_buf_finish(m, &m->tap.in);
    rlhf__tf_buf_finish(m, &m->tap.low);
    rlhf__tf_buf_finish(m, &m->tap.out);
    m->tap.ran = 0;
}

void rlhf__tf_trim(void *self) {
    struct rlhf__tf *m = self;
    uint64_t bytes = 0;
    if (!m->c) return;
    each_work(m, &m->train, add_up, &bytes);
    each_work(m, &m->infer, add_up, &bytes);
    each_work(m, &m->tap.work, add_up, &bytes);
    each_scratch(m, add_up, &bytes);
    if (bytes < MANY) return; // too small to be worth a new allocation
    rlhf__tf_work_finish(m, &m->train);
    rlhf__tf_work_finish(m, &m->infer);
    rlhf__tf_tap_finish(m);
    rlhf__tf_scratch_finish(m);
}

rlhf_status rlhf__tf_host_tmp(struct rlhf__tf *m, uint64_t bytes, void **out) {
    if (m->host_tmp_bytes < bytes) {
        m->host->free(m->host, m->host_tmp);
        m->host_tmp_bytes = 0;
        m->host_tmp = m->host->alloc(m->host, bytes);
        if (!m->host_tmp)
            return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for %llu bytes of batch scratch",
                                 (unsigned long long)bytes);
        m->host_tmp_bytes = bytes;
    }
    *out = m->host_tmp;
    return RLHF_OK;
}
