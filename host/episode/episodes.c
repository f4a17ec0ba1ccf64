// episodes.c: see episodes.h.
#include "episode/episodes.h"

#include "episode/again.h"
#include "episode/call.h"
#include "episode/rewritten.h"
#include "tokenizer/bridge.h"

#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 100 }; // Ctrl-C is noticed after this time

struct rlhf__episodes {
    struct rlhf__episodes_request q;
    struct rlhf__gen_turns turns;
    struct rlhf__speaking speaking;
    struct rlhf__asking asking;
    struct rlhf__rewriting rewriting;
    struct rlhf__episode *of;       // [n]
    struct rlhf__episode **waiting; // [n] the episodes of one call
    const int32_t **prompt;         // [n]
    int32_t *prompt_len;            // [n]
    uint32_t ready; // episodes that the decoder can go on with since the last call of advance()
};

// ---- what a run's episodes share ----

rlhf_status rlhf__episode_check_template(const struct rlhf__episode_setup *s,
                                         struct rlhf__error *err) {
    const int tools = s->tools.list && !s->tools.marked;
    if (!s->chat || rlhf__bridge_check(s->model->tok, tools, err) == RLHF_OK) return RLHF_OK;
    return rlhf__error_context(err, "%s", s->environment->plugin->file);
}

// Only the first COMPARED episodes of a batch are checked for turns that the chat template
// rewrites, because rendering conversations takes time. If rewritten turns are refused, all
// episodes are checked.
enum { COMPARED = 64 };

static int is_compared(const struct rlhf__episodes *x, const struct rlhf__episode *e) {
    return x->rewriting.refuses || e - x->of < COMPARED;
}

// ---- calls ----

static const struct rlhf__instance *environment(const struct rlhf__episodes *x) {
    return x->q.setup->environment;
}

// Fill x->waiting with the episodes that want this and whose `answer` equals the argument. Returns
// their number.
static uint32_t list(const struct rlhf__episodes *x, int32_t wants, int32_t answer) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->q.n; i++)
        if (x->of[i].wants == wants && x->of[i].answer == answer) x->waiting[n++] = &x->of[i];
    return n;
}

// Ask the environment about the episodes that want this. Afterwards x->waiting has the episodes
// whose answer is there, also those that were asked before. Sets *n to their number.
static rlhf_status ask(struct rlhf__episodes *x, int32_t wants, int function, uint32_t *n,
                       struct rlhf__error *err) {
    *n = list(x, wants, RLHF__ANSWER_NONE);
    if (*n) RLHF_TRY(rlhf__episode_ask(&x->asking, function, 0, x->waiting, *n, err));
    *n = list(x, wants, RLHF__ANSWER_HERE);
    return RLHF_OK;
}

// Ask for the answers that come later, and wait up to wait_ms for one. Sets *n to the number of
// those that were missing.
static rlhf_status poll(struct rlhf__episodes *x, uint32_t wait_ms, uint32_t *n,
                        struct rlhf__error *err) {
    *n = 0;
    for (uint32_t i = 0; i < x->q.n; i++)
        if (x->of[i].answer == RLHF__ANSWER_LATER) x->waiting[(*n)++] = &x->of[i];
    if (*n == 0) return RLHF_OK;
    return rlhf__episode_ask(&x->asking, RLHF__CALL_POLL, wait_ms, x->waiting, *n, err);
}

// Called when an answer was used. `wants` is the next want of the episode.
static void go_on(struct rlhf__episodes *x, struct rlhf__episode *e, int32_t wants) {
    e->answer = RLHF__ANSWER_NONE;
    e->wants = wants;
    x->ready += wants == RLHF__WANTS_READING || wants == RLHF__WANTS_NOTHING;
}

static rlhf_status named(const struct rlhf__episodes *x, rlhf_status st, struct rlhf__error *err) {
    return st == RLHF_E_INVALID ? rlhf__error_context(err, "%s", environment(x)->plugin->file) : st;
}

static int same(const struct rlhf__ids *a, const struct rlhf__ids *b) {
    return a->n == b->n && memcmp(a->data, b->data, a->n * sizeof *a->data) == 0;
}

