// talk.c: see talk.h.
#include "process/talk.h"

#include <errno.h>
#include <poll.h>
#include <rlhf/log.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, SLICE_MS = 100, LAST_WAIT_MS = 3000 };
#define STOP_S 1.0 // seconds to wait for an answer after Ctrl-C, as for workers
#define SAY_S  30  // after this many seconds without an answer, a line is logged; as for workers

struct talk {
    struct rlhf__program *p;
    struct rlhf__exchange *x;
    double begun;
    double start; // additional seconds for its start
    int deaf;     // 1: it does not read any more
    int closed;   // 1: it does not write any more
    int silent;   // 1: its standard error has ended
    enum rlhf__taken taken;
    double stop_at; // when to stop waiting; set by Ctrl-C, 0 before
    // since: when the exchange began; say: the next line is logged after this many seconds without
    // an answer
    double since, say;
};

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int would_block(void) { return errno == EAGAIN || errno == EWOULDBLOCK; }

// send_some and take_some return 1 if bytes were moved, 0 if not, and -1 if the pipe failed.

static int send_some(struct talk *t) {
    struct rlhf__exchange *x = t->x;
    if (t->deaf || x->sent == x->n_send) return 0;
    const ssize_t n = write(t->p->process->in, x->send + x->sent, x->n_send - x->sent);
    if (n > 0) x->sent += (size_t)n;
    if (n >= 0) return n > 0;
    if (errno == EPIPE) t->deaf = 1;
    return errno == EPIPE || errno == EINTR || would_block() ? 0 : -1;
}

static int take_some(struct talk *t) {
    char chunk[CHUNK];
    if (t->closed) return 0;
    const ssize_t n = read(t->p->process->out, chunk, sizeof chunk);
    if (n == 0) t->closed = 1;
    if (n < 0) return errno == EINTR || would_block() ? 0 : -1;
    // The first bytes of the answer show that the program has started. From now on only the usual
    // time limit applies, without the extra time for starting.
    if (n > 0 && t->start > 0) {
        const double used = seconds() - t->begun;
        t->begun += used < t->start ? used : t->start;
        t->start = 0;
    }
    if (n > 0) t->taken = t->x->take(t->x->ctx, chunk, (size_t)n);
    return n > 0;
}

static int is_done(const struct talk *t) {
    return t->taken == RLHF__TAKEN_ALL && (t->deaf || t->x->sent == t->x->n_send);
}

// Returns the seconds that are left, or 1 if the time is unlimited.
static double time_left(const struct talk *t) {
    const double limit = rlhf__program_timeout(t->p);
    return limit > 0 ? t->begun + t->start + limit - seconds() : 1;
}

// The first line is logged after SAY_S seconds, or after half of the time limit if that is shorter.
// Each further line is logged when the wait is twice as long as at the previous line.
static void say_waiting(struct talk *t) {
    const double waited = seconds() - t->since, limit = rlhf__program_timeout(t->p);
    char most[48] = "";
    if (t->say <= 0) t->say = limit > 0 && limit < 2 * SAY_S ? limit / 2 : SAY_S;
    if (waited < t->say) return;
    t->say *= 2;
    if (limit > 0) snprintf(most, sizeof most, "; its limit is %g s", limit);
    rlhf_logf(t->p->host, RLHF_LOG_INFO, "%s has not answered for %.3g s%s", t->p->name, waited,
              most);
}

// Waits until bytes can be moved, but only for a short time.
static void wait_some(const struct talk *t, double left) {
    const struct rlhf__program *p = t->p;
    const int sends = !t->deaf && t->x->sent < t->x->n_send;
    struct pollfd fd[] = {{.fd = t->closed ? -1 : p->process->out, .events = POLLIN},
                          {.fd = t->silent ? -1 : p->process->err, .events = POLLIN},
                          {.fd = sends ? p->process->in : -1, .events = POLLOUT}};
    const int ms = left * 1000 < SLICE_MS ? (int)(left * 1000) + 1 : SLICE_MS;
    poll(fd, 3, ms);
}

