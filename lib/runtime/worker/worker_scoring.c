// worker_scoring.c: see worker_scoring.h.
#include "worker/worker_scoring.h"

#include "wire/batch.h"
#include "worker/worker_instance.h"

#include <stdio.h>
#include <string.h>

// ---- parts ----

// Rows [from, to) of a batch, which one worker scores.
struct part {
    uint32_t from, to;
    struct rlhf__out_places places;
};

// Split the batch into at most t->n parts of similar size, without splitting a group. Returns the
// number of parts.
static uint32_t cut(const struct rlhf__pool *t, const rlhf_reward_in *in, struct part *part) {
    uint32_t n = 0;
    for (uint32_t i = 0, at = 0; i < t->n && at < in->n; i++) {
        uint32_t to = (uint32_t)((uint64_t)in->n * (i + 1) / t->n);
        if (to <= at) continue;
        while (to < in->n && in->group[to] == in->group[to - 1])
            to++;
        part[n++] = (struct part){.from = at, .to = to};
        at = to;
    }
    return n;
}

static uint64_t tokens_of(const rlhf_reward_in *in, const struct part *p) {
    return (uint64_t)(in->offset[p->to] - in->offset[p->from]);
}

// Write a part to the worker's memory file and make the request.
static rlhf_status put_part(const struct rlhf__pool *t, struct rlhf__worker *w,
                            const rlhf_reward_in *in, const rlhf_reward_out *out, struct part *p,
                            struct rlhf__buf *frame) {
    struct rlhf__error err;
    const uint64_t bytes = rlhf__batch_bytes(in, p->from, p->to);
    const uint32_t unwritten = RLHF__UNWRITTEN;
    rlhf__out_places(p->to - p->from, tokens_of(in, p), out->token != NULL, &p->places);
    const rlhf_status st = rlhf__worker_room(w, bytes, p->places.block[RLHF__OUTS], &err);
    if (st != RLHF_OK) return rlhf__pool_fail(t, st, err.text);
    rlhf__batch_put(in, p->from, p->to, out->token != NULL, w->input);
    for (int i = 0; i < RLHF__OUTS; i++)
        memset(w->output + p->places.at[i], 0, (size_t)p->places.bytes[i]);
    for (uint32_t i = 0; i < p->to - p->from; i++)
        memcpy(w->output + p->places.at[RLHF__OUT_SEQ] + 4 * (size_t)i, &unwritten, 4);
    rlhf__wire_begin(frame, RLHF__ASK_SCORE);
    rlhf__wire_u64(frame, bytes);
    return RLHF_OK;
}

static uint32_t word_at(const char *at) {
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

// Copy the worker's output. Scores that it did not write keep the caller's values.
static void take_part(const struct rlhf__worker *w, const rlhf_reward_in *in, const struct part *p,
                      const rlhf_reward_out *out) {
    const uint32_t n = p->to - p->from;
    const char *seq = w->output + p->places.at[RLHF__OUT_SEQ];
    for (uint32_t i = 0; i < n; i++)
        if (word_at(seq + 4 * (size_t)i) != RLHF__UNWRITTEN)
            memcpy(&out->seq[p->from + i], seq + 4 * (size_t)i, sizeof *out->seq);
    if (out->token)
        memcpy(out->token + in->offset[p->from], w->output + p->places.at[RLHF__OUT_TOKEN],
               (size_t)p->places.bytes[RLHF__OUT_TOKEN]);
    memcpy(out->verdict + p->from, w->output + p->places.at[RLHF__OUT_VERDICT], n);
    memcpy(out->failed + p->from, w->output + p->places.at[RLHF__OUT_FAILED], n);
}

// ---- how parts end ----

// Returns the first row without a result. If the reward scores its rows one by one, the reward was
// working on this row when its worker terminated.
static uint32_t row_at_work(const struct rlhf__worker *w, const struct part *p) {
    uint32_t i = 0;
    const char *seq = w->output + p->places.at[RLHF__OUT_SEQ];
    while (i < p->to - p->from && word_at(seq + 4 * (size_t)i) != RLHF__UNWRITTEN)
        i++;
    return p->from + i;
}

// Record that a part failed because its worker failed. `first` is 1 for the first failed part of a
// call; the reasons of later failures are only logged.
static rlhf_status part_failed(struct rlhf__pool *t, const struct rlhf__worker *w,
                               const struct part *p, int first) {
    const uint32_t row = row_at_work(w, p);
    char why[RLHF__POOL_WHY];
    if (w->failed.code == RLHF_E_CANCELLED)
        return rlhf__pool_fail(t, RLHF_E_CANCELLED, w->failed.text);
    if (row < p->to)
        snprintf(why, sizeof why, "%.1900s at row %u", w->failed.text, row);
    else
        snprintf(why, sizeof why, "%.1900s after its last row", w->failed.text);
    if (first) t->ended_at = row;
    return rlhf__pool_fail_part(t, RLHF_E_INTERNAL, why, first);
}

// Finish one part. `before` is the status of the parts before it.
static rlhf_status end_part(struct rlhf__pool *t, struct rlhf__asked *a, const rlhf_reward_in *in,
                            const struct part *p, const rlhf_reward_out *out, rlhf_status before) {
    rlhf__ear_end(a->ear);
    const int first = before == RLHF_OK;
    if (a->worker->failed.code) return part_failed(t, a->worker, p, first);
    RLHF_TRY(rlhf__pool_said(t, a, first));
    take_part(a->worker, in, p, out);
    return rlhf__pool_keep_state(t, &a->result);
}

// ---- all ----

rlhf_status rlhf__stand_in_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct rlhf__pool *t = self;
    struct part part[RLHF__MOST_WORKERS];
    struct rlhf__asked asked[RLHF__MOST_WORKERS] = {{.done = 0}};
    const uint32_t n = cut(t, in, part);
    rlhf_status st = RLHF_OK, one;
    t->ended_at = -1;
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        struct rlhf__pool_worker *h = &t->hand[i];
        st = rlhf__pool_ready(t, h);
        if (st != RLHF_OK) break;
        asked[i].worker = h->worker;
        asked[i].ear = &h->ear;
        asked[i].may_be_left = 1;
        if (t->s->what.desc.state_version) asked[i].most = RLHF__WIRE_MAX;
        rlhf__ear_begin(&h->ear);
        st = put_part(t, h->worker, in, out, &part[i], &asked[i].frame);
    }
    if (st == RLHF_OK) {
        rlhf__ask(asked, n, t->s->rules.timeout_s, RLHF__POOL_LIMIT);
        for (uint32_t i = 0; i < n; i++) {
            one = end_part(t, &asked[i], in, &part[i], out, st);
            if (st == RLHF_OK) st = one;
        }
        for (uint32_t i = 0; st == RLHF_OK && i < n; i++) // in the order of the rows
            rlhf__ear_report(asked[i].ear);
    }
    for (uint32_t i = 0; i < n; i++)
        rlhf__asked_finish(&asked[i]);
    return st;
}