// If row i has the same prompt as the first row of its group, let row i share that row's ids. A
// different prompt is an error unless episodes.starts allows it.
static rlhf_status share_prompt(const struct rlhf__episodes *x, uint32_t i,
                                struct rlhf__error *err) {
    uint32_t first = i / x->q.group * x->q.group;
    while (x->of[first].lost)
        first++;
    struct rlhf__ids *own = &x->of[i].read, *of = &x->of[first].prompt;
    const int shared = i != first && same(own, of);
    if (i == first || (!shared && x->q.setup->any_start)) {
        of = &x->of[i].prompt; // a reply will overwrite `read`, but the prompt has to stay
        *of = *own;
        *own = (struct rlhf__ids){.n = 0};
    }
    x->prompt[i] = of->data;
    x->prompt_len[i] = (int32_t)of->n;
    if (i == first || shared || x->q.setup->any_start) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INTERNAL,
                      "environment %s, reset(), phase %lld: episodes %llu and %llu have the same "
                      "seed and data row, but begin with different texts; begin them by the seed, "
                      "or set episodes.starts=any, if the run need not be repeatable",
                      rlhf__plugin_name(environment(x)->plugin), (long long)x->q.phase + 1,
                      (unsigned long long)x->of[first].number, (unsigned long long)x->of[i].number);
}

// Returns 1 if the episode was given up. In that case, also closes the episode, and sets an empty
// prompt if its row still lacks one.
static int gone(struct rlhf__episodes *x, struct rlhf__episode *e) {
    static const int32_t nothing = 0;
    const size_t i = (size_t)(e - x->of);
    if (!e->lost) return 0;
    rlhf__episode_close(environment(x), &e, 1);
    go_on(x, e, RLHF__WANTS_NOTHING);
    if (!x->prompt[i]) x->prompt[i] = &nothing;
    return 1;
}

// Returns 1 if episodes of e's group still wait for their answer.
static int is_group_open(const struct rlhf__episodes *x, const struct rlhf__episode *e) {
    const uint32_t first = (uint32_t)(e - x->of) / x->q.group * x->q.group;
    for (uint32_t i = first; i < first + x->q.group && i < x->q.n; i++)
        if (x->of[i].answer == RLHF__ANSWER_LATER) return 1;
    return 0;
}

// The rows of a group begin together, because they share their prompt.
static rlhf_status reset(struct rlhf__episodes *x, struct rlhf__error *err) {
    uint32_t n;
    RLHF_TRY(ask(x, RLHF__WANTS_RESET, RLHF__CALL_RESET, &n, err));
    for (uint32_t k = 0; k < n; k++) {
        struct rlhf__episode *e = x->waiting[k];
        const uint32_t i = (uint32_t)(e - x->of);
        if (is_group_open(x, e)) continue;
        if (gone(x, e)) continue;
        RLHF_TRY(named(
            x, rlhf__speak_prompt(&x->speaking, &x->q.setup->limits, e, x->q.row[i], err), err));
        RLHF_TRY(share_prompt(x, i, err));
        e->tokens = x->prompt_len[i];
        go_on(x, e, RLHF__WANTS_READING);
    }
    return RLHF_OK;
}

// Decide what follows a turn that was answered.
static rlhf_status follow(struct rlhf__episodes *x, struct rlhf__episode *e,
                          struct rlhf__error *err) {
    const struct rlhf__episode_limits *l = &x->q.setup->limits;
    if (e->end == RLHF_EPISODE_OPEN && e->turns == l->turns) e->end = RLHF_EPISODE_TURNS;
    if (e->end == RLHF_EPISODE_OPEN) {
        RLHF_TRY(named(x, rlhf__speak_reply(&x->speaking, l, e, err), err));
        if (e->tokens + (int32_t)e->read.n >= l->tokens || (int32_t)e->read.n > l->reply)
            e->end = RLHF_EPISODE_LENGTH;
    }
    if (e->end == RLHF_EPISODE_OPEN) {
        e->tokens += (int32_t)e->read.n;
        if (is_compared(x, e)) RLHF_TRY(rlhf__rewritten_note(&x->rewriting, e, err));
    }
    go_on(x, e, e->end == RLHF_EPISODE_OPEN ? RLHF__WANTS_READING : RLHF__WANTS_FINISH);
    return RLHF_OK;
}

