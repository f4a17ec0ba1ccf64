// http_openenv.c: see http_openenv.h.
#include "http_openenv.h"
#include "http/client.h"
#include "http_openenv_message.h"

#include <math.h>
#include <rlhf/log.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FULL_S = 10, PROBE_S = 10 };

static double deadline(const struct rlhf__openenv *o) {
    return o->timeout_s > 0 ? rlhf__http_now() + o->timeout_s : 0;
}

static enum rlhf__socket_end connect_it(const struct rlhf__openenv *o,
                                        struct rlhf__openenv_state *s, double until, char *why) {
    rlhf__openenv_close(o, s);
    s->socket = o->host->alloc(o->host, sizeof *s->socket);
    if (!s->socket) return RLHF__SOCKET_NO_MEMORY;
    s->socket->host = o->host;
    s->socket->longest = o->longest;
    o->wait->sessions++;
    return rlhf__socket_open(s->socket, &o->target, until, why);
}

// The end of one handshake: timeout_s, but while the server is down no longer than patience lasts,
// except for a short attempt.
static double handshake_until(const struct rlhf__openenv *o, double now) {
    const struct rlhf__openenv_wait *w = o->wait;
    const double late = deadline(o), left = fmax(w->until, now + PROBE_S);
    return !w->until ? late : late > 0 ? fmin(late, left) : left;
}

// The server was up when the run began. If it is down now, wait for it.
static enum rlhf__socket_end connect_patiently(const struct rlhf__openenv *o,
                                               struct rlhf__openenv_state *s, char *why) {
    struct rlhf__openenv_wait *w = o->wait;
    const double began = rlhf__http_now();
    if (w->gone && !*why)
        snprintf(why, RLHF__SOCKET_WHY, "it was down a moment ago, and patience_s is over");
    while (!w->gone) {
        const double until = handshake_until(o, rlhf__http_now());
        const enum rlhf__socket_end end = connect_it(o, s, until, why);
        if (end != RLHF__SOCKET_FAILED) return end;
        if (!w->until) {
            w->until = began + o->patience_s;
            rlhf_logf(o->host, RLHF_LOG_WARN, "%s: %s; waiting up to %g s for it (patience_s)",
                      o->shown, why, o->patience_s);
        }
        w->failed = 1;
        w->tried = rlhf__http_now();
        w->gone = w->tried > w->until;
        const struct timespec nap = {0, 500000000};
        if (!w->gone) nanosleep(&nap, NULL);
        if (o->host->cancelled(o->host)) return RLHF__SOCKET_CANCELLED;
    }
    return RLHF__SOCKET_FAILED; // `why` is that of the last attempt
}

// Prepares for a call of reset().
static void begin_wait(const struct rlhf__openenv *o, int64_t phase) {
    struct rlhf__openenv_wait *w = o->wait;
    if (w->phase != phase) w->until = 0;
    w->phase = phase;
    const double now = rlhf__http_now();
    w->failed = w->gone = w->until && now > w->until && now < w->tried + PROBE_S;
}

// Sends the request of an episode before `until`; 0: timeout_s after its connection. The answer
// then has timeout_s.
static enum rlhf__socket_end send_one(const struct rlhf__openenv *o, enum rlhf__asked what,
                                      const rlhf_episode_in *in, uint32_t i, double until,
                                      char *why) {
    struct rlhf__openenv_state *s = in->state[i];
    struct rlhf__bytes text = {.host = o->host};
    enum rlhf__socket_end end = RLHF__SOCKET_DONE;
    if (what == RLHF__ASKED_RESET) end = connect_patiently(o, s, why);
    rlhf__openenv_write(o, what, in, i, &text);
    if (text.full) end = RLHF__SOCKET_NO_MEMORY;
    if (end == RLHF__SOCKET_DONE && (!s->socket || !s->socket->easy)) {
        snprintf(why, RLHF__SOCKET_WHY, "the episode's connection is closed");
        end = RLHF__SOCKET_FAILED;
    }
    if (end == RLHF__SOCKET_DONE)
        end =
            rlhf__socket_send(s->socket, text.data, text.len, until > 0 ? until : deadline(o), why);
    rlhf__bytes_finish(&text);
    s->asked = what;
    s->again = 0;
    s->until = deadline(o);
    return end;
}

