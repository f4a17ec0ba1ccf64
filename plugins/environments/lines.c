// lines.c: see lines.h.
#include "lines.h"

#include "process/utf8.h"

enum { LONGEST_LINE = 4 << 20, SHOWN = RLHF__LINES_SHOWN };

// ---- reading lines ----

struct reader {
    struct rlhf__env_lines *lines;
    struct rlhf__bytes rest; // an incomplete line
    enum rlhf__asked what;
    const rlhf_episode_in *in; // NULL: the first line is read
    const rlhf_episode_out *out;
    uint8_t *had; // [n] 1: answered
    uint32_t n_had, n_asked;
    int complete;          // 1: no further line is expected
    uint32_t n_failed;     // episodes that the program gave up
    uint64_t failed;       // the first of them
    char failed_as[SHOWN]; // the reason for this failure
    rlhf_status said;      // a failure of the host's functions
    char why[RLHF__REPLY_WHY];
};

// The entry of an episode in the call, or -1.
static int64_t entry_of(const struct reader *r, uint64_t episode) {
    for (uint32_t i = 0; i < r->in->n; i++)
        if (r->in->episode[i] == episode) return i;
    return -1;
}

static enum rlhf__taken refuse(struct reader *r, const char *text) {
    snprintf(r->why, sizeof r->why, "%s", text);
    return RLHF__TAKEN_NONE;
}

static enum rlhf__taken put(struct reader *r, const struct rlhf__line_reply *reply) {
    const int64_t i = entry_of(r, reply->episode);
    if (i < 0) return refuse(r, "it is of an episode that was not asked");
    if (r->had[i]) return refuse(r, "the episode was answered already");
    const int32_t calls =
        r->what == RLHF__ASKED_STEP ? r->in->call_offset[i + 1] - r->in->call_offset[i] : 0;
    const rlhf_status st = rlhf__line_reply_put(reply, r->out, (uint32_t)i, r->what, calls, r->why);
    if (st < 0 && !r->why[0]) r->said = st;
    if (st < 0) return RLHF__TAKEN_NONE;
    const char *failed = rlhf__line_reply_failed(reply);
    if (failed && r->n_failed++ == 0) {
        r->failed = reply->episode;
        rlhf__utf8_shown(failed, strlen(failed), r->failed_as, sizeof r->failed_as);
    }
    r->had[i] = 1;
    r->n_had++;
    return r->n_had == r->n_asked ? RLHF__TAKEN_ALL : RLHF__TAKEN_MORE;
}

static enum rlhf__taken refuse_more(struct reader *r) {
    return refuse(r, r->in ? "all episodes were answered already"
                           : "after its first line, the program must wait for a request");
}

static enum rlhf__taken take_line(struct reader *r, const char *line, size_t n) {
    struct rlhf__line_reply reply = {0};
    r->why[0] = 0;
    if (r->complete) return refuse_more(r);
    if (!r->in)
        return rlhf__hello_read(line, n, &r->lines->hello, r->why) ? RLHF__TAKEN_ALL
                                                                   : RLHF__TAKEN_NONE;
    if (!rlhf__line_reply_read(line, n, r->what, &reply, r->why)) return RLHF__TAKEN_NONE;
    const enum rlhf__taken taken = put(r, &reply);
    rlhf__line_reply_finish(&reply);
    return taken;
}

// Puts the refused line, in quotes, before the reason.
static enum rlhf__taken quote(struct reader *r, const char *line, size_t n) {
    char shown[SHOWN], why[RLHF__REPLY_WHY];
    snprintf(why, sizeof why, "%s", r->why);
    snprintf(r->why, sizeof r->why, "\"%.120s\": %.100s",
             rlhf__utf8_shown(line, n, shown, sizeof shown), why);
    return RLHF__TAKEN_NONE;
}

static enum rlhf__taken take(void *ctx, const char *bytes, size_t n) {
    struct reader *r = ctx;
    for (const char *end; (end = memchr(bytes, '\n', n));) {
        const size_t len = (size_t)(end - bytes);
        rlhf__bytes_add(&r->rest, bytes, len);
        if (r->rest.full) return RLHF__TAKEN_NONE;
        const char *line = r->rest.data ? r->rest.data : "";
        const enum rlhf__taken taken = take_line(r, line, r->rest.len);
        if (taken == RLHF__TAKEN_NONE) return r->said < 0 ? taken : quote(r, line, r->rest.len);
        r->complete = taken == RLHF__TAKEN_ALL;
        r->rest.len = 0;
        bytes += len + 1;
        n -= len + 1;
    }
    if (!n) return r->complete ? RLHF__TAKEN_ALL : RLHF__TAKEN_MORE;
    rlhf__bytes_add(&r->rest, bytes, n);
    if (r->rest.full) return RLHF__TAKEN_NONE;
    if (!r->complete && r->rest.len <= LONGEST_LINE) return RLHF__TAKEN_MORE;
    // Bytes after the answer are refused at once. They may be a line whose end never comes.
    if (r->complete)
        refuse_more(r);
    else
        refuse(r, "the line is longer than 4 MiB");
    return quote(r, r->rest.data, r->rest.len < SHOWN ? r->rest.len : SHOWN);
}