// Answer the turns that have wrong tool calls. The environment answers the other turns.
static rlhf_status refuse(struct rlhf__episodes *x, struct rlhf__error *err) {
    const uint32_t n = list(x, RLHF__WANTS_REFUSAL, RLHF__ANSWER_NONE);
    for (uint32_t k = 0; k < n; k++) {
        RLHF_TRY(rlhf__episode_tools_refuse(x->waiting[k], err));
        RLHF_TRY(follow(x, x->waiting[k], err));
    }
    return RLHF_OK;
}

static rlhf_status step(struct rlhf__episodes *x, struct rlhf__error *err) {
    uint32_t n;
    RLHF_TRY(ask(x, RLHF__WANTS_STEP, RLHF__CALL_STEP, &n, err));
    for (uint32_t k = 0; k < n; k++)
        if (!gone(x, x->waiting[k])) RLHF_TRY(follow(x, x->waiting[k], err));
    return RLHF_OK;
}

static rlhf_status finish(struct rlhf__episodes *x, struct rlhf__error *err) {
    uint32_t n;
    RLHF_TRY(ask(x, RLHF__WANTS_FINISH, RLHF__CALL_FINISH, &n, err));
    rlhf__episode_close(environment(x), x->waiting, n);
    for (uint32_t k = 0; k < n; k++) {
        go_on(x, x->waiting[k], RLHF__WANTS_NOTHING);
        RLHF_TRY(rlhf__rewritten_count(&x->rewriting, x->waiting[k], err));
    }
    return RLHF_OK;
}

// ---- for the decoder ----

// Requests reset() for the whole group, so that its rows can share their prompt.
static rlhf_status begin(void *ctx, uint32_t i, struct rlhf__error *err) {
    struct rlhf__episodes *x = ctx;
    const uint32_t first = i / x->q.group * x->q.group;
    (void)err;
    for (uint32_t k = first; k < first + x->q.group && k < x->q.n; k++)
        if (x->of[k].wants == RLHF__WANTS_SLOT) x->of[k].wants = RLHF__WANTS_RESET;
    return RLHF_OK;
}

// Set *out to the text of a turn, without the stop text that ended the turn.
static rlhf_status decode(const struct rlhf__episodes *x, const int32_t *ids, int32_t n,
                          uint32_t flags, struct rlhf__buf *out, struct rlhf__error *err) {
    const struct rlhf__episode_setup *s = x->q.setup;
    size_t len = 0;
    char *text = rlhf__tokenizer_text(s->model->tok, ids, (size_t)n, flags, &len);
    if (!text) return RLHF__NOMEM(err, "out of memory for a turn of %d tokens", n);
    if (s->rules) len = rlhf__response_text_end(s->rules, text, len);
    rlhf__buf_clear(out);
    rlhf__buf_put(out, text, len);
    free(text);
    return rlhf__buf_ok(out, err);
}

// Read a turn: the text that the environment gets, without special tokens, and the tool calls. The
// tool calls are parsed from a text that keeps the special tokens, because a template may mark tool
// calls with special tokens.
static rlhf_status read_turn(const struct rlhf__episodes *x, struct rlhf__episode *e,
                             const int32_t *ids, int32_t n, int stopped, struct rlhf__error *err) {
    const struct rlhf__episode_setup *s = x->q.setup;
    RLHF_TRY(decode(x, ids, n, RLHF__DECODE_SKIP_SPECIAL, &e->text, err));
    const int32_t ended = stopped && rlhf__tokenizer_is_special(s->model->tok, ids[n - 1]);
    RLHF_TRY(decode(x, ids, n - ended, 0, &e->whole, err));
    const rlhf_str text = {rlhf__buf_text(&e->whole), e->whole.len};
    return rlhf__episode_tools_read(&s->tools, e, text, err);
}

