// transformer/buffers.c: device buffers that grow to the largest batch seen, and host scratch.
#include "internal.h"

#include <string.h>

rlhf_status rlhf__tf_reserve(struct rlhf__tf *m, struct rlhf__tf_buf *b, uint64_t bytes) {
    if (b->p && b->bytes >= bytes) return RLHF_OK;
    // By a quarter at least: batches that get longer step by step do not each wait for the device.
    const uint64_t grown = b->bytes + b->bytes / 4;
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

static void scored_finish(struct rlhf__tf *m, struct rlhf__tf_scored *s) {
    struct rlhf__tf_buf *all[] = {&s->px, &s->pstats, &s->pf, &s->p1, &s->p1a, &s->score};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        rlhf__tf_buf_finish(m, all[i]);
}

void rlhf__tf_work_finish(struct rlhf__tf *m, struct rlhf__tf_work *w) {
    struct rlhf__tf_buf *all[] = {
        &w->ints,   &w->emb,    &w->emb_stats, &w->in,  &w->mid,       &w->h1,     &w->h2,
        &w->stats1, &w->stats2, &w->qkv,       &w->raw, &w->raw_stats, &w->sum,    &w->att,
        &w->lse,    &w->fc,     &w->ac,        &w->rx,  &w->rstats,    &w->rf,     &w->rh,
        &w->ref,    &w->result, &w->v1,        &w->v1a, &w->full,      &w->fstats, &w->support};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        rlhf__tf_buf_finish(m, all[i]);
    for (size_t i = 0; i < TF_N_SITE; i++)
        rlhf__tf_buf_finish(m, &w->low[i]);
    scored_finish(m, &w->pooled);
    scored_finish(m, &w->token);
    w->valid = 0;
}

void rlhf__tf_scratch_finish(struct rlhf__tf *m) {
    struct rlhf__tf_scratch *s = &m->bwd;
    struct rlhf__tf_buf *all[] = {&s->ds,   &s->ds2,   &s->dy,     &s->dinner, &s->dqkv,
                                  &s->datt, &s->dh,    &s->dres,   &s->drh,    &s->drf,
                                  &s->drx,  &s->dv1,   &s->dscore, &s->dp1,    &s->dpf,
                                  &s->dpx,  &s->dfull, &s->dfc,    &s->dlow};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        rlhf__tf_buf_finish(m, all[i]);
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
