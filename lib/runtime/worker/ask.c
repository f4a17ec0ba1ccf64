// ask.c: see ask.h.
#include "worker/ask.h"

#include "base/clock.h"
#include "supervise/warden.h"
#include "worker/upcall_services.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ASKED = 64, PER = 3, LONGEST_PRINTED = 4096 };
#define TICK  0.2 // seconds until a worker learns that the user wants to stop
#define LEAVE 1.0 // seconds after that during which a call may still end normally
#define SAY   30  // after this many seconds without an answer, a line is logged
#define SLICE 0.1 // seconds to serve one worker's calls before checking the others and the time

void rlhf__asked_finish(struct rlhf__asked *a) {
    rlhf__buf_finish(&a->frame);
    rlhf__buf_finish(&a->answer);
    free(a->why);
    memset(a, 0, sizeof *a);
}

// ---- what arrives from a worker ----

// Take what the worker has printed, and pass on the complete lines.
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
        if (n > 0) a->ear->bytes += (uint64_t)n;
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

static void end_one(struct rlhf__asked *a, rlhf_status code, const char *why) {
    rlhf__worker_fail(a->worker, code, why);
    end_printed(a);
    a->done = 1;
}

// Terminate a worker that sent a malformed message; `got` is the result of rlhf__channel_front.
static void end_liar(struct rlhf__asked *a, int got, uint64_t most) {
    char why[128];
    if (got == -2)
        snprintf(why, sizeof why,
                 "it sent a message of more than %llu MiB to the host; its worker was ended",
                 (unsigned long long)(most >> 20));
    else
        snprintf(why, sizeof why, "it sent what no worker sends; its worker was ended");
    end_one(a, RLHF_E_INTERNAL, why);
}

static void end_flood(struct rlhf__asked *a) {
    char why[160];
    snprintf(why, sizeof why,
             "in one call it sent more than %d messages, or %d MiB of lines; its worker was ended",
             RLHF__MOST_MESSAGES, RLHF__MOST_TEXT_MIB);
    end_one(a, RLHF_E_INTERNAL, why);
}

// Get the plugin's next call, if it has arrived. After the answer has arrived, the channel is read
// one more time, because calls may have been sent before the answer.
static int next_call(struct rlhf__asked *a, struct rlhf__wire *in, size_t *bytes) {
    struct rlhf__channel *c = &a->worker->call;
    // An unread reply stays in memory, so do not make another one until the worker has read it.
    if (c->out.len) return 0;
    const int got = rlhf__channel_front(c, in, bytes);
    if (got != 0 || a->filled) return got;
    rlhf__channel_fill(c);
    a->filled = a->answered != 0;
    return rlhf__channel_front(c, in, bytes);
}

// Serve calls of the plugin until none is waiting or SLICE seconds have passed. Adds to *worked the
// time that the host's models and tokenizers spent on these calls. Returns 1 if more calls are
// waiting.
static int take_calls(struct rlhf__asked *a, double *worked) {
    struct rlhf__channel *c = &a->worker->call;
    struct rlhf__buf reply = RLHF__BUF_INIT;
    struct rlhf__wire in;
    const double from = rlhf__seconds();
    double now = from;
    size_t bytes;
    int got = 1, flood = 0;
    while (got > 0 && !flood && now < from + SLICE && (got = next_call(a, &in, &bytes)) > 0) {
        const double began = now;
        const int bad = rlhf__ear_call(a->ear, in, &reply) != 0;
        rlhf__channel_pop(c, bytes);
        rlhf__buf_put(&c->out, reply.data, reply.len);
        rlhf__channel_flush(c);
        now = rlhf__seconds();
        if (in.kind > RLHF__CALL_METRIC) *worked += now - began;
        if (bad) got = -1;
        flood = rlhf__ear_flooded(a->ear);
    }
    rlhf__buf_finish(&reply);
    if (got < 0)
        end_liar(a, got, c->most);
    else if (flood)
        end_flood(a);
    return got > 0 && !flood;
}

// If the answer has arrived, take it and read its status and text.
static void take_answer(struct rlhf__asked *a) {
    struct rlhf__channel *c = &a->worker->ask;
    struct rlhf__wire in;
    size_t bytes;
    // First check whether the worker has terminated, then read its answer. In the opposite order,
    // the worker could answer and terminate between the two steps, and its answer would be lost. A
    // socket that is still open does not show that the worker is alive: if the warden was killed,
    // processes that the worker started may still hold the socket open.
    const int over = rlhf__ward_over(&a->worker->ward);
    rlhf__channel_fill(c);
    const int got = rlhf__channel_front(c, &in, &bytes);
    if (got == 0) {
        a->answered = c->ended || over ? -1 : 0;
        return;
    }
    if (got < 0 || in.kind != RLHF__ASK_ANSWER || c->in.len != bytes) {
        end_liar(a, got, c->most);
        return;
    }
    a->answer = c->in; // takes the whole buffer: a request has only one answer
    c->in = (struct rlhf__buf)RLHF__BUF_INIT;
    a->result = in;
    a->status = (rlhf_status)rlhf__wire_get_u32(&a->result);
    const rlhf_str why = rlhf__wire_get_text(&a->result);
    a->why = strndup(why.ptr, (size_t)(why.len < 2000 ? why.len : 2000));
    a->answered = 1;
    if (a->result.bad)
        end_liar(a, 1, c->most);
    else if (!a->why)
        end_one(a, RLHF_E_NOMEM, "out of memory for an answer of its worker");
}

// ---- waiting ----