static rlhf_status ended(void *ctx, uint32_t i, const int32_t *ids, int32_t n, int stopped,
                         struct rlhf__error *err) {
    struct rlhf__episodes *x = ctx;
    struct rlhf__episode *e = &x->of[i];
    RLHF_TRY(read_turn(x, e, ids, n, stopped, err));
    e->turns++;
    e->tokens += n;
    e->closed = rlhf__ends_has(&x->q.setup->model->ends, ids[n - 1]);
    if (!stopped) e->end = RLHF_EPISODE_TURN_LENGTH; // an unfinished turn is not answered
    e->wants = !stopped          ? RLHF__WANTS_FINISH
               : e->calls.faults ? RLHF__WANTS_REFUSAL
                                 : RLHF__WANTS_STEP;
    return RLHF_OK;
}

static rlhf_status advance(void *ctx, int wait, struct rlhf__error *err) {
    struct rlhf__episodes *x = ctx;
    const rlhf_host *host = environment(x)->host;
    uint32_t left;
    x->ready = 0;
    RLHF_TRY(poll(x, 0, &left, err));
    for (;;) {
        RLHF_TRY(reset(x, err));
        RLHF_TRY(refuse(x, err));
        RLHF_TRY(step(x, err));
        RLHF_TRY(finish(x, err));
        if (!wait || x->ready) return RLHF_OK;
        if (host->cancelled(host)) return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        RLHF_TRY(poll(x, WAIT_MS, &left, err));
        if (left == 0) return RLHF_OK;
    }
}

static int next(void *ctx, uint32_t i, const int32_t **ids, int32_t *n) {
    const struct rlhf__episodes *x = ctx;
    const struct rlhf__episode *e = &x->of[i];
    *ids = e->read.data;
    *n = (int32_t)e->read.n;
    return e->wants == RLHF__WANTS_NOTHING   ? RLHF__GEN_OVER
           : e->wants == RLHF__WANTS_READING ? RLHF__GEN_READ
                                             : RLHF__GEN_WAIT;
}

// ---- life ----

