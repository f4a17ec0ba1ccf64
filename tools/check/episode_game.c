// episode_game.c: see episode_game.h.
#include "check/episode_game.h"

#include "base/json.h"
#include "plugin/episode_arrays.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { EPISODES = RLHF__GAME_EPISODES, SAID = 64 << 10 };

// Episodes 0 and 1 have the same seed, like rows of a group.
static const uint64_t seeds[EPISODES] = {7, 7, 1, 1099511627776, 3};

static const rlhf_environment_ops *ops_of(const struct rlhf__check *c) {
    return &c->plugin->ops.environment;
}

// ---- episodes ----

__attribute__((format(printf, 2, 3))) static void tell(struct rlhf__game_episode *e,
                                                       const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(e->told + e->n_told, SAID - e->n_told, fmt, ap);
    va_end(ap);
    if (n > 0) e->n_told += (size_t)n < SAID - e->n_told ? (size_t)n : SAID - 1 - e->n_told;
}

// Sets e->row to the data row of episode i. Uses the author's rows in turn or, if there are none,
// {"prompt": ..., "answer": ...}.
static void make_row(const struct rlhf__check *c, struct rlhf__game_episode *e, size_t i) {
    const size_t n = json_array_size(c->rows);
    char *text = n ? json_dumps(json_array_get(c->rows, i % n), 0) : NULL;
    snprintf(e->row, sizeof e->row, "%s",
             text ? text : "{\"prompt\": \"2+3=\", \"answer\": \"5\"}");
    free(text);
}

rlhf_status rlhf__game_open(struct rlhf__check *c, struct rlhf__game *g, int32_t side) {
    const size_t bytes = (size_t)ops_of(c)->state_size;
    struct rlhf__error err;
    memset(g, 0, sizeof *g);
    g->states = rlhf__guards_open(c->log);
    if (!g->states) return RLHF_E_NOMEM;
    for (size_t i = 0; i < EPISODES; i++) {
        struct rlhf__game_episode *e = &g->of[i];
        e->told = calloc(1, SAID);
        if (bytes)
            e->state = rlhf__guard_take(g->states, (bytes + 15) / 16 * 16, side,
                                        RLHF__CHECK_EPISODE_STATE, "the state of an episode");
        if (!e->told || (bytes && !e->state)) return RLHF_E_NOMEM;
        make_row(c, e, i);
        e->open = 1;
    }
    return rlhf__probe_init(c, NULL, 0, &g->probe, &err);
}

void rlhf__game_finish(struct rlhf__game *g) {
    rlhf__probe_finish(&g->probe);
    rlhf__guards_close(g->states);
    for (size_t i = 0; i < EPISODES; i++)
        free(g->of[i].told);
}

// ---- calls ----

enum { RESET = RLHF__GAME_RESET, STEP = RLHF__GAME_STEP, FINISH = RLHF__GAME_FINISH };
static const char *const names[] = {"reset()", "step()", "finish()"};

enum { WAIT_MS = 100 };

struct call {
    rlhf_episode_out out; // first member: say() casts it back
    rlhf_episode_in in;
    struct rlhf__game *game;
    uint32_t which[EPISODES]; // [in.n]
    int32_t what, said[EPISODES], answers[EPISODES];
    int32_t polls; // 1: poll() is called, for answers of the function `what`
    rlhf_status status;
    struct rlhf__error err;
};

static const char *name_of(const struct call *k) { return k->polls ? "poll()" : names[k->what]; }

static void found_as(const struct call *k, int32_t rule, uint32_t i, const char *what) {
    rlhf__child_log_found(k->game->probe.check->log, rule, "%s: episode %u %s", name_of(k),
                          k->which[i], what);
}

static void found(const struct call *k, uint32_t i, const char *what) {
    found_as(k, RLHF__CHECK_EPISODE, i, what);
}

