// ahead.c: see ahead.h.
#include "feed/ahead.h"

#include "base/clock.h"
#include "base/file.h"

#include <stdlib.h>

#define FILE_NAME "state/ahead.rows"

struct rlhf__ahead {
    struct rlhf__sampler *sampler; // NULL: actors sample the batches
    struct rlhf__actors *actors;   // borrowed
    // the batch in flight
    struct rlhf__sampled batch;
    struct rlhf__rows_about about;
    int32_t begun, ready;
    struct rlhf__ahead_idle idle; // sums over this process's phases
    // The complete batch in the format of state/ahead.rows; empty if none exists.
    // rlhf__ahead_prepare fills `next` shortly before a phase boundary. At the boundary,
    // rlhf__ahead_note moves the bytes from `next` to `noted`. rlhf__ahead_save writes `noted` to
    // the file.
    struct rlhf__buf noted, next;
};

rlhf_status rlhf__ahead_open(struct rlhf__sampler *sampler, struct rlhf__ahead **out,
                             struct rlhf__error *err) {
    struct rlhf__ahead *a = *out = calloc(1, sizeof *a);
    if (!a) {
        rlhf__sampler_close(sampler);
        return RLHF__NOMEM(err, "out of memory for rollout.ahead");
    }
    a->sampler = sampler;
    a->noted = a->next = (struct rlhf__buf)RLHF__BUF_INIT;
    return RLHF_OK;
}

void rlhf__ahead_close(struct rlhf__ahead *a) {
    if (!a) return;
    rlhf__sampler_close(a->sampler);
    rlhf__rows_finish(&a->batch.rows);
    rlhf__buf_finish(&a->noted);
    rlhf__buf_finish(&a->next);
    free(a);
}

void rlhf__ahead_act(struct rlhf__ahead *a, struct rlhf__actors *actors) { a->actors = actors; }

struct rlhf__sampler *rlhf__ahead_sampler(const struct rlhf__ahead *a) {
    return a->sampler;
}
struct rlhf__ahead_idle rlhf__ahead_idle(const struct rlhf__ahead *a) {
    return a->idle;
}
int rlhf__ahead_ready(const struct rlhf__ahead *a) { return a->ready; }

// ---- a batch ----

rlhf_status rlhf__ahead_begin(struct rlhf__ahead *a, const struct rlhf__rollout_request *q,
                              int64_t *row, struct rlhf__error *err) {
    a->about = (struct rlhf__rows_about){.first = q->first};
    RLHF_TRY(a->actors ? rlhf__actors_begin(a->actors, q, row, err)
                       : rlhf__sampler_begin(a->sampler, q, row, err));
    a->begun = 1;
    return RLHF_OK;
}

rlhf_status rlhf__ahead_wait(struct rlhf__ahead *a, double phase_start,
                             struct rlhf__ahead_idle *idle, struct rlhf__error *err) {
    *idle = (struct rlhf__ahead_idle){0};
    if (!a->begun) return RLHF_OK;
    const double from = rlhf__seconds();
    a->begun = 0;
    RLHF_TRY(a->actors ? rlhf__actors_wait(a->actors, &a->batch, err)
                       : rlhf__sampler_wait(a->sampler, &a->batch, err));
    const double now = rlhf__seconds();
    a->about.tokens = a->batch.tokens;
    a->ready = 1;
    *idle = (struct rlhf__ahead_idle){.trainer = now - from,
                                      .rollouter = now - phase_start - a->batch.seconds,
                                      .all = now - phase_start};
    a->idle.trainer += idle->trainer;
    a->idle.rollouter += idle->rollouter;
    a->idle.all += idle->all;
    return RLHF_OK;
}

rlhf_status rlhf__ahead_take(struct rlhf__ahead *a, uint64_t first, struct rlhf__experience *x,
                             struct rlhf__error *err) {
    if (a->about.first != first)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the responses in flight begin with number %llu of the run, but the "
                          "phase's first is %llu: " FILE_NAME " is of another checkpoint",
                          (unsigned long long)a->about.first, (unsigned long long)first);
    a->ready = 0;
    x->rows = a->batch.rows;
    x->tokens = a->about.tokens;
    x->drawn = x->rows.n;
    x->sampled = rlhf__rows_response_tokens(&x->rows, 0, x->rows.n);
    x->seconds = a->batch.seconds;
    a->batch = (struct rlhf__sampled){.tokens = 0};
    return RLHF_OK;
}

// ---- checkpoints ----

rlhf_status rlhf__ahead_prepare(struct rlhf__ahead *a, struct rlhf__error *err) {
    rlhf__buf_finish(&a->next);
    return a->ready ? rlhf__rows_put(&a->batch.rows, &a->about, &a->next, err) : RLHF_OK;
}

void rlhf__ahead_note(struct rlhf__ahead *a) {
    rlhf__buf_finish(&a->noted);
    a->noted = a->next;
    a->next = (struct rlhf__buf)RLHF__BUF_INIT;
}

rlhf_status rlhf__ahead_save(const struct rlhf__ahead *a, const struct rlhf__folder *checkpoint,
                             struct rlhf__error *err) {
    if (a->noted.len == 0) return RLHF_OK; // before the first phase
    return rlhf__file_write(checkpoint, FILE_NAME, a->noted.data, a->noted.len, err);
}

rlhf_status rlhf__ahead_load(struct rlhf__ahead *a, const char *dir,
                             const struct rlhf__rows_fit *fit, struct rlhf__error *err) {
    char path[4400];
    RLHF_TRY(rlhf__rows_read(rlhf__path_in(path, sizeof path, dir, FILE_NAME), fit, &a->batch.rows,
                             &a->about, err));
    a->ready = 1;
    return RLHF_OK;
}
