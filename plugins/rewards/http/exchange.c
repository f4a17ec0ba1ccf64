// exchange.c: see exchange.h.
#include "http/exchange.h"

#include "http/body.h"

#include <math.h>
#include <rlhf/log.h>

enum { POLL_MS = 200 }; // how often to check for Ctrl-C

enum batch_state { WAITING = 0, FLYING = 1, DONE = 2 };

// The rows of one request.
struct batch {
    uint32_t first, n;
    uint32_t repeats; // number of retries after a status 5xx
    int32_t state;
    double not_before;         // the earliest time of a retry
    struct rlhf__tally *tally; // metrics of its answer; NULL: it has none
};

struct work {
    struct rlhf__exchange *x;
    struct batch *batch; // [n]
    uint32_t n, open;    // open: number of batches that are not DONE
    uint32_t from;       // all batches before this one have left WAITING
    struct rlhf__pause pause;
    char last_why[RLHF__WHY]; // reason of the latest failed attempt
};

static const rlhf_host *host_of(const struct work *w) { return w->x->client->host; }

static rlhf_status cut(struct work *w) {
    struct rlhf__exchange *x = w->x;
    const uint32_t size = (uint32_t)x->client->o->batch;
    w->n = w->open = (x->in->n + size - 1) / size;
    w->batch = host_of(w)->alloc(host_of(w), w->n * sizeof *w->batch);
    if (!w->batch) return host_of(w)->fail(host_of(w), RLHF_E_NOMEM, "out of memory");
    for (uint32_t b = 0; b < w->n; b++) {
        const uint32_t first = b * size, left = x->in->n - first;
        w->batch[b] = (struct batch){.first = first, .n = left < size ? left : size};
    }
    return RLHF_OK;
}

// ---- results of a batch ----

// Keeps the failure of the first row, even if another failure happened earlier.
static void note_failure(struct work *w, uint32_t row, const char *why) {
    struct rlhf__exchange *x = w->x;
    if (row >= x->first_failed) return;
    x->first_failed = row;
    snprintf(x->why, sizeof x->why, "%s", why);
}

static void close_batch(struct work *w, struct batch *b) {
    b->state = DONE;
    w->open--;
}

static void fail_batch(struct work *w, struct batch *b, const char *why) {
    memset(w->x->failed + b->first, 1, b->n);
    memset(w->x->verdict + b->first, RLHF_VERDICT_NONE, b->n);
    for (uint32_t i = 0; i < b->n; i++)
        w->x->seq[b->first + i] = NAN;
    note_failure(w, b->first, why);
    close_batch(w, b);
}

static void answered(struct work *w) {
    const double now = rlhf__http_now();
    if (w->pause.failures) w->x->paused += now - w->pause.since;
    const double lasted = rlhf__pause_answered(&w->pause, now);
    if (lasted > 0)
        rlhf_logf(host_of(w), RLHF_LOG_INFO, "%s answers again, after %.0f s",
                  w->x->client->target.shown, lasted);
}

static rlhf_status read_answer(struct work *w, struct batch *b, const struct rlhf__bytes *text) {
    struct rlhf__exchange *x = w->x;
    char why[RLHF__WHY];
    const struct rlhf__reply reply = {.form = x->client->o->form,
                                      .n = b->n,
                                      .seq = x->seq + b->first,
                                      .verdict = x->verdict + b->first,
                                      .failed = x->failed + b->first,
                                      .tally = &b->tally};
    answered(w);
    const rlhf_status st = rlhf__reply_read(&reply, host_of(w), text->data, text->len, why);
    if (st == RLHF_E_NOMEM) return st;
    if (st < 0) {
        fail_batch(w, b, why);
        return RLHF_OK;
    }
    for (uint32_t i = b->first; i < b->first + b->n; i++) {
        if (!x->failed[i]) continue;
        x->seq[i] = NAN;
        note_failure(w, i, why);
    }
    close_batch(w, b);
    return RLHF_OK;
}

static void wait_again(struct work *w, struct batch *b) {
    const uint32_t at = (uint32_t)(b - w->batch);
    b->state = WAITING;
    if (at < w->from) w->from = at;
    w->x->repeats++;
}