static rlhf_status say(const rlhf_episode_out *out, uint32_t i, const rlhf_message *message) {
    static const char *const roles[] = {"", "system", "user", "assistant", "tool"};
    union {
        const rlhf_episode_out *out;
        struct call *call;
    } u = {out};
    struct call *k = u.call;
    rlhf_message m;
    char why[192];
    if (rlhf__message_read(&m, message, why, sizeof why) < 0) {
        rlhf__child_log_found(k->game->probe.check->log, RLHF__CHECK_EPISODE, "%s: %s", name_of(k),
                              why);
        return RLHF_E_INVALID;
    }
    if (i >= k->in.n) {
        rlhf__child_log_found(k->game->probe.check->log, RLHF__CHECK_EPISODE,
                              "%s: say() names episode %u of %u", name_of(k), i, k->in.n);
        return RLHF_E_INVALID;
    }
    const int calls = k->game->of[k->which[i]].calls;
    if (k->what == FINISH || m.role < RLHF_ROLE_SYSTEM || m.role > RLHF_ROLE_TOOL ||
        m.role == RLHF_ROLE_ASSISTANT || (m.role == RLHF_ROLE_SYSTEM && k->what != RESET) ||
        (m.role == RLHF_ROLE_TOOL && !calls)) {
        found(k, i, "speaks in a role that is not allowed there");
        return RLHF_E_INVALID;
    }
    k->said[i]++;
    k->answers[i] += m.role == RLHF_ROLE_TOOL;
    tell(&k->game->of[k->which[i]], "%s: %.*s\n", roles[m.role], (int)m.text.len,
         m.text.len ? m.text.ptr : "");
    return RLHF_OK;
}

static void metric(const rlhf_episode_out *out, uint32_t i, const char *name, double value,
                   double weight, int32_t combine) {
    union {
        const rlhf_episode_out *out;
        struct call *call;
    } u = {out};
    if (i >= u.call->in.n)
        rlhf__child_log_found(u.call->game->probe.check->log, RLHF__CHECK_EPISODE,
                              "%s: metric() names no episode of the call", name_of(u.call));
    else if (rlhf__probe_may_report(&u.call->game->probe, name, value, weight, combine))
        tell(&u.call->game->of[u.call->which[i]], "%s %.17g %.17g %d\n", name, value, weight,
             combine);
}

static void *lay(struct rlhf__guards *g, const void *from, size_t n, int32_t side, int32_t rule,
                 const char *what) {
    void *at = rlhf__guard_take(g, n, side, rule, what);
    if (at && from && n) memcpy(at, from, n);
    return at;
}

// Returns a turn of the policy. All episodes go through the same list of turns, and each begins at
// a different place in the list.
static rlhf_str turn_text(uint32_t episode, int32_t turn) {
    static const rlhf_str turns[] = {
        {"1", 1}, {"", 0}, {"32", 2}, {"\xff\x00\xfe", 3}, {"yes.\n", 5}, {"\xf0\x9f\x98\x80 a", 6},
        {"{}", 2}};
    return turns[((size_t)episode + (size_t)turn) % (sizeof turns / sizeof *turns)];
}