static rlhf_status give_up(const struct rlhf__openenv *o, enum rlhf__socket_end end) {
    if (end == RLHF__SOCKET_CANCELLED) return RLHF_E_CANCELLED;
    return (o->host->fail)(o->host, RLHF_E_NOMEM, "out of memory for an episode");
}

// The server has refused a session. A server with a limit on sessions may count a session for a
// moment after the session was closed. So the reset is repeated, for FULL_S seconds.
static enum rlhf__socket_end wait_for_room(const struct rlhf__openenv *o,
                                           struct rlhf__openenv_state *s, char *why) {
    const double now = rlhf__http_now();
    if (!s->full) s->full = now + FULL_S;
    s->again = now + 0.1;
    if (now <= s->full) return RLHF__SOCKET_LATER;
    snprintf(why, RLHF__SOCKET_WHY,
             "it has no room for another session, and %d are needed at once: raise its "
             "max_concurrent_envs, or lower sampling.slots, which counts whole groups, so "
             "that one session is enough only for an algorithm without groups (ppo.so); "
             "if it never had a session, its log may say why",
             (int)o->wait->sessions);
    return RLHF__SOCKET_FAILED;
}

// Takes the answer of an episode if it is there.
static enum rlhf__socket_end take_one(const struct rlhf__openenv *o, const rlhf_episode_in *in,
                                      const rlhf_episode_out *out, uint32_t i, char *why) {
    struct rlhf__openenv_state *s = in->state[i];
    const enum rlhf__asked what = (enum rlhf__asked)s->asked;
    enum rlhf__socket_end end = RLHF__SOCKET_DONE;
    if (s->again) {
        if (rlhf__http_now() < s->again) return RLHF__SOCKET_LATER;
        end = send_one(o, what, in, i, 0, why);
    }
    if (end == RLHF__SOCKET_DONE) end = rlhf__socket_receive(s->socket, s->until, why);
    if (end != RLHF__SOCKET_DONE) return end;
    if (what == RLHF__ASKED_RESET && rlhf__openenv_is_full(o, &s->socket->message))
        return wait_for_room(o, s, why);
    s->full = 0;
    return rlhf__openenv_take(o, s, &s->socket->message, out, i, why) ? RLHF__SOCKET_DONE
                                                                      : RLHF__SOCKET_FAILED;
}

// The answers of a call, as far as they are there.
struct answers {
    uint32_t left, failed;        // episodes whose answer comes later, and those without one
    char first[RLHF__SOCKET_WHY]; // why the first of them failed
};

static void lose(struct answers *a, const rlhf_episode_out *out, uint32_t i, const char *why) {
    out->later[i] = 0;
    out->failed[i] = 1;
    if (!a->failed++) snprintf(a->first, sizeof a->first, "%s", why);
}

// Takes the answers that are there, for the episodes with out->later.
static rlhf_status take_answers(const struct rlhf__openenv *o, const rlhf_episode_in *in,
                                const rlhf_episode_out *out, struct answers *a) {
    a->left = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        char why[RLHF__SOCKET_WHY] = "";
        if (!out->later[i]) continue;
        out->later[i] = 0; // take() may say something
        const enum rlhf__socket_end end = take_one(o, in, out, i, why);
        if (end == RLHF__SOCKET_CANCELLED || end == RLHF__SOCKET_NO_MEMORY) return give_up(o, end);
        if (end == RLHF__SOCKET_FAILED) lose(a, out, i, why);
        out->later[i] = end == RLHF__SOCKET_LATER;
        a->left += end == RLHF__SOCKET_LATER;
    }
    return RLHF_OK;
}

