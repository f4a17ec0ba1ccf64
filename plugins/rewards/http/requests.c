// requests.c: see requests.h.
#include "http/requests.h"

#include "http/pause.h"

#include <math.h>
#include <rlhf/log.h>

enum { POLL_MS = 200 }; // how often to check for Ctrl-C

enum state { WAITING = 0, FLYING = 1, DONE = 2 };

struct request {
    uint32_t repeats; // number of retries after a status 5xx
    int32_t state;
    double not_before; // the earliest time of a retry
};

struct work {
    struct rlhf__requests *r;
    struct request *of; // [r->n]
    uint32_t open;      // number of requests that are not DONE
    uint32_t from;      // all requests before this one have left WAITING
    struct rlhf__pause pause;
    char last_why[RLHF__WHY]; // reason of the latest failed attempt
};

// ---- the end of an attempt ----

static void close_request(struct work *w, uint32_t at) {
    w->of[at].state = DONE;
    w->open--;
}

static void lose(struct work *w, uint32_t at, const char *why) {
    w->r->lose(w->r->ctx, at, why);
    close_request(w, at);
}

static void wait_again(struct work *w, uint32_t at) {
    w->of[at].state = WAITING;
    if (at < w->from) w->from = at;
    w->r->repeats++;
}

static void service_is_up(struct work *w, double now) {
    const struct rlhf__http_client *c = w->r->client;
    if (w->pause.failures) w->r->paused += now - w->pause.since;
    const double lasted = rlhf__pause_answered(&w->pause, now);
    if (lasted > 0)
        rlhf_logf(c->host, RLHF_LOG_INFO, "%s answers again, after %.0f s", c->target.shown,
                  lasted);
}

static rlhf_status settle(struct work *w, const struct rlhf__http_slot *s, enum rlhf__http_end end,
                          const char *why, double retry_after) {
    struct rlhf__http_client *c = w->r->client;
    struct request *q = &w->of[s->request];
    const double now = rlhf__http_now();
    struct rlhf__pause own = {.failures = q->repeats, .since = now, .last_failed = s->began};
    if (end == RLHF__HTTP_ANSWERED || end == RLHF__HTTP_ERROR) service_is_up(w, now);
    switch (end) {
    case RLHF__HTTP_ONWARD:
        break;
    case RLHF__HTTP_ANSWERED:
        RLHF_TRY(w->r->take(w->r->ctx, s->request, &s->answer));
        close_request(w, s->request);
        break;
    case RLHF__HTTP_REFUSED:
        lose(w, s->request, why);
        break;
    case RLHF__HTTP_ERROR: // the service is up but cannot handle this request
        if (q->repeats == c->o->repeats) {
            lose(w, s->request, why);
            break;
        }
        rlhf__pause_failed(&own, c->o, &c->jitter, s->began, now, retry_after);
        q->not_before = own.gate;
        q->repeats++;
        wait_again(w, s->request);
        break;
    case RLHF__HTTP_DOWN:
        rlhf__pause_failed(&w->pause, c->o, &c->jitter, s->began, now, retry_after);
        snprintf(w->last_why, sizeof w->last_why, "%s", why);
        wait_again(w, s->request);
        break;
    }
    return RLHF_OK;
}

// ---- the loop ----

// Returns the first request that may be sent now. If none may be sent yet, returns n, and sets
// *when to the time at which to call this function again.
static uint32_t next_request(struct work *w, double now, double *when) {
    const uint32_t n = w->r->n, most = w->pause.failures ? 1 : w->r->client->n_slots;
    *when = now + 1;
    if (w->r->client->n_flying >= most) return n;
    if (now < w->pause.gate) {
        *when = w->pause.gate;
        return n;
    }
    while (w->from < n && w->of[w->from].state != WAITING)
        w->from++;
    for (uint32_t at = w->from; at < n; at++) {
        if (w->of[at].state != WAITING) continue;
        if (w->of[at].not_before <= now) return at;
        *when = fmin(*when, w->of[at].not_before);
    }
    return n;
}

static rlhf_status send_request(struct work *w, uint32_t at) {
    struct rlhf__http_client *c = w->r->client;
    struct rlhf__http_slot *s = c->slot;
    while (s->flying)
        s++;
    s->body.len = 0;
    s->body.full = 0;
    RLHF_TRY(w->r->write(w->r->ctx, at, &s->body));
    if (s->body.full) return c->host->fail(c->host, RLHF_E_NOMEM, "out of memory for a request");
    s->request = at;
    RLHF_TRY(rlhf__http_send(c, s));
    w->of[at].state = FLYING;
    w->r->sent++;
    return RLHF_OK;
}

static void look_at_pause(struct work *w, double now) {
    const struct rlhf__http_client *c = w->r->client;
    char why[RLHF__WHY];
    if (rlhf__pause_over(&w->pause, c->o, now)) {
        snprintf(why, sizeof why, "%.300s, for patience_s=%g", w->last_why, c->o->patience_s);
        for (uint32_t at = 0; at < w->r->n; at++)
            if (w->of[at].state == WAITING) lose(w, at, why);
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
    while ((s = rlhf__http_next(w->r->client, &end, why, &retry_after)))
        RLHF_TRY(settle(w, s, end, why, retry_after));
    return RLHF_OK;
}

static rlhf_status work(struct work *w) {
    struct rlhf__http_client *c = w->r->client;
    while (w->open) {
        if (c->host->cancelled(c->host)) return RLHF_E_CANCELLED;
        const double now = rlhf__http_now();
        double when;
        look_at_pause(w, now);
        for (uint32_t at; (at = next_request(w, now, &when)) < w->r->n;)
            RLHF_TRY(send_request(w, at));
        const double ms = fmin(fmax((when - now) * 1000, 1), POLL_MS);
        if (w->open) rlhf__http_wait(c, (int)ms);
        RLHF_TRY(collect(w));
    }
    return RLHF_OK;
}

rlhf_status rlhf__requests_send(struct rlhf__requests *r) {
    const rlhf_host *host = r->client->host;
    struct work w = {.r = r, .open = r->n};
    if (!r->n) return RLHF_OK;
    w.of = host->alloc(host, r->n * sizeof *w.of);
    if (!w.of) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    const rlhf_status st = work(&w);
    rlhf__http_drop(r->client);
    if (w.pause.failures) r->paused += rlhf__http_now() - w.pause.since;
    host->free(host, w.of);
    return st;
}