// Lays out the arrays of a call in guarded memory: `g` for the inputs, `h` for the outputs. Returns
// 0 if out of memory.
static int lay_call(struct call *k, struct rlhf__guards *g, struct rlhf__guards *h, int32_t side) {
    const uint32_t n = k->in.n;
    void *state[EPISODES] = {NULL};
    uint64_t number[EPISODES] = {0}, seed[EPISODES] = {0};
    int32_t turn[EPISODES] = {0}, offset[EPISODES + 1] = {0};
    rlhf_str meta[EPISODES], text[EPISODES];
    rlhf_tool_call call[EPISODES];
    uint8_t end[EPISODES] = {0};
    for (uint32_t i = 0; i < n; i++) {
        struct rlhf__game_episode *e = &k->game->of[k->which[i]];
        const rlhf_str said = k->polls           ? (rlhf_str){NULL, 0}
                              : k->what == STEP  ? turn_text(k->which[i], e->turn)
                              : k->what == RESET ? (rlhf_str){"2+3=", 4}
                                                 : (rlhf_str){NULL, 0};
        state[i] = e->state;
        number[i] = k->which[i];
        seed[i] = seeds[k->which[i]];
        turn[i] = e->turn;
        end[i] = k->what == FINISH ? e->end : RLHF_EPISODE_OPEN;
        meta[i] = (rlhf_str){lay(g, e->row, strlen(e->row), side, RLHF__CHECK_TEXT, "in->meta"),
                             strlen(e->row)};
        text[i] = (rlhf_str){lay(g, said.ptr, (size_t)said.len, side, RLHF__CHECK_TEXT, "in->text"),
                             said.len};
        offset[i + 1] = offset[i];
        if (!k->polls) e->calls = k->what == STEP && *k->game->tool && e->turn % 2 == 1;
        if (!k->polls && e->calls)
            call[offset[i + 1]++] =
                (rlhf_tool_call){{k->game->tool, strlen(k->game->tool)},
                                 {k->game->arguments, strlen(k->game->arguments)}};
    }
    const int32_t borrowed = RLHF__CHECK_BORROWED, outside = RLHF__CHECK_EPISODE_OUTSIDE;
    k->in = (rlhf_episode_in){
        .n = n,
        .wait_ms = k->polls ? WAIT_MS : 0,
        .state = lay(g, state, n * sizeof *state, side, borrowed, "in->state"),
        .episode = lay(g, number, n * sizeof *number, side, borrowed, "in->episode"),
        .seed = lay(g, seed, n * sizeof *seed, side, borrowed, "in->seed"),
        .turn = lay(g, turn, n * sizeof *turn, side, borrowed, "in->turn"),
        .meta = lay(g, meta, n * sizeof *meta, side, borrowed, "in->meta"),
        .text = lay(g, text, n * sizeof *text, side, borrowed, "in->text"),
        .call_offset = lay(g, offset, (n + 1) * sizeof *offset, side, borrowed, "in->call_offset"),
        .call = lay(g, call, (size_t)offset[n] * sizeof *call, side, borrowed, "in->call"),
        .end = lay(g, end, n, side, borrowed, "in->end")};
    k->out = (rlhf_episode_out){
        .reward = rlhf__guard_take(h, n * sizeof(float), side, outside, "out->reward"),
        .end = rlhf__guard_take(h, n, side, outside, "out->end"),
        .verdict = rlhf__guard_take(h, n, side, outside, "out->verdict"),
        .failed = rlhf__guard_take(h, n, side, outside, "out->failed"),
        .later = rlhf__guard_take(h, n, side, outside, "out->later"),
        .say = say,
        .metric = metric};
    return k->in.state && k->in.text && k->in.call_offset && k->in.call && k->out.reward &&
           k->in.end && k->out.end && k->out.verdict && k->out.failed && k->out.later;
}

static void *run(void *arg) {
    struct call *k = arg;
    const struct rlhf__check *c = k->game->probe.check;
    const rlhf_environment_ops *ops = ops_of(c);
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_episode_in, &k->in, c->plugin->abi_minor, &tails);
    RLHF__LEND(rlhf_episode_out, &k->out, c->plugin->abi_minor, &tails);
    rlhf_status (*const f[])(void *, const rlhf_episode_in *,
                             const rlhf_episode_out *) = {ops->reset, ops->step, ops->finish};
    rlhf__probe_begin(&k->game->probe, name_of(k));
    const rlhf_status st =
        (k->polls ? ops->poll : f[k->what])(k->game->probe.self, &k->in, &k->out);
    rlhf__guard_kept(&tails, c->log);
    k->status = rlhf__probe_end(&k->game->probe, st, &k->err);
    return NULL;
}