struct wait {
    struct rlhf__asked *a;
    size_t n;
    double until, timeout; // the deadline, and the limit in seconds; 0 = none
    double asked_to_stop;  // time at which the user asked to stop; 0 = not yet
    double since, say;     // since: start of the wait; say: seconds of waiting until the next line
    const char *limit;
};

static size_t put_polled(const struct wait *w, struct pollfd *p) {
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct rlhf__worker *k = w->a[i].worker;
        if (w->a[i].done) continue;
        const short ask = (short)(POLLIN | (k->ask.out.len ? POLLOUT : 0));
        // send the pending reply before reading the next call
        const short call = k->call.out.len ? POLLOUT : POLLIN;
        p[n++] = (struct pollfd){k->ask.fd, ask, 0};
        // Do not poll a closed channel: it would always be ready.
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

// Terminate workers that go on after the user asked to stop, because they would keep the run alive.
static void leave(const struct wait *w, double now) {
    if (w->asked_to_stop <= 0 || now < w->asked_to_stop + LEAVE) return;
    for (size_t i = 0; i < w->n; i++)
        if (!w->a[i].done && w->a[i].may_be_left)
            end_one(&w->a[i], RLHF_E_CANCELLED, "stopped; its worker was ended");
}

// Logs that workers have not answered. If the time limit is below 2 * SAY seconds, the first line
// is logged after half of the limit, otherwise after SAY seconds. Each further line is logged when
// the waiting time has doubled since the previous line.
static void say_waiting(struct wait *w, double now) {
    const double waited = now - w->since;
    char text[160], most[48] = "";
    if (w->say <= 0) w->say = w->timeout > 0 && w->timeout < 2 * SAY ? w->timeout / 2 : SAY;
    if (waited < w->say) return;
    w->say *= 2;
    if (w->timeout > 0) snprintf(most, sizeof most, "; its limit is %g s", w->timeout);
    snprintf(text, sizeof text, "its worker has not answered for %.3g s%s", waited, most);
    for (size_t i = 0; i < w->n; i++) {
        const rlhf_host *api = w->a[i].ear->api;
        if (!w->a[i].done && api) api->log(api, RLHF_LOG_INFO, text);
    }
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

static void end_call(struct rlhf__asked *a) {
    if (a->answered < 0) {
        gone(a);
        return;
    }
    take_printed(a);
    a->done = 1;
}

// Process everything that has arrived. Returns the number of workers that are not done. Sets *more
// to 1 if more calls are waiting.
static size_t look(struct wait *w, int *more) {
    size_t left = 0;
    *more = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct rlhf__asked *a = &w->a[i];
        double worked = 0;
        if (a->done) continue;
        rlhf__channel_flush(&a->worker->ask);
        rlhf__channel_flush(&a->worker->call);
        take_printed(a);
        if (rlhf__ear_flooded(a->ear)) end_flood(a);
        if (!a->done && a->answered == 0) take_answer(a);
        if (a->done) continue;
        // Calls that the worker made before it answered or terminated belong to this request.
        const int again = take_calls(a, &worked);
        if (!a->done && !again && a->answered) end_call(a);
        if (w->until > 0) w->until += worked;
        w->since += worked;
        *more |= again;
        left += !a->done;
    }
    return left;
}

static void wait_all(struct wait *w) {
    struct pollfd p[PER * MOST_ASKED];
    int more = 0;
    while (look(w, &more) > 0) {
        const double now = rlhf__seconds();
        if (w->until > 0 && now > w->until) {
            too_long(w);
            return;
        }
        pass_on(w);
        leave(w, now);
        say_waiting(w, now);
        double most = w->until > 0 && w->until - now < TICK ? w->until - now : TICK;
        poll(p, (nfds_t)put_polled(w, p), more ? 0 : (int)(1000 * most) + 1);
    }
}

rlhf_status rlhf__ask(struct rlhf__asked *a, size_t n, double timeout_s, const char *limit) {
    struct wait w = {
        .a = a, .n = n, .timeout = timeout_s, .limit = limit, .since = rlhf__seconds()};
    if (timeout_s > 0) w.until = w.since + timeout_s;
    rlhf_status st = n > MOST_ASKED ? RLHF_E_INTERNAL : RLHF_OK;
    for (size_t i = 0; i < n; i++) {
        struct rlhf__worker *k = a[i].worker;
        if (k->failed.code) {
            a[i].done = 1;
            continue;
        }
        const uint64_t answer = a[i].most ? a[i].most : RLHF__MOST_ANSWER;
        k->ask.most = k->most && k->most < answer ? k->most : answer;
        k->call.most = k->most ? k->most : RLHF__WIRE_MAX;
        rlhf__wire_end(&a[i].frame);
        rlhf__buf_put(&k->ask.out, a[i].frame.data, a[i].frame.len);
        if (a[i].frame.bad || k->ask.out.bad)
            rlhf__worker_fail(k, RLHF_E_NOMEM, "out of memory for a request to its worker");
        a[i].done = k->failed.code != 0;
        rlhf__ward_order(&k->ward, RLHF__WARDEN_WAKE); // an idle worker is suspended
    }
    pass_on(&w);
    if (st == RLHF_OK) wait_all(&w);
    for (size_t i = 0; i < n; i++)
        rlhf__ward_order(&a[i].worker->ward, RLHF__WARDEN_REST);
    for (size_t i = 0; i < n && st == RLHF_OK; i++)
        if (a[i].worker->failed.code) st = a[i].worker->failed.code;
    return st;
}