// ---- failures ----

// Reports why the exchange failed, and kills the program.
static rlhf_status give_up(struct rlhf__env_lines *l, const struct reader *r, enum rlhf__talk what,
                           const char *where, rlhf_status status) {
    char text[1024];
    struct rlhf__program *p = &l->program;
    if (what == RLHF__TALK_CANCELLED || r->said < 0 || r->rest.full) {
        rlhf__program_kill(p);
        if (r->rest.full) return (l->host->fail)(l->host, RLHF_E_NOMEM, "out of memory");
        return r->said < 0 ? r->said : RLHF_E_CANCELLED;
    }
    if (what == RLHF__TALK_REFUSED)
        snprintf(text, sizeof text, "%s answered %s %s", p->name, where, r->why);
    else
        rlhf__talk_why(p, what, where, text, sizeof text);
    rlhf__program_kill(p);
    return (l->host->fail)(l->host, status, text);
}

rlhf_status rlhf__lines_start(struct rlhf__env_lines *l, rlhf_status status) {
    struct reader r = {.lines = l, .rest = {.host = l->host}};
    struct rlhf__exchange x = {.take = take, .ctx = &r};
    struct rlhf__hello before = l->hello;
    RLHF_TRY(rlhf__program_start(&l->program));
    l->hello = (struct rlhf__hello){0};
    l->closed.len = 0;
    l->starts++;
    const enum rlhf__talk what = rlhf__talk(&l->program, &x);
    rlhf_status st = RLHF_OK;
    if (what != RLHF__TALK_DONE) st = give_up(l, &r, what, l->doing, status);
    rlhf__bytes_finish(&r.rest);
    if (!before.tools && l->starts == 1) return st;
    // The program declared its tools at its first start, and they do not change.
    rlhf__hello_finish(&l->hello);
    l->hello = before;
    return st;
}

// ---- a call ----

static rlhf_status start_again(struct rlhf__env_lines *l) {
    struct rlhf__program *p = &l->program;
    char text[1024], shown[SHOWN];
    if (p->process && !rlhf__program_has_ended(p)) {
        const size_t n = rlhf__talk_unasked(p, text, sizeof text);
        if (!n) return RLHF_OK;
        rlhf__program_kill(p);
        return rlhf_failf(l->host, RLHF_E_IO, "%s wrote \"%s\" before it was asked", p->name,
                          rlhf__utf8_shown(text, n, shown, sizeof shown));
    }
    if (p->process) {
        rlhf__said_read(&p->said, p->host, p->process->err);
        rlhf__talk_why(p, RLHF__TALK_ENDED, "between two calls", text, sizeof text);
        l->host->log(l->host, RLHF_LOG_WARN, text);
        rlhf__program_kill(p);
    }
    rlhf_logf(l->host, RLHF_LOG_INFO, "%s is started again", p->name);
    return rlhf__lines_start(l, RLHF_E_IO);
}

// Writes the lines of all episodes that this program plays; the others have failed.
static void write_lines(struct rlhf__env_lines *l, struct reader *r, struct rlhf__bytes *to) {
    rlhf__bytes_add(to, l->closed.data, l->closed.len);
    l->closed.len = 0;
    for (uint32_t i = 0; i < r->in->n; i++) {
        struct rlhf__lines_state *s = r->in->state[i];
        if (r->what == RLHF__ASKED_RESET)
            *s = (struct rlhf__lines_state){r->in->episode[i], l->starts};
        if (s->start != l->starts) {
            r->out->failed[i] = r->had[i] = 1;
            continue;
        }
        rlhf__asked_line(to, r->what, r->in, i, s->episode);
        r->n_asked++;
    }
}

// Logs one line for all episodes that the program gave up in this call. When the host plays
// episodes again, they fail in separate calls. So if several calls in a row have the same reason,
// it is logged only once per phase.
static void say_failed(struct rlhf__env_lines *l, const struct reader *r) {
    char others[48] = "";
    if (!r->n_failed || strcmp(l->failed_as, r->failed_as) == 0) return;
    if (r->n_failed > 1)
        snprintf(others, sizeof others, "; it gave up %u more in this call", r->n_failed - 1);
    rlhf_logf(l->host, RLHF_LOG_WARN, "%s gave up episode %llu: %s%s", l->program.name,
              (unsigned long long)r->failed, r->failed_as, others);
    memcpy(l->failed_as, r->failed_as, sizeof l->failed_as);
}

