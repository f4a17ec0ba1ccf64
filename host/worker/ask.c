// ask.c: see ask.h.
#include "worker/ask.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ASKED = 64, PER = 3, LONGEST_PRINTED = 4096, MOST_FRAMES = 100000 };
#define TICK  0.2 // seconds after which the user's wish to stop is passed on
#define LEAVE 1.0 // seconds after that in which a call may still end as ever

void rlhf__asked_finish(struct rlhf__asked *a) {
    rlhf__buf_free(&a->frame);
    rlhf__buf_free(&a->answer);
    free(a->why);
    memset(a, 0, sizeof *a);
}

// ---- what comes ----

// Lines that are whole, and the last one where the worker has ended.
static void take_printed(struct rlhf__asked *a) {
    struct rlhf__worker *w = a->worker;
    char chunk[4096];
    for (int k = 0; w->noise >= 0 && k < 64; k++) {
        const ssize_t n = read(w->noise, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
            close(w->noise);
            w->noise = -1;
        }
        for (ssize_t i = 0; i < n; i++) {
            if (chunk[i] != '\n' && w->printed.len < LONGEST_PRINTED) {
                rlhf__buf_putc(&w->printed, chunk[i]);
                continue;
            }
            if (w->printed.len) rlhf__ear_printed(a->ear, w->printed.data, w->printed.len);
            rlhf__buf_clear(&w->printed);
        }
        if (n <= 0) break;
    }
}

static void end_printed(struct rlhf__asked *a) {
    struct rlhf__worker *w = a->worker;
    take_printed(a);
    if (w->printed.len) rlhf__ear_printed(a->ear, w->printed.data, w->printed.len);
    rlhf__buf_clear(&w->printed);
}

static void gone(struct rlhf__asked *a) {
    rlhf__worker_gone(a->worker);
    end_printed(a);
    a->done = 1;
}

// What the plugin calls. Returns the seconds that the host worked for it, or -1 when it is gone.
static double take_calls(struct rlhf__asked *a) {
    struct rlhf__worker *w = a->worker;
    struct rlhf__buf reply = RLHF__BUF_INIT;
    struct rlhf__wire in;
    const double from = rlhf__seconds();
    size_t bytes;
    int got = 0, bad = 0;
    rlhf__channel_fill(&w->call);
    for (int k = 0; !bad && k < MOST_FRAMES; k++) {
        got = rlhf__channel_front(&w->call, &in, &bytes);
        if (got <= 0) break;
        bad = rlhf__ear_call(a->ear, in, &reply) != 0;
        rlhf__channel_pop(&w->call, bytes);
        rlhf__buf_put(&w->call.out, reply.data, reply.len);
    }
    rlhf__channel_flush(&w->call);
    rlhf__buf_free(&reply);
    return bad || got < 0 ? -1 : rlhf__seconds() - from;
}

// The answer, when it is there: taken apart. -1 when that is none.
static int take_answer(struct rlhf__asked *a) {
    struct rlhf__channel *c = &a->worker->ask;
    struct rlhf__wire in;
    size_t bytes;
    rlhf__channel_fill(c);
    const int got = rlhf__channel_front(c, &in, &bytes);
    if (got <= 0) return got < 0 || c->ended ? -1 : 0;
    if (in.kind != RLHF__ASK_ANSWER || c->in.len != bytes) return -1;
    a->answer = c->in; // whole: there is one answer to a request
    c->in = (struct rlhf__buf)RLHF__BUF_INIT;
    a->result = in;
    a->status = (rlhf_status)rlhf__wire_get_u32(&a->result);
    const rlhf_str why = rlhf__wire_get_text(&a->result);
    a->why = strndup(why.ptr, (size_t)(why.len < 2000 ? why.len : 2000));
    if (a->result.bad || !a->why) return -1;
    a->done = 1;
    return 1;
}

// ---- waiting ----

struct wait {
    struct rlhf__asked *a;
    size_t n;
    double until, timeout; // until: 0 = for ever
    double asked_to_stop;  // when; 0: not yet
    const char *limit;
};

