// decode.c: see decode.h.
#include "train/decode.h"

#include <stdlib.h>
#include <string.h>

// One step's rows; row r works for sequence seq[r] in slot[r].
struct decoder {
    const struct rlhf__gen_request *q;
    struct rlhf__gen_result *out;
    uint32_t waiting; // next sequence to start
    int64_t *in_slot; // [slots] sequence, -1 = free
    int32_t *slot, *start, *offset, *next, *ids;
    uint64_t *counter;
    float *logp;
    uint32_t rows;
    size_t ids_cap;
};

void rlhf__gen_result_finish(struct rlhf__gen_result *r) {
    free(r->ids);
    free(r->logp);
    free(r->len);
    free(r->stopped);
    memset(r, 0, sizeof *r);
}

static rlhf_status result_init(struct rlhf__gen_result *r, uint32_t n, int32_t max_new,
                               struct rlhf__error *err) {
    size_t cells = (size_t)n * (size_t)max_new;
    memset(r, 0, sizeof *r);
    r->stride = max_new;
    r->ids = calloc(cells ? cells : 1, sizeof *r->ids);
    r->logp = calloc(cells ? cells : 1, sizeof *r->logp);
    r->len = calloc(n ? n : 1, sizeof *r->len);
    r->stopped = calloc(n ? n : 1, 1);
    if (r->ids && r->logp && r->len && r->stopped) return RLHF_OK;
    rlhf__gen_result_finish(r);
    return RLHF__NOMEM(err, "out of memory for %u responses of %d tokens", n, max_new);
}

static void decoder_finish(struct decoder *d) {
    free(d->in_slot);
    free(d->slot);
    free(d->start);
    free(d->offset);
    free(d->next);
    free(d->ids);
    free(d->counter);
    free(d->logp);
}

// The largest step is a prefill of the longest prompts in every slot.
static rlhf_status decoder_init(struct decoder *d, const struct rlhf__gen_request *q,
                                struct rlhf__gen_result *out, struct rlhf__error *err) {
    memset(d, 0, sizeof *d);
    d->q = q;
    d->out = out;
    size_t slots = q->slots, longest = 1;
    for (uint32_t i = 0; i < q->n; i++)
        if ((size_t)q->prompt_len[i] > longest) longest = (size_t)q->prompt_len[i];
    d->ids_cap = slots * longest;
    d->in_slot = malloc(slots * sizeof *d->in_slot);
    d->slot = calloc(slots, sizeof *d->slot);
    d->start = calloc(slots, sizeof *d->start);
    d->offset = calloc(slots + 1, sizeof *d->offset);
    d->next = calloc(slots, sizeof *d->next);
    d->ids = calloc(d->ids_cap, sizeof *d->ids);
    d->counter = calloc(slots, sizeof *d->counter);
    d->logp = calloc(slots, sizeof *d->logp);
    if (!d->in_slot || !d->slot || !d->start || !d->offset || !d->next || !d->ids || !d->counter ||
        !d->logp)
        return RLHF__NOMEM(err, "out of memory for %zu slots", slots);
    for (size_t s = 0; s < slots; s++)
        d->in_slot[s] = -1;
    return RLHF_OK;
}

// Lay out one step: every occupied slot gives a row; a free slot takes the next waiting prompt.
static void lay_out(struct decoder *d) {
    const struct rlhf__gen_request *q = d->q;
    d->rows = 0;
    for (uint32_t s = 0; s < q->slots; s++) {
        int fresh = d->in_slot[s] < 0;
        if (fresh && d->waiting == q->n) continue;
        if (fresh) d->in_slot[s] = d->waiting++;
        size_t i = (size_t)d->in_slot[s];
        int32_t made = d->out->len[i], from = d->offset[d->rows];
        const int32_t *ids =
            fresh ? q->prompt[i] : d->out->ids + i * (size_t)q->max_new + (size_t)made - 1;
        int32_t n = fresh ? q->prompt_len[i] : 1;
        memcpy(d->ids + from, ids, (size_t)n * sizeof *ids);
        d->slot[d->rows] = (int32_t)s;
        d->start[d->rows] = fresh ? 0 : q->prompt_len[i] + made - 1;
        d->counter[d->rows] = (q->first + i) * 65536 + (uint64_t)made;
        d->offset[++d->rows] = from + n;
    }
}

// Append what a step drew; finished sequences free their slots.
static void take(struct decoder *d) {
    const struct rlhf__gen_request *q = d->q;
    struct rlhf__gen_result *out = d->out;
    out->tokens += d->offset[d->rows];
    for (uint32_t r = 0; r < d->rows; r++) {
        int64_t *owner = &d->in_slot[d->slot[r]];
        size_t i = (size_t)*owner, at = i * (size_t)q->max_new + (size_t)out->len[i];
        out->ids[at] = d->next[r];
        out->logp[at] = d->logp[r];
        out->len[i]++;
        out->stopped[i] = d->next[r] == q->stop_id;
        if (out->stopped[i] || out->len[i] == q->max_new) *owner = -1;
    }
}

static rlhf_status run(struct decoder *d, const struct rlhf__model *m, rlhf_gen *session,
                       struct rlhf__error *err) {
    const struct rlhf__gen_request *q = d->q;
    for (;;) {
        if (q->cancelled && *q->cancelled)
            return rlhf__fail(err, RLHF_E_CANCELLED, "stopped while generating");
        lay_out(d);
        if (d->rows == 0) return RLHF_OK;
        rlhf_gen_step step = {.size = sizeof step,
                              .n = d->rows,
                              .slot = d->slot,
                              .start = d->start,
                              .ids = d->ids,
                              .offset = d->offset,
                              .dist = q->dist,
                              .logp_dist = q->logp_dist,
                              .seed = q->seed,
                              .stream = q->stream,
                              .counter = d->counter,
                              .next = d->next,
                              .logp = d->logp};
        rlhf_status st = rlhf__model_gen_step(m, session, &step, err);
        if (st != RLHF_OK) return st;
        take(d);
    }
}

rlhf_status rlhf__generate(const struct rlhf__model *m, rlhf_gen *session,
                           const struct rlhf__gen_request *q, struct rlhf__gen_result *out,
                           struct rlhf__error *err) {
    rlhf_status st = result_init(out, q->n, q->max_new, err);
    if (st != RLHF_OK) return st;
    struct decoder d;
    st = decoder_init(&d, q, out, err);
    if (st == RLHF_OK) st = run(&d, m, session, err);
    decoder_finish(&d);
    if (st != RLHF_OK) rlhf__gen_result_finish(out);
    return st;
}
