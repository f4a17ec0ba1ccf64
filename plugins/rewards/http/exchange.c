// exchange.c: see exchange.h.
#include "http/exchange.h"

#include "http/body.h"

#include <math.h>

struct work {
    struct rlhf__http_exchange *x;
    uint32_t size, n;           // most rows of a request; number of requests
    struct rlhf__tally **tally; // [n] metrics of each answer, NULL = none
};

static uint32_t first_of(const struct work *w, uint32_t at) { return at * w->size; }

static uint32_t count_of(const struct work *w, uint32_t at) {
    const uint32_t left = w->x->in->n - first_of(w, at);
    return left < w->size ? left : w->size;
}

static rlhf_status write_rows(void *ctx, uint32_t at, struct rlhf__bytes *body) {
    const struct work *w = ctx;
    return rlhf__body_write(body, w->x->client->o, w->x->in, first_of(w, at), count_of(w, at));
}

// Of all failures, keeps the one of the row with the lowest index.
static void note_failure(const struct work *w, uint32_t row, const char *why) {
    struct rlhf__http_exchange *x = w->x;
    if (row >= x->first_failed) return;
    x->first_failed = row;
    snprintf(x->why, sizeof x->why, "%s", why);
}

static void lose_rows(void *ctx, uint32_t at, const char *why) {
    const struct work *w = ctx;
    const uint32_t first = first_of(w, at), n = count_of(w, at);
    memset(w->x->failed + first, 1, n);
    memset(w->x->verdict + first, RLHF_VERDICT_NONE, n);
    for (uint32_t i = first; i < first + n; i++)
        w->x->seq[i] = NAN;
    note_failure(w, first, why);
}

static rlhf_status take_rewards(void *ctx, uint32_t at, const struct rlhf__bytes *text) {
    const struct work *w = ctx;
    const struct rlhf__http_exchange *x = w->x;
    const uint32_t first = first_of(w, at);
    char why[RLHF__WHY];
    const struct rlhf__reply reply = {.form = x->client->o->form,
                                      .n = count_of(w, at),
                                      .seq = x->seq + first,
                                      .verdict = x->verdict + first,
                                      .failed = x->failed + first,
                                      .tally = &w->tally[at]};
    const rlhf_status st = rlhf__reply_read(&reply, x->client->host, text->data, text->len, why);
    if (st == RLHF_E_NOMEM) return st;
    if (st < 0) lose_rows(ctx, at, why);
    for (uint32_t i = first; st == RLHF_OK && i < first + reply.n; i++) {
        if (!x->failed[i]) continue;
        x->seq[i] = NAN;
        note_failure(w, i, why);
    }
    return RLHF_OK;
}

rlhf_status rlhf__exchange(struct rlhf__http_exchange *x) {
    const rlhf_host *host = x->client->host;
    const uint32_t size = (uint32_t)x->client->o->batch;
    struct work w = {.x = x, .size = size, .n = (x->in->n + size - 1) / size};
    x->first_failed = x->in->n;
    w.tally = host->alloc(host, w.n * sizeof(struct rlhf__tally *));
    if (!w.tally) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    x->requests = (struct rlhf__requests){.client = x->client,
                                          .ctx = &w,
                                          .write = write_rows,
                                          .take = take_rewards,
                                          .lose = lose_rows,
                                          .n = w.n};
    const rlhf_status st = rlhf__requests_send(&x->requests);
    for (uint32_t at = 0; at < w.n; at++) {
        if (st == RLHF_OK && w.tally[at]) rlhf__tally_merge(x->tally, w.tally[at]);
        if (w.tally[at]) host->free(host, w.tally[at]);
    }
    host->free(host, w.tally);
    return st;
}