static size_t put_polled(const struct wait *w, struct pollfd *p) {
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct rlhf__worker *k = w->a[i].worker;
        if (w->a[i].done) continue;
        const short ask = (short)(POLLIN | (k->ask.out.len ? POLLOUT : 0));
        const short call = (short)(POLLIN | (k->call.out.len ? POLLOUT : 0));
        p[n++] = (struct pollfd){k->ask.fd, ask, 0};
        // One that is at its end would be ready for ever.
        p[n++] = (struct pollfd){k->call.ended ? -1 : k->call.fd, call, 0};
        p[n++] = (struct pollfd){k->noise, POLLIN, 0};
    }
    return n;
}

static void pass_on(struct wait *w) {
    for (size_t i = 0; i < w->n; i++) {
        const rlhf_host *api = w->a[i].ear->api;
        struct rlhf__batch_note *note = rlhf__worker_note(w->a[i].worker);
        const int stop = api && api->cancelled(api);
        atomic_store(&note->cancelled, stop ? 1u : 0u);
        if (stop && w->asked_to_stop <= 0) w->asked_to_stop = rlhf__seconds();
    }
}

static void end_one(struct rlhf__asked *a, rlhf_status code, const char *why) {
    rlhf__worker_fail(a->worker, code, why);
    end_printed(a);
    a->done = 1;
}

// Whoever hangs would keep a run alive that is to end.
static void leave(const struct wait *w, double now) {
    if (w->asked_to_stop <= 0 || now < w->asked_to_stop + LEAVE) return;
    for (size_t i = 0; i < w->n; i++)
        if (!w->a[i].done && w->a[i].may_be_left)
            end_one(&w->a[i], RLHF_E_CANCELLED, "stopped; its worker was ended");
}

static void too_long(const struct wait *w) {
    for (size_t i = 0; i < w->n; i++) {
        struct rlhf__asked *a = &w->a[i];
        char why[160];
        if (a->done) continue;
        snprintf(why, sizeof why, "it took longer than %g s (%s); its worker was ended", w->timeout,
                 w->limit);
        end_one(a, RLHF_E_INTERNAL, why);
    }
}

// One look at everything that has come. Returns how many have not answered.
static size_t look(struct wait *w) {
    size_t left = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct rlhf__asked *a = &w->a[i];
        if (a->done) continue;
        rlhf__channel_flush(&a->worker->ask);
        rlhf__channel_flush(&a->worker->call);
        take_printed(a);
        const int answered = take_answer(a);
        // What it called before it answered counts to this call.
        const double worked = take_calls(a);
        if (answered > 0) take_printed(a);
        if (worked > 0 && w->until > 0) w->until += worked;
        if (answered < 0 || worked < 0) gone(a);
        left += !a->done;
    }
    return left;
}

static void wait_all(struct wait *w) {
    struct pollfd p[PER * MOST_ASKED];
    while (look(w) > 0) {
        const double now = rlhf__seconds();
        if (w->until > 0 && now > w->until) {
            too_long(w);
            return;
        }
        pass_on(w);
        leave(w, now);
        double most = w->until > 0 && w->until - now < TICK ? w->until - now : TICK;
        poll(p, (nfds_t)put_polled(w, p), (int)(1000 * most) + 1);
    }
}

rlhf_status rlhf__ask(struct rlhf__asked *a, size_t n, double timeout_s, const char *limit) {
    struct wait w = {.a = a, .n = n, .timeout = timeout_s, .limit = limit};
    if (timeout_s > 0) w.until = rlhf__seconds() + timeout_s;
    rlhf_status st = n > MOST_ASKED ? RLHF_E_INTERNAL : RLHF_OK;
    for (size_t i = 0; i < n; i++) {
        struct rlhf__worker *k = a[i].worker;
        if (k->failed.code) {
            a[i].done = 1;
            continue;
        }
        rlhf__wire_end(&a[i].frame);
        rlhf__buf_put(&k->ask.out, a[i].frame.data, a[i].frame.len);
        if (a[i].frame.bad || k->ask.out.bad)
            rlhf__worker_fail(k, RLHF_E_NOMEM, "out of memory for a request to its worker");
        a[i].done = k->failed.code != 0;
    }
    pass_on(&w);
    if (st == RLHF_OK) wait_all(&w);
    for (size_t i = 0; i < n && st == RLHF_OK; i++)
        if (a[i].worker->failed.code) st = a[i].worker->failed.code;
    return st;
}