// Marks the episodes without an answer as failed. The whole call fails instead, with `st`, if the
// program was asked about all its episodes and answered none, or if the error is not the program's
// (no memory, Ctrl-C, or an error of say()).
static rlhf_status fail_rest(struct rlhf__env_lines *l, const struct reader *r, rlhf_status st) {
    if (st == RLHF_E_NOMEM || st == RLHF_E_CANCELLED || r->said < 0) return st;
    if (r->in->n == r->n_asked && !r->n_had) return st;
    rlhf_logf(l->host, RLHF_LOG_WARN, "%s failed, with %u of %u episodes answered", l->program.name,
              r->n_had, r->n_asked);
    for (uint32_t i = 0; i < r->in->n; i++)
        if (!r->had[i]) r->out->failed[i] = 1;
    return RLHF_OK;
}

static rlhf_status exchange(struct rlhf__env_lines *l, struct reader *r,
                            const struct rlhf__bytes *to) {
    struct rlhf__exchange x = {.send = to->data, .n_send = to->len, .take = take, .ctx = r};
    char where[96];
    if (!r->n_asked) return RLHF_OK;
    snprintf(where, sizeof where, "to %s of %u episode%s (%u answered)", rlhf__asked_name(r->what),
             r->n_asked, r->n_asked > 1 ? "s" : "", r->n_had);
    const enum rlhf__talk what = rlhf__talk(&l->program, &x);
    if (what == RLHF__TALK_DONE) return RLHF_OK;
    return fail_rest(l, r, give_up(l, r, what, where, RLHF_E_IO));
}

static void new_phase(struct rlhf__env_lines *l, int64_t phase) {
    rlhf__said_show(&l->program.said, l->host, l->program.name);
    l->failed_as[0] = 0;
    l->phase = phase;
}

static rlhf_status ask(struct rlhf__env_lines *l, enum rlhf__asked what, const rlhf_episode_in *in,
                       const rlhf_episode_out *out) {
    struct reader r = {.lines = l, .rest = {.host = l->host}, .what = what, .in = in, .out = out};
    struct rlhf__bytes to = {.host = l->host};
    if (!in->n || (what == RLHF__ASKED_FINISH && !l->hello.finish)) return RLHF_OK;
    if (l->phase != in->phase) new_phase(l, in->phase);
    r.had = l->host->alloc(l->host, in->n);
    if (!r.had) return (l->host->fail)(l->host, RLHF_E_NOMEM, "out of memory");
    rlhf_status st = start_again(l);
    if (st == RLHF_OK) {
        write_lines(l, &r, &to);
        if (to.full) st = (l->host->fail)(l->host, RLHF_E_NOMEM, "out of memory for the lines");
    }
    if (st == RLHF_OK) st = exchange(l, &r, &to);
    say_failed(l, &r);
    rlhf__bytes_finish(&to);
    rlhf__bytes_finish(&r.rest);
    l->host->free(l->host, r.had);
    return st;
}

// ---- the functions of an environment ----

static const char *tools(void *self) {
    const struct rlhf__env_lines *l = self;
    return l->hello.tools;
}

static rlhf_status reset(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    return ask(self, RLHF__ASKED_RESET, in, out);
}

static rlhf_status step(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    return ask(self, RLHF__ASKED_STEP, in, out);
}

static rlhf_status finish(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    return ask(self, RLHF__ASKED_FINISH, in, out);
}

// The program learns of closed episodes with the next call.
static void close_all(void *self, const rlhf_episode_close *in) {
    struct rlhf__env_lines *l = self;
    for (uint32_t i = 0; i < in->n; i++) {
        const struct rlhf__lines_state *s = in->state[i];
        if (s->start && s->start == l->starts && l->program.process)
            rlhf__asked_close(&l->closed, s->episode);
    }
}

const void *rlhf__lines_extension(void *self, const char *id) {
    static const rlhf_program_use promises = {.size = sizeof promises, .function = 1};
    const struct rlhf__env_lines *l = self;
    const void *use = rlhf__program_extension(self, id);
    return use && l && l->hello.function ? &promises : use;
}

const rlhf_environment_ops rlhf__lines_ops = {
    .size = sizeof rlhf__lines_ops,
    .flags = RLHF_ENVIRONMENT_PAYS | RLHF_ENVIRONMENT_TASKS,
    .state_size = sizeof(struct rlhf__lines_state),
    .tools = tools,
    .reset = reset,
    .step = step,
    .finish = finish,
    .close = close_all,
};

void rlhf__lines_finish(struct rlhf__env_lines *l) {
    rlhf__program_finish(&l->program);
    rlhf__said_show(&l->program.said, l->host, NULL);
    rlhf__bytes_finish(&l->closed);
    rlhf__hello_finish(&l->hello);
}
