// call.c: see call.h.
#include "episode/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"reset()", "step()", "finish()"};

// The arrays of a call. Each is in one block with its neighbors of the same type.
struct arrays {
    rlhf_episode_out out; // first member: say() and metric() cast it back
    rlhf_episode_in in;
    const struct rlhf__instance *environment;
    struct rlhf__episode *const *of;
    int32_t function, reserved;
    void **state;
    uint64_t *numbers;
    int32_t *turns;
    rlhf_str *texts;
    uint8_t *bytes;
    float *paid;
    rlhf_tool_call *calls; // [n_calls + 1]
    char **arguments;      // [n_calls] owned
    size_t n_calls;
};

static rlhf_status refuse(const struct arrays *a, const char *why) {
    const rlhf_host *host = a->environment->host;
    return host ? (host->fail)(host, RLHF_E_INVALID, why) : RLHF_E_INVALID;
}

// The calls that episode i's turn has, in step().
static size_t calls_of(const struct arrays *a, uint32_t i) {
    return a->function == RLHF__CALL_STEP ? a->of[i]->calls.n : 0;
}

static rlhf_status say(const rlhf_episode_out *out, uint32_t i, int32_t role, rlhf_str text) {
    const struct arrays *a = (const struct arrays *)out;
    if (i >= a->in.n) return refuse(a, "say() names an episode that is not in this call");
    if (a->function == RLHF__CALL_FINISH) return refuse(a, "finish() says something");
    if (role == RLHF_ROLE_TOOL && calls_of(a, i) == 0)
        return refuse(a, "it speaks as a tool, but the policy has called none");
    if (role != RLHF_ROLE_USER && role != RLHF_ROLE_TOOL &&
        !(role == RLHF_ROLE_SYSTEM && a->function == RLHF__CALL_RESET))
        return refuse(a, "say() has a role that is not allowed there");
    const rlhf_status st = rlhf__episode_say(a->of[i], role, text);
    return st == RLHF_E_INVALID ? refuse(a, "it says more than 32 messages in one call") : st;
}

static void metric(const rlhf_episode_out *out, uint32_t i, const char *name, double value) {
    const struct arrays *a = (const struct arrays *)out;
    if (i < a->in.n && name) rlhf__episode_metric(a->of[i], name, value);
}

static void arrays_finish(struct arrays *a) {
    free(a->state);
    free(a->numbers);
    free(a->turns);
    free(a->texts);
    free(a->bytes);
    free(a->paid);
    for (size_t k = 0; a->calls && k < a->n_calls; k++)
        free(a->arguments[k]);
    free(a->arguments);
    free(a->calls);
}

// List the calls of all turns.
static rlhf_status add_calls(struct arrays *a, uint32_t n, struct rlhf__error *err) {
    size_t all = 0;
    for (uint32_t i = 0; i < n; i++)
        all += calls_of(a, i);
    a->calls = calloc(all + 1, sizeof *a->calls);
    a->arguments = calloc(all + 1, sizeof(char *));
    if (!a->calls || !a->arguments) return RLHF__NOMEM(err, "out of memory for %zu calls", all);
    for (uint32_t i = 0; i < n; i++) {
        for (size_t k = 0; k < calls_of(a, i); k++) {
            const struct rlhf__called *c = &a->of[i]->calls.item[k];
            char *text = json_dumps(c->arguments, 0);
            if (!text) return RLHF__NOMEM(err, "out of memory for %zu calls", all);
            a->arguments[a->n_calls] = text;
            a->calls[a->n_calls++] =
                (rlhf_tool_call){.name = {json_string_value(c->name), json_string_length(c->name)},
                                 .arguments = {text, strlen(text)}};
        }
        a->turns[n + i + 1] = (int32_t)a->n_calls; // call_offset
    }
    return RLHF_OK;
}

static rlhf_status arrays_init(struct arrays *a, uint32_t n, struct rlhf__error *err) {
    a->state = calloc(n, sizeof *a->state);
    a->numbers = calloc(2 * (size_t)n, sizeof *a->numbers);
    a->turns = calloc(2 * (size_t)n + 1, sizeof *a->turns);
    a->texts = calloc(2 * (size_t)n, sizeof *a->texts);
    a->bytes = calloc(4 * (size_t)n, 1);
    a->paid = calloc(n, sizeof *a->paid);
    if (a->state && a->numbers && a->turns && a->texts && a->bytes && a->paid)
        return add_calls(a, n, err);
    return RLHF__NOMEM(err, "out of memory for %u episodes", n);
}