// Called if no bytes can be moved. Returns DONE if the exchange can continue, otherwise the reason
// why it must stop.
static enum rlhf__talk look(struct talk *t) {
    struct rlhf__program *p = t->p;
    if (rlhf__program_has_ended(p)) {
        // Output that the program wrote before it ended may still be in the pipe.
        while (t->taken == RLHF__TAKEN_MORE && take_some(t) > 0)
            continue;
        rlhf__said_read(&p->said, p->host, p->process->err);
        if (t->taken == RLHF__TAKEN_NONE) return RLHF__TALK_REFUSED;
        return t->taken == RLHF__TAKEN_ALL ? RLHF__TALK_DONE : RLHF__TALK_ENDED;
    }
    if (!t->closed) return RLHF__TALK_DONE;
    for (int left = LAST_WAIT_MS; left > 0 && !rlhf__program_has_ended(p); left -= 10)
        poll(NULL, 0, 10);
    rlhf__said_read(&p->said, p->host, p->process->err);
    return rlhf__program_has_ended(p) ? RLHF__TALK_ENDED : RLHF__TALK_CLOSED;
}

// After Ctrl-C, an answer that arrives soon is still accepted, so that the phase can be completed.
static int must_stop(struct talk *t) {
    if (t->x->patient) return 0;
    if (!t->p->host->cancelled(t->p->host)) return 0;
    if (t->stop_at <= 0) t->stop_at = seconds() + STOP_S;
    return seconds() >= t->stop_at;
}

static enum rlhf__talk go_on(struct talk *t) {
    struct rlhf__program *p = t->p;
    for (;;) {
        if (must_stop(t)) return RLHF__TALK_CANCELLED;
        if (!t->silent && !rlhf__said_read(&p->said, p->host, p->process->err)) t->silent = 1;
        const int sent = send_some(t), took = take_some(t);
        if (t->taken == RLHF__TAKEN_NONE) return RLHF__TALK_REFUSED;
        if (is_done(t)) { // output written before the answer may still be in the pipe
            if (!t->silent) rlhf__said_drain(&p->said, p->host, p->process->err);
            return RLHF__TALK_DONE;
        }
        if (sent < 0 || took < 0) return RLHF__TALK_FAILED;
        const double left = time_left(t);
        if (left <= 0) return RLHF__TALK_LATE;
        if (sent || took) continue;
        const enum rlhf__talk why = look(t);
        if (why != RLHF__TALK_DONE || p->ended) return why;
        say_waiting(t);
        wait_some(t, left);
    }
}

enum rlhf__talk rlhf__talk(struct rlhf__program *p, struct rlhf__exchange *x) {
    struct talk t = {.p = p, .x = x, .begun = seconds(), .start = x->start_s};
    t.since = t.begun;
    // A write to a program that has ended must return an error. It must not raise a signal in the
    // host.
    sigset_t pipe, before, waiting;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    p->programs->works(p->host, p->process, 1);
    const enum rlhf__talk what = go_on(&t);
    const int why = errno;
    p->programs->works(p->host, p->process, 0);
    if (!sigismember(&waiting, SIGPIPE)) {
        const struct timespec now = {0, 0};
        while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return what;
}

size_t rlhf__talk_unasked(struct rlhf__program *p, char *to, size_t cap) {
    const ssize_t n = read(p->process->out, to, cap);
    return n > 0 ? (size_t)n : 0;
}

const char *rlhf__talk_why(const struct rlhf__program *p, enum rlhf__talk what, const char *where,
                           char *out, size_t cap) {
    char how[128], said[700];
    const char *why = how;
    switch (what) {
    case RLHF__TALK_ENDED:
        rlhf__program_end(p, how, sizeof how);
        break;
    case RLHF__TALK_CLOSED:
        why = "closed its standard output";
        break;
    case RLHF__TALK_LATE:
        snprintf(how, sizeof how, "did not answer within %g s%s", rlhf__program_timeout(p),
                 p->timeout_s > 0 ? "" : " (rewards.timeout_s)");
        break;
    default:
        snprintf(how, sizeof how, "could not be talked to (%s)", strerror(errno));
    }
    snprintf(out, cap, "%s %s%s%s%s", p->name, why, *where ? " " : "", where,
             rlhf__said_last(&p->said, said, sizeof said));
    return out;
}
