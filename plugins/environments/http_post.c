// http_post.c: see http_post.h.
#include "http_post.h"

#include "process/utf8.h"

#include <rlhf/log.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 120 };

// A call: what the service is asked, and what is known about its answer.
struct call {
    struct rlhf__post *p;
    enum rlhf__asked what;
    int32_t lost; // 1: there is no answer
    const rlhf_episode_in *in;
    const rlhf_episode_out *out;
    uint8_t *had; // [in->n] 1: the episode has an answer
    char why[RLHF__WHY];
};

static void lose_call(void *ctx, uint32_t at, const char *why) {
    struct call *c = ctx;
    (void)at;
    c->lost = 1;
    snprintf(c->why, sizeof c->why, "%s", why);
}

static rlhf_status failed(const struct rlhf__post *p, rlhf_status st, const char *why) {
    return rlhf_failf(p->host, st, "%s: %.800s", p->client.target.shown, why);
}

// Sends one request. `write` writes the request's body, and `take` reads the answer.
static rlhf_status exchange(struct call *c,
                            rlhf_status (*write)(void *, uint32_t, struct rlhf__bytes *),
                            rlhf_status (*take)(void *, uint32_t, const struct rlhf__bytes *)) {
    struct rlhf__requests r = {
        .client = &c->p->client, .ctx = c, .write = write, .take = take, .lose = lose_call, .n = 1};
    RLHF_TRY(rlhf__requests_send(&r));
    return c->lost ? failed(c->p, RLHF_E_IO, c->why) : RLHF_OK;
}

// ---- the start ----

static rlhf_status write_hello(void *ctx, uint32_t at, struct rlhf__bytes *body) {
    (void)ctx, (void)at;
    rlhf__bytes_text(body, "{\"hello\":1}\n");
    return RLHF_OK;
}

static rlhf_status take_hello(void *ctx, uint32_t at, const struct rlhf__bytes *answer) {
    const struct call *c = ctx;
    char said[RLHF__HELLO_WHY] = "";
    (void)at;
    const char *text = answer->data ? answer->data : "";
    if (rlhf__hello_read(text, answer->len, &c->p->hello, said)) return RLHF_OK;
    return failed(c->p, RLHF_E_INVALID, said);
}

rlhf_status rlhf__post_open(struct rlhf__post *p) {
    struct call c = {.p = p};
    p->client.host = p->closed.host = p->host;
    p->client.o = p->o;
    RLHF_TRY(rlhf__http_open(&p->client));
    return exchange(&c, write_hello, take_hello);
}

void rlhf__post_close(struct rlhf__post *p) {
    rlhf__http_close(&p->client);
    rlhf__bytes_finish(&p->closed);
    rlhf__hello_finish(&p->hello);
}

// ---- a call ----

static int64_t entry_of(const rlhf_episode_in *in, uint64_t episode) {
    for (uint32_t i = 0; i < in->n; i++)
        if (in->episode[i] == episode) return i;
    return -1;
}

// Reads a line of the answer. If it is invalid, returns 0 with the reason in `why`.
static int take_line(const struct call *c, const char *line, size_t n, char *why) {
    struct rlhf__line_reply reply = {0};
    if (!rlhf__line_reply_read(line, n, c->what, &reply, why)) return 0;
    const int64_t i = entry_of(c->in, reply.episode);
    int good = i >= 0 && !c->had[i];
    if (!good) snprintf(why, RLHF__REPLY_WHY, "it is of an episode that was not asked");
    if (good) {
        const int32_t calls =
            c->what == RLHF__ASKED_STEP ? c->in->call_offset[i + 1] - c->in->call_offset[i] : 0;
        good = rlhf__line_reply_put(&reply, c->out, (uint32_t)i, c->what, calls, why) == RLHF_OK;
        c->had[i] = (uint8_t)good;
    }
    rlhf__line_reply_finish(&reply);
    return good;
}

// Reads the lines of an answer, up to the first invalid line.
static rlhf_status take_lines(void *ctx, uint32_t at, const struct rlhf__bytes *b) {
    struct call *c = ctx;
    (void)at;
    for (size_t k = 0; k < b->len;) {
        const char *line = b->data + k, *end = memchr(line, '\n', b->len - k);
        const size_t n = end ? (size_t)(end - line) : b->len - k;
        char shown[SHOWN], said[RLHF__REPLY_WHY] = "";
        if (n > 0 && !take_line(c, line, n, said)) {
            snprintf(c->why, sizeof c->why, "it answered \"%s\": %s",
                     rlhf__utf8_shown(line, n, shown, sizeof shown), said);
            return RLHF_OK;
        }
        k += n + 1;
    }
    snprintf(c->why, sizeof c->why, "its answer to %s lacks an episode", rlhf__asked_name(c->what));
    return RLHF_OK;
}

static rlhf_status write_lines(void *ctx, uint32_t at, struct rlhf__bytes *body) {
    const struct call *c = ctx;
    (void)at;
    rlhf__bytes_add(body, c->p->closed.data, c->p->closed.len);
    for (uint32_t i = 0; i < c->in->n; i++)
        rlhf__asked_line(body, c->what, c->in, i, c->in->episode[i]);
    return RLHF_OK;
}

static rlhf_status ask(struct call *c) {
    uint32_t n = 0;
    const rlhf_status st = exchange(c, write_lines, take_lines);
    c->p->closed.len = 0;
    RLHF_TRY(st);
    for (uint32_t i = 0; i < c->in->n; i++) {
        c->out->failed[i] = c->out->failed[i] || !c->had[i];
        n += c->had[i];
    }
    if (n == c->in->n) return RLHF_OK;
    if (n == 0) return failed(c->p, RLHF_E_IO, c->why);
    rlhf_logf(c->p->host, RLHF_LOG_WARN, "%s: %s", c->p->client.target.shown, c->why);
    return RLHF_OK;
}

rlhf_status rlhf__post_ask(struct rlhf__post *p, enum rlhf__asked what, const rlhf_episode_in *in,
                           const rlhf_episode_out *out) {
    if (!in->n || (what == RLHF__ASKED_FINISH && !p->hello.finish)) return RLHF_OK;
    struct call c = {.p = p, .what = what, .in = in, .out = out};
    // Never send a turn twice, because the service would count it twice. After a failure, the host
    // plays the episode again from its reset.
    p->client.once = what != RLHF__ASKED_RESET;
    c.had = p->host->alloc(p->host, in->n);
    if (!c.had) return (p->host->fail)(p->host, RLHF_E_NOMEM, "out of memory");
    const rlhf_status st = ask(&c);
    p->host->free(p->host, c.had);
    return st;
}