static void fill(struct arrays *a, uint32_t n, int64_t phase) {
    uint8_t *ended = a->bytes + 3 * (size_t)n;
    for (uint32_t i = 0; i < n; i++) {
        struct rlhf__episode *e = a->of[i];
        e->seen = 1;
        e->failed = 0;
        e->n_said = 0;
        a->state[i] = e->state;
        a->numbers[i] = e->number;
        a->numbers[n + i] = e->seed;
        a->turns[i] = e->turns;
        a->texts[i] = e->meta;
        ended[i] = e->end;
        if (a->function != RLHF__CALL_FINISH)
            a->texts[n + i] = (rlhf_str){rlhf__buf_text(&e->text), e->text.len};
    }
    a->in = (rlhf_episode_in){.size = sizeof a->in,
                              .n = n,
                              .phase = phase,
                              .state = a->state,
                              .episode = a->numbers,
                              .seed = a->numbers + n,
                              .turn = a->turns,
                              .meta = a->texts,
                              .text = a->texts + n,
                              .call_offset = a->turns + n,
                              .call = a->calls,
                              .end = a->function == RLHF__CALL_FINISH ? ended : NULL};
    a->out = (rlhf_episode_out){.size = sizeof a->out,
                                .reward = a->paid,
                                .end = a->bytes,
                                .verdict = a->bytes + n,
                                .failed = a->bytes + 2 * (size_t)n,
                                .say = say,
                                .metric = metric};
}

static rlhf_status broken(const struct arrays *a, uint32_t i, const char *what,
                          struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INTERNAL, "environment %s, %s, phase %lld: episode %llu %s",
                      a->environment->plugin->desc.id, names[a->function],
                      (long long)a->in.phase + 1, (unsigned long long)a->of[i]->number, what);
}

// Check that an episode that goes on has an answer to each call.
static rlhf_status check_answers(const struct arrays *a, uint32_t i, struct rlhf__error *err) {
    const struct rlhf__episode *e = a->of[i];
    char what[80];
    size_t n = 0;
    for (uint32_t k = 0; k < e->n_said; k++)
        n += e->said[k].role == RLHF_ROLE_TOOL;
    if (n == e->calls.n) return RLHF_OK;
    snprintf(what, sizeof what, "has %zu tool call%s, and %zu answer%s", e->calls.n,
             e->calls.n == 1 ? "" : "s", n, n == 1 ? "" : "s");
    return broken(a, i, what, err);
}

// Take what the call wrote about episode i.
static rlhf_status take(const struct arrays *a, uint32_t i, struct rlhf__error *err) {
    struct rlhf__episode *e = a->of[i];
    if (a->out.failed[i]) {
        e->failed = 1;
        broken(a, i, "could not be answered", err);
        if (err) err->code = RLHF_E_IO;
        return RLHF_E_IO;
    }
    if (a->out.verdict[i] > RLHF_VERDICT_WRONG)
        return broken(a, i, "has a verdict that this host does not know", err);
    if (a->out.end[i] > RLHF_EPISODE_TRUNCATED)
        return broken(a, i, "has an end that an environment cannot give", err);
    if (a->function == RLHF__CALL_RESET) {
        if (a->out.end[i]) return broken(a, i, "ended before its first turn", err);
        return RLHF_OK;
    }
    if (a->out.verdict[i]) e->verdict = a->out.verdict[i];
    e->paid[e->turns - 1] += a->paid[i];
    if (a->function == RLHF__CALL_FINISH) return RLHF_OK;
    e->end = a->out.end[i];
    if (e->end == RLHF_EPISODE_OPEN && e->n_said == 0)
        return broken(a, i, "stays open, but nothing was said to the policy", err);
    return e->end == RLHF_EPISODE_OPEN ? check_answers(a, i, err) : RLHF_OK;
}

// A broken rule ends the call; a failed episode does not keep the others from being taken.
static rlhf_status take_all(const struct arrays *a, uint32_t n, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; i < n; i++) {
        const rlhf_status one = take(a, i, err);
        if (one != RLHF_OK) st = one;
        if (one != RLHF_OK && !a->of[i]->failed) return one;
    }
    return st;
}

rlhf_status rlhf__episode_call(const struct rlhf__instance *environment, int64_t phase,
                               int function, struct rlhf__episode *const *of, uint32_t n,
                               struct rlhf__error *err) {
    const rlhf_environment_ops *ops = &environment->plugin->ops.environment;
    rlhf_status (*const fn[])(void *, const rlhf_episode_in *,
                              const rlhf_episode_out *) = {ops->reset, ops->step, ops->finish};
    struct arrays a = {.environment = environment, .of = of, .function = function};
    if (n == 0 || !fn[function]) return RLHF_OK;
    rlhf_status st = arrays_init(&a, n, err);
    if (st == RLHF_OK) {
        fill(&a, n, phase);
        const struct rlhf__call call = rlhf__call_begin(environment, names[function]);
        st = fn[function](environment->self, &a.in, &a.out);
        st = rlhf__call_end(&call, st, err);
        for (uint32_t i = 0; st != RLHF_OK && st != RLHF_E_INVALID && i < n; i++)
            of[i]->failed = 1;
        if (st == RLHF_OK) st = take_all(&a, n, err);
    }
    arrays_finish(&a);
    return st;
}

void rlhf__episode_close(const struct rlhf__instance *environment, struct rlhf__episode *const *of,
                         uint32_t n) {
    const rlhf_environment_ops *ops = &environment->plugin->ops.environment;
    for (uint32_t i = 0; i < n; i++) {
        void *state = of[i]->state;
        if (of[i]->seen && ops->close) {
            const struct rlhf__call call = rlhf__call_begin(environment, "close()");
            ops->close(environment->self, 1, &state);
            rlhf__call_end(&call, RLHF_OK, NULL);
        }
        of[i]->seen = 0;
    }
}