static rlhf_status settle(struct work *w, const struct rlhf__http_slot *s, enum rlhf__http_end end,
                          const char *why, double retry_after) {
    const struct rlhf__http_options *o = w->x->client->o;
    struct batch *b = &w->batch[s->batch];
    const double now = rlhf__http_now();
    struct rlhf__pause own = {.failures = b->repeats, .since = now, .last_failed = s->began};
    switch (end) {
    case RLHF__HTTP_ONWARD:
        return RLHF_OK;
    case RLHF__HTTP_ANSWERED:
        return read_answer(w, b, &s->answer);
    case RLHF__HTTP_REFUSED:
        fail_batch(w, b, why);
        return RLHF_OK;
    case RLHF__HTTP_ERROR:
        answered(w); // the service is up but cannot handle this request
        if (b->repeats == o->repeats) {
            fail_batch(w, b, why);
            return RLHF_OK;
        }
        rlhf__pause_failed(&own, o, w->x->jitter, s->began, now, retry_after);
        b->not_before = own.gate;
        b->repeats++;
        break;
    case RLHF__HTTP_DOWN:
        rlhf__pause_failed(&w->pause, o, w->x->jitter, s->began, now, retry_after);
        snprintf(w->last_why, sizeof w->last_why, "%s", why);
        break;
    }
    wait_again(w, b);
    return RLHF_OK;
}

// ---- the loop ----

// Returns the first batch that may be sent now. If all must wait, returns NULL and sets *when to
// the time of the next attempt.
static struct batch *next_batch(struct work *w, double now, double *when) {
    const uint32_t most = w->pause.failures ? 1 : w->x->client->n_slots;
    *when = now + 1;
    if (w->x->client->n_flying >= most) return NULL;
    if (now < w->pause.gate) {
        *when = w->pause.gate;
        return NULL;
    }
    while (w->from < w->n && w->batch[w->from].state != WAITING)
        w->from++;
    for (uint32_t b = w->from; b < w->n; b++) {
        if (w->batch[b].state != WAITING) continue;
        if (w->batch[b].not_before <= now) return &w->batch[b];
        *when = fmin(*when, w->batch[b].not_before);
    }
    return NULL;
}

static rlhf_status send_batch(struct work *w, struct batch *b) {
    struct rlhf__http_client *c = w->x->client;
    struct rlhf__http_slot *s = c->slot;
    while (s->flying)
        s++;
    s->body.len = 0;
    s->body.full = 0;
    RLHF_TRY(rlhf__body_write(&s->body, c->o, w->x->in, b->first, b->n));
    s->batch = (uint32_t)(b - w->batch);
    RLHF_TRY(rlhf__http_send(c, s));
    b->state = FLYING;
    w->x->requests++;
    return RLHF_OK;
}

static void look_at_pause(struct work *w, double now) {
    const struct rlhf__http_client *c = w->x->client;
    char why[RLHF__WHY];
    if (rlhf__pause_over(&w->pause, c->o, now)) {
        snprintf(why, sizeof why, "%.300s, for patience_s=%g", w->last_why, c->o->patience_s);
        for (uint32_t b = 0; b < w->n; b++)
            if (w->batch[b].state == WAITING) fail_batch(w, &w->batch[b], why);
    } else if (rlhf__pause_line_due(&w->pause, now))
        rlhf_logf(c->host, RLHF_LOG_WARN,
                  "%s does not answer: %.300s; the run waits for it, at most %.0f s more",
                  c->target.shown, w->last_why, rlhf__pause_left(&w->pause, c->o, now));
}

static rlhf_status collect(struct work *w) {
    enum rlhf__http_end end;
    char why[RLHF__WHY];
    double retry_after;
    struct rlhf__http_slot *s;
    while ((s = rlhf__http_next(w->x->client, &end, why, &retry_after)))
        RLHF_TRY(settle(w, s, end, why, retry_after));
    return RLHF_OK;
}

static rlhf_status work(struct work *w) {
    const rlhf_host *host = host_of(w);
    while (w->open) {
        if (host->cancelled(host)) return RLHF_E_CANCELLED;
        const double now = rlhf__http_now();
        double when;
        look_at_pause(w, now);
        for (struct batch *b; (b = next_batch(w, now, &when));)
            RLHF_TRY(send_batch(w, b));
        const double ms = fmin(fmax((when - now) * 1000, 1), POLL_MS);
        if (w->open) rlhf__http_wait(w->x->client, (int)ms);
        RLHF_TRY(collect(w));
    }
    return RLHF_OK;
}

rlhf_status rlhf__exchange(struct rlhf__exchange *x) {
    struct work w = {.x = x};
    x->first_failed = x->in->n;
    rlhf_status st = cut(&w);
    if (st == RLHF_OK) st = work(&w);
    rlhf__http_drop(x->client);
    if (w.pause.failures) x->paused += rlhf__http_now() - w.pause.since;
    for (uint32_t b = 0; w.batch && b < w.n; b++) {
        struct rlhf__tally *t = w.batch[b].tally;
        if (st == RLHF_OK && t) rlhf__tally_merge(x->tally, t);
        if (t) host_of(&w)->free(host_of(&w), t);
    }
    if (w.batch) host_of(&w)->free(host_of(&w), w.batch);
    return st;
}