static rlhf_status report(const struct rlhf__openenv *o, const rlhf_episode_in *in,
                          const struct answers *a) {
    if (!a->failed) return RLHF_OK;
    if (a->failed == in->n) return rlhf_failf(o->host, RLHF_E_IO, "%s: %s", o->shown, a->first);
    rlhf_logf(o->host, RLHF_LOG_WARN, "%s: %u of %u episodes: %s", o->shown, a->failed, in->n,
              a->first);
    return RLHF_OK;
}

// Sends all requests before it reads the first answer, so that the server can work on all of them
// at the same time.
rlhf_status rlhf__openenv_ask(const struct rlhf__openenv *o, enum rlhf__asked what,
                              const rlhf_episode_in *in, const rlhf_episode_out *out) {
    struct answers a = {.left = 0};
    rlhf_status st = RLHF_OK;
    if (what == RLHF__ASKED_RESET) begin_wait(o, in->phase);
    const double until = what == RLHF__ASKED_RESET ? 0 : deadline(o);
    for (uint32_t i = 0; st == RLHF_OK && i < in->n; i++) {
        char why[RLHF__SOCKET_WHY] = "";
        const enum rlhf__socket_end end = send_one(o, what, in, i, until, why);
        if (end == RLHF__SOCKET_CANCELLED || end == RLHF__SOCKET_NO_MEMORY)
            st = give_up(o, end);
        else if (end == RLHF__SOCKET_FAILED)
            lose(&a, out, i, why);
        else
            out->later[i] = 1;
    }
    if (st == RLHF_OK) st = take_answers(o, in, out, &a);
    if (what == RLHF__ASKED_RESET && !o->wait->failed) o->wait->until = 0;
    return st == RLHF_OK ? report(o, in, &a) : st;
}

// Waits for the first answer.
static rlhf_status wait_for_one(const struct rlhf__openenv *o, const rlhf_episode_in *in) {
    uint32_t n = 0, wait_ms = in->wait_ms;
    const double now = rlhf__http_now();
    struct rlhf__socket **of =
        (struct rlhf__socket **)o->host->alloc(o->host, in->n * sizeof(struct rlhf__socket *));
    if (!of) return give_up(o, RLHF__SOCKET_NO_MEMORY);
    for (uint32_t i = 0; i < in->n; i++) {
        const struct rlhf__openenv_state *s = in->state[i];
        const double left = (s->again - now) * 1000;
        if (!s->again)
            of[n++] = s->socket;
        else if (left < wait_ms)
            wait_ms = left > 0 ? (uint32_t)left + 1 : 0;
    }
    rlhf__socket_wait(of, n, wait_ms);
    o->host->free(o->host, of);
    return RLHF_OK;
}

rlhf_status rlhf__openenv_poll(const struct rlhf__openenv *o, const rlhf_episode_in *in,
                               const rlhf_episode_out *out) {
    struct answers a = {.left = 0};
    memset(out->later, 1, in->n);
    rlhf_status st = take_answers(o, in, out, &a);
    if (st == RLHF_OK && a.left == in->n && in->wait_ms) {
        st = wait_for_one(o, in);
        if (st == RLHF_OK) st = take_answers(o, in, out, &a);
    }
    return st == RLHF_OK ? report(o, in, &a) : st;
}

void rlhf__openenv_close(const struct rlhf__openenv *o, struct rlhf__openenv_state *s) {
    static const char bye[] = "{\"type\":\"close\"}";
    char why[RLHF__SOCKET_WHY];
    if (!s->socket) return;
    if (s->socket->easy)
        rlhf__socket_send(s->socket, bye, sizeof bye - 1, rlhf__http_now() + 1, why);
    rlhf__socket_close(s->socket);
    o->host->free(o->host, s->socket);
    o->wait->sessions--;
    s->socket = NULL;
}