static rlhf_status open_all(struct rlhf__episodes *x, struct rlhf__error *err) {
    const struct rlhf__episodes_request *q = &x->q;
    const uint64_t bytes = environment(x)->plugin->ops.environment.state_size;
    x->of = calloc((size_t)q->n + 1, sizeof *x->of);
    x->waiting = calloc((size_t)q->n + 1, sizeof(struct rlhf__episode *));
    x->prompt = calloc((size_t)q->n + 1, sizeof(int32_t *));
    x->prompt_len = calloc((size_t)q->n + 1, sizeof *x->prompt_len);
    if (!x->of || !x->waiting || !x->prompt || !x->prompt_len)
        return RLHF__NOMEM(err, "out of memory for %u episodes", q->n);
    for (uint32_t i = 0; i < q->n; i++) {
        const struct rlhf__prompt p = rlhf__prompts_get(q->setup->prompts, q->row[i]);
        RLHF_TRY(rlhf__episode_init(&x->of[i], q->setup->limits.turns, bytes, err));
        x->of[i].number = q->first + i;
        x->of[i].seed =
            rlhf__episode_seed(q->setup->seed, q->stream, q->first + i / q->group * q->group);
        x->of[i].meta = p.meta;
        if (!q->setup->alone) rlhf__buf_put(&x->of[i].text, p.text.ptr, (size_t)p.text.len);
        RLHF_TRY(rlhf__buf_ok(&x->of[i].text, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__episodes_open(const struct rlhf__episodes_request *q, struct rlhf__episodes **out,
                                struct rlhf__error *err) {
    const struct rlhf__episode_setup *s = q->setup;
    *out = NULL;
    struct rlhf__episodes *x = calloc(1, sizeof *x);
    if (!x) return RLHF__NOMEM(err, "out of memory for %u episodes", q->n);
    x->q = *q;
    if (x->q.group == 0) x->q.group = 1;
    x->turns = (struct rlhf__gen_turns){.ctx = x,
                                        .longest = s->limits.tokens,
                                        .begin = begin,
                                        .ended = ended,
                                        .advance = advance,
                                        .next = next};
    x->speaking =
        (struct rlhf__speaking){.tok = s->model->tok,
                                .prompts = s->prompts,
                                .field = s->field,
                                .alone = s->alone,
                                .chat = s->chat,
                                .bos = s->bos ? rlhf__tokenizer_info(s->model->tok)->bos : -1,
                                .tools = &s->tools};
    x->rewriting =
        (struct rlhf__rewriting){.chat = s->chat ? rlhf__tokenizer_chat(s->model->tok) : NULL,
                                 .tools = &s->tools,
                                 .refuses = s->refuses};
    x->asking = (struct rlhf__asking){.environment = s->environment,
                                      .phase = q->phase,
                                      .timeout_s = s->timeout_s,
                                      .retries = s->retries,
                                      .drops = s->drops};
    const rlhf_status st = open_all(x, err);
    if (st == RLHF_OK)
        *out = x;
    else
        rlhf__episodes_close(x);
    return st;
}

void rlhf__episodes_close(struct rlhf__episodes *x) {
    if (!x) return;
    for (uint32_t i = 0; x->of && i < x->q.n; i++) {
        struct rlhf__episode *e = &x->of[i];
        rlhf__episode_close(environment(x), &e, 1);
        rlhf__episode_finish(e);
    }
    free(x->of);
    free(x->waiting);
    free(x->prompt);
    free(x->prompt_len);
    free(x);
}

const struct rlhf__gen_turns *rlhf__episodes_turns(const struct rlhf__episodes *x) {
    return &x->turns;
}

const int32_t *const *rlhf__episodes_prompt(const struct rlhf__episodes *x) { return x->prompt; }

const int32_t *rlhf__episodes_prompt_len(const struct rlhf__episodes *x) { return x->prompt_len; }

struct rlhf__episode_counts rlhf__episodes_counts(const struct rlhf__episodes *x) {
    struct rlhf__episode_counts c = {.cut = x->speaking.cut,
                                     .specials = x->speaking.specials,
                                     .failures = x->asking.failures,
                                     .lost = x->asking.lost,
                                     .seconds = x->asking.seconds,
                                     .past = x->rewriting.past,
                                     .rewritten = x->rewriting.rewritten,
                                     .chat = x->rewriting.chat != NULL,
                                     .tools = x->q.setup->tools.list != NULL};
    for (uint32_t i = 0; i < x->q.n; i++) {
        c.forged += x->of[i].n_forged;
        c.calls += x->of[i].n_calls;
        c.faults += x->of[i].n_faults;
    }
    return c;
}

// ---- afterwards ----

// The reward of a turn is stored at the turn's last token.
static void take_paid(const struct rlhf__episode *e, struct rlhf__rows *rows, uint32_t i) {
    const int32_t end = rows->offset[i + 1];
    for (int32_t t = rows->offset[i] + rows->prompt_len[i]; t < end; t++) {
        const int32_t turn = rows->turn[t];
        if (turn >= 0 && turn < e->turns && (t + 1 == end || rows->turn[t + 1] != turn))
            rows->paid[t] = e->paid[turn];
    }
}

int rlhf__episodes_is_lost(const struct rlhf__episodes *x, uint32_t i) { return x->of[i].lost; }

void rlhf__episodes_take(const struct rlhf__episodes *x, struct rlhf__rows *rows) {
    const rlhf_host *host = environment(x)->host;
    // The environment reported the metrics during its calls, so they count as reported in one.
    const struct rlhf__call call = rlhf__call_begin(environment(x), "its episodes");
    for (uint32_t i = 0; i < x->q.n && i < rows->n; i++) {
        const struct rlhf__episode *e = &x->of[i];
        rows->end[i] = e->end;
        rows->finished[i] = e->end == RLHF_EPISODE_DONE;
        rows->verdict[i] = e->verdict;
        take_paid(e, rows, i);
        for (uint32_t k = 0; host && !e->lost && k < e->n_metrics; k++)
            host->metric(host, e->metric[k].name, e->metric[k].value, e->metric[k].weight,
                         e->metric[k].combine);
    }
    rlhf__call_end(&call, RLHF_OK, NULL);
}
