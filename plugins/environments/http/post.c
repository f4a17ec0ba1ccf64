// post.c: see post.h.
#include "http/post.h"

#include "http/pause.h"
#include "process/utf8.h"

#include <math.h>
#include <rlhf/log.h>
#include <stdio.h>
#include <string.h>

enum { POLL_MS = 200, SHOWN = 120 };

// ---- one request ----

static rlhf_status wait_until(const struct rlhf__post *p, double when) {
    while (rlhf__http_now() < when) {
        if (p->host->cancelled(p->host)) return RLHF_E_CANCELLED;
        rlhf__http_wait((struct rlhf__http_client *)(uintptr_t)&p->client, POLL_MS);
        const struct timespec nap = {0, 10000000};
        nanosleep(&nap, NULL);
    }
    return RLHF_OK;
}

// Send slot 0's body until it is answered, waiting for a service that is down.
static rlhf_status exchange(struct rlhf__post *p, char *why) {
    struct rlhf__pause pause = {0};
    struct rlhf__http_slot *s = p->client.slot;
    for (uint32_t repeats = 0;;) {
        enum rlhf__http_end end = RLHF__HTTP_ONWARD;
        double retry_after = 0;
        RLHF_TRY(rlhf__http_send(&p->client, s));
        while (end == RLHF__HTTP_ONWARD) {
            if (p->host->cancelled(p->host)) return RLHF_E_CANCELLED;
            rlhf__http_wait(&p->client, POLL_MS);
            rlhf__http_next(&p->client, &end, why, &retry_after);
        }
        const double now = rlhf__http_now();
        if (end == RLHF__HTTP_ANSWERED) return RLHF_OK;
        if (end == RLHF__HTTP_REFUSED || (end == RLHF__HTTP_ERROR && repeats++ == p->o->repeats))
            return RLHF_E_IO;
        rlhf__pause_failed(&pause, p->o, &p->jitter, s->began, now, retry_after);
        if (rlhf__pause_over(&pause, p->o, now)) return RLHF_E_IO;
        if (rlhf__pause_line_due(&pause, now))
            rlhf_logf(p->host, RLHF_LOG_WARN, "%s does not answer: %.300s; the run waits for it",
                      p->client.target.shown, why);
        RLHF_TRY(wait_until(p, pause.gate));
    }
}

static rlhf_status failed(const struct rlhf__post *p, rlhf_status st, const char *why) {
    if (st == RLHF_E_CANCELLED || st == RLHF_E_NOMEM) return st;
    return rlhf_failf(p->host, st, "%s: %.800s", p->client.target.shown, why);
}

rlhf_status rlhf__post_open(struct rlhf__post *p) {
    char why[RLHF__WHY] = "", said[RLHF__HELLO_WHY] = "";
    p->host->rng(p->host, "backoff", &p->jitter);
    p->client.host = p->closed.host = p->host;
    p->client.o = p->o;
    p->opened = 1;
    RLHF_TRY(rlhf__http_open(&p->client));
    struct rlhf__http_slot *s = p->client.slot;
    rlhf__bytes_text(&s->body, "{\"hello\":1}\n");
    const rlhf_status st = exchange(p, why);
    if (st != RLHF_OK) return failed(p, st, why);
    const char *text = s->answer.data ? s->answer.data : "";
    if (rlhf__hello_read(text, s->answer.len, &p->hello, said)) return RLHF_OK;
    return failed(p, RLHF_E_INVALID, said);
}

void rlhf__post_close(struct rlhf__post *p) {
    if (p->opened) rlhf__http_close(&p->client);
    rlhf__bytes_finish(&p->closed);
    rlhf__hello_finish(&p->hello);
}

// ---- a call ----

static int64_t entry_of(const rlhf_episode_in *in, uint64_t episode) {
    for (uint32_t i = 0; i < in->n; i++)
        if (in->episode[i] == episode) return i;
    return -1;
}

// Take a line. Returns 0 with the reason in why if it is invalid.
static int take_line(enum rlhf__asked what, const char *line, size_t n, const rlhf_episode_in *in,
                     const rlhf_episode_out *out, uint8_t *had, char *why) {
    struct rlhf__line_reply reply = {0};
    if (!rlhf__line_reply_read(line, n, what, &reply, why)) return 0;
    const int64_t i = entry_of(in, reply.episode);
    int good = i >= 0 && !had[i];
    if (!good) snprintf(why, RLHF__REPLY_WHY, "it is of an episode that was not asked");
    if (good) {
        const int32_t calls =
            what == RLHF__ASKED_STEP ? in->call_offset[i + 1] - in->call_offset[i] : 0;
        good = rlhf__line_reply_put(&reply, out, (uint32_t)i, what, calls, why) == RLHF_OK;
        had[i] = (uint8_t)good;
    }
    rlhf__line_reply_finish(&reply);
    return good;
}

// Take the lines of an answer. The first invalid one ends it.
static void take_lines(const struct rlhf__post *p, enum rlhf__asked what, const rlhf_episode_in *in,
                       const rlhf_episode_out *out, uint8_t *had, char *why) {
    const struct rlhf__bytes *b = &p->client.slot->answer;
    for (size_t at = 0; at < b->len;) {
        const char *line = b->data + at, *end = memchr(line, '\n', b->len - at);
        const size_t n = end ? (size_t)(end - line) : b->len - at;
        char shown[SHOWN], said[RLHF__REPLY_WHY] = "";
        if (n > 0 && !take_line(what, line, n, in, out, had, said)) {
            snprintf(why, RLHF__WHY, "it answered \"%s\": %s",
                     rlhf__utf8_shown(line, n, shown, sizeof shown), said);
            return;
        }
        at += n + 1;
    }
    snprintf(why, RLHF__WHY, "its answer to %s lacks an episode", rlhf__asked_name(what));
}

static rlhf_status ask(struct rlhf__post *p, enum rlhf__asked what, const rlhf_episode_in *in,
                       const rlhf_episode_out *out, uint8_t *had) {
    struct rlhf__bytes *body = &p->client.slot->body;
    char why[RLHF__WHY] = "";
    uint32_t n = 0;
    body->len = 0;
    body->full = 0;
    rlhf__bytes_add(body, p->closed.data, p->closed.len);
    p->closed.len = 0;
    for (uint32_t i = 0; i < in->n; i++)
        rlhf__asked_line(body, what, in, i, in->episode[i]);
    if (body->full) return (p->host->fail)(p->host, RLHF_E_NOMEM, "out of memory for the lines");
    const rlhf_status st = exchange(p, why);
    rlhf__http_drop(&p->client);
    if (st != RLHF_OK) return failed(p, st, why);
    take_lines(p, what, in, out, had, why);
    for (uint32_t i = 0; i < in->n; i++) {
        out->failed[i] = out->failed[i] || !had[i];
        n += had[i];
    }
    if (n == in->n) return RLHF_OK;
    if (n == 0) return failed(p, RLHF_E_IO, why);
    rlhf_logf(p->host, RLHF_LOG_WARN, "%s: %s", p->client.target.shown, why);
    return RLHF_OK;
}

rlhf_status rlhf__post_ask(struct rlhf__post *p, enum rlhf__asked what, const rlhf_episode_in *in,
                           const rlhf_episode_out *out) {
    if (!in->n || (what == RLHF__ASKED_FINISH && !p->hello.finish)) return RLHF_OK;
    uint8_t *had = p->host->alloc(p->host, in->n);
    if (!had) return (p->host->fail)(p->host, RLHF_E_NOMEM, "out of memory");
    const rlhf_status st = ask(p, what, in, out, had);
    p->host->free(p->host, had);
    return st;
}