// Checks the call's results for its i-th episode, and appends them to the text that is compared.
static void take(struct call *k, uint32_t i) {
    struct rlhf__game_episode *e = &k->game->of[k->which[i]];
    e->later = 0;
    if (k->out.failed[i] > 1) found(k, i, "has an out->failed that is neither 0 nor 1");
    if (k->out.later[i] > 1)
        found_as(k, RLHF__CHECK_EPISODE_LATER, i, "has an out->later that is neither 0 nor 1");
    if (k->out.failed[i]) {
        e->bad = 1;
        e->open = 0;
        return;
    }
    if (k->out.later[i]) {
        e->later = ops_of(k->game->probe.check)->poll != NULL;
        if (!e->later)
            found_as(k, RLHF__CHECK_EPISODE_LATER, i, "is to be answered later, without a poll()");
        if (k->said[i] || k->out.end[i] || k->out.verdict[i] || k->out.reward[i] != 0)
            found_as(k, RLHF__CHECK_EPISODE_LATER, i,
                     "is to be answered later, but has a part of its answer");
        if (!e->later) e->bad = 1;
        if (!e->later) e->open = 0;
        return;
    }
    if (k->out.verdict[i] > RLHF_VERDICT_WRONG) found(k, i, "has an unknown verdict");
    if (k->out.end[i] > RLHF_EPISODE_TRUNCATED)
        found(k, i, "has an end that an environment cannot give");
    if (k->what == RESET && k->out.end[i]) found(k, i, "ended before its first turn");
    if (k->what == RESET && k->out.reward[i] != 0) found(k, i, "has a reward in reset()");
    if (k->what == STEP && !k->out.end[i] && !k->said[i])
        found(k, i, "stays open, but says nothing");
    if (k->what == STEP && !k->out.end[i] && k->answers[i] != e->calls)
        found(k, i, "does not answer each tool call once");
    if (k->what != FINISH && k->out.verdict[i] && !k->out.end[i])
        found(k, i, "stays open, but has a verdict");
    if (k->what == FINISH && k->out.end[i]) found(k, i, "is ended by finish()");
    tell(e, "= %.9g, end %d, verdict %d\n", (double)k->out.reward[i], k->out.end[i],
         k->out.verdict[i]);
    if (k->what == RESET) e->n_reset = e->n_told;
    if (k->what != FINISH) e->end = k->out.end[i];
    if (e->end) e->open = 0;
}

// Calls a function for the n episodes in `which`, on another thread if `elsewhere` is 1. If `polls`
// is 1, calls poll() for the answers of the function.
static rlhf_status ask(struct rlhf__game *g, int32_t what, int32_t polls, const uint32_t *which,
                       uint32_t n, int32_t side, int elsewhere) {
    struct rlhf__check *c = g->probe.check;
    struct call k = {.game = g, .what = what, .polls = polls, .status = RLHF_OK};
    pthread_t thread;
    memcpy(k.which, which, n * sizeof *which);
    k.in.n = n;
    struct rlhf__guards *in = rlhf__guards_open(c->log), *out = rlhf__guards_open(c->log);
    for (uint32_t i = 0; what == STEP && !polls && i < n; i++)
        g->of[which[i]].turn++;
    if (in && out && lay_call(&k, in, out, side)) {
        rlhf__guards_protect(in);
        if (!elsewhere || pthread_create(&thread, NULL, run, &k) != 0)
            run(&k);
        else
            pthread_join(thread, NULL);
        for (uint32_t i = 0; k.status == RLHF_OK && i < n; i++)
            take(&k, i);
    } else {
        k.status = RLHF_E_NOMEM;
    }
    if (k.status < 0 && !rlhf__probe_starved(&g->probe))
        rlhf__child_log_fact(c->log, "%s failed, so what follows was not tested: %s", name_of(&k),
                             k.err.text);
    rlhf__guards_close(in);
    rlhf__guards_close(out);
    return k.status;
}

rlhf_status rlhf__game_ask(struct rlhf__game *g, int32_t what, const uint32_t *which, uint32_t n,
                           int32_t side, int elsewhere) {
    const rlhf_environment_ops *ops = ops_of(g->probe.check);
    uint32_t left[EPISODES], n_left = n;
    if (!n || (what == RESET && !ops->reset) || (what == FINISH && !ops->finish)) return RLHF_OK;
    rlhf_status st = ask(g, what, 0, which, n, side, elsewhere);
    while (st == RLHF_OK && n_left) {
        n_left = 0;
        for (uint32_t i = 0; i < n; i++)
            if (g->of[which[i]].later) left[n_left++] = which[i];
        if (n_left) st = ask(g, what, 1, left, n_left, side, elsewhere);
    }
    return st;
}
