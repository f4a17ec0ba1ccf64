// call.c: see call.h.
#include "episode/call.h"

#include "base/clock.h"
#include "base/json.h"
#include "plugin/episode_arrays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"reset()", "step()", "finish()", "poll()"};

enum { WAIT_MS = 100 }; // Ctrl-C is noticed after this time

struct call {
    struct rlhf__episode_arrays arrays; // first member: say() and metric() cast it back
    const struct rlhf__episode_call *how;
    const struct rlhf__instance *environment;
    struct rlhf__episode *const *of;
    rlhf_tool_call *calls; // [n_calls + 1]
    char **arguments;      // [n_calls] owned
    size_t n_calls;
    uint32_t n;      // episodes of the call
    int32_t refused; // 1: a call of say() or metric() was refused
};

// The call fails, also if the environment ignores the status.
static rlhf_status refuse(struct call *a, const char *why) {
    const rlhf_host *host = a->environment->host;
    a->refused = 1;
    return host ? (host->fail)(host, RLHF_E_INVALID, why) : RLHF_E_INVALID;
}

// Returns the number of tool calls in episode i's turn that are answered, or 0 outside of step().
static size_t calls_of(const struct call *a, uint32_t i) {
    return a->of[i]->asked == RLHF__CALL_STEP ? a->of[i]->calls.n : 0;
}

static rlhf_status say(const rlhf_episode_out *out, uint32_t i, const rlhf_message *message) {
    struct call *a = (struct call *)(uintptr_t)out;
    rlhf_message m;
    char where[96], why[192];
    if (rlhf__message_read(&m, message, why, sizeof why) < 0) return refuse(a, why);
    if (rlhf__instance_where(a->environment, where, sizeof where)) {
        snprintf(why, sizeof why, "say() was called %s", where);
        return refuse(a, why);
    }
    if (i >= a->n) return refuse(a, "say() names an episode that is not in this call");
    const int32_t asked = a->of[i]->asked;
    if (asked == RLHF__CALL_FINISH) return refuse(a, "finish() says something");
    if (m.role == RLHF_ROLE_TOOL && calls_of(a, i) == 0)
        return refuse(a, "it speaks as a tool, but the policy has called none");
    if (m.role == 0)
        return refuse(a, "say() has the role 0; set the message's role, such as RLHF_ROLE_USER");
    if (m.role != RLHF_ROLE_USER && m.role != RLHF_ROLE_TOOL &&
        !(m.role == RLHF_ROLE_SYSTEM && asked == RLHF__CALL_RESET)) {
        snprintf(why, sizeof why, "say() has the role %d, which is not allowed there", m.role);
        return refuse(a, why);
    }
    const rlhf_status st = rlhf__episode_say(a->of[i], m.role, m.text);
    return st == RLHF_E_INVALID ? refuse(a, "it says more than 32 messages in one call") : st;
}

static void metric(const rlhf_episode_out *out, uint32_t i, const char *name, double value,
                   double weight, int32_t combine) {
    struct call *a = (struct call *)(uintptr_t)out;
    if (!rlhf__instance_may_report(a->environment, name, weight, combine)) return;
    if (i >= a->n)
        refuse(a, "metric() names an episode that is not in this call");
    else
        rlhf__episode_metric(a->of[i], name, value, weight, combine);
}

static void call_finish(struct call *a) {
    rlhf__episode_arrays_finish(&a->arrays);
    for (size_t k = 0; a->calls && k < a->n_calls; k++)
        free(a->arguments[k]);
    free(a->arguments);
    free(a->calls);
}

// List the tool calls of all turns.
static rlhf_status add_calls(struct call *a, uint32_t n, struct rlhf__error *err) {
    const int has_calls = a->how->function == RLHF__CALL_STEP;
    size_t all = 0;
    for (uint32_t i = 0; i < n; i++)
        all += has_calls ? a->of[i]->calls.n : 0;
    a->calls = calloc(all + 1, sizeof *a->calls);
    a->arguments = calloc(all + 1, sizeof(char *));
    if (!a->calls || !a->arguments) return RLHF__NOMEM(err, "out of memory for %zu calls", all);
    for (uint32_t i = 0; i < n; i++) {
        for (size_t k = 0; has_calls && k < a->of[i]->calls.n; k++) {
            const struct rlhf__called *c = &a->of[i]->calls.item[k];
            struct rlhf__buf text = RLHF__BUF_INIT;
            rlhf__json_write(&text, c->arguments, 0);
            a->arguments[a->n_calls] = text.data;
            a->calls[a->n_calls++] =
                (rlhf_tool_call){.name = {json_string_value(c->name), json_string_length(c->name)},
                                 .arguments = {text.data, text.len}};
            if (text.bad) return RLHF__NOMEM(err, "out of memory for %zu calls", all);
        }
        a->arrays.call_offset[i + 1] = (int32_t)a->n_calls;
    }
    return RLHF_OK;
}

static rlhf_status fill(struct call *a, uint32_t n, struct rlhf__error *err) {
    struct rlhf__episode_arrays *x = &a->arrays;
    const int has_text =
        a->how->function == RLHF__CALL_RESET || a->how->function == RLHF__CALL_STEP;
    if (!rlhf__episode_arrays_init(x, n, a->how->phase))
        return RLHF__NOMEM(err, "out of memory for %u episodes", n);
    RLHF_TRY(add_calls(a, n, err));
    for (uint32_t i = 0; i < n; i++) {
        struct rlhf__episode *e = a->of[i];
        e->seen = 1;
        x->state[i] = e->state;
        x->episode[i] = e->number;
        x->seed[i] = e->seed;
        x->turn[i] = e->turns;
        x->meta[i] = e->meta;
        x->ended[i] = e->end;
        if (has_text) x->text[i] = (rlhf_str){rlhf__buf_text(&e->text), e->text.len};
    }
    x->in.call = a->calls;
    x->in.wait_ms = a->how->wait_ms;
    x->out.say = say;
    x->out.metric = metric;
    return RLHF_OK;
}

static rlhf_status broken(const struct call *a, uint32_t i, const char *what,
                          struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INTERNAL, "environment %s, %s, phase %lld: episode %llu %s",
                      rlhf__plugin_name(a->environment->plugin), names[a->how->function],
                      (long long)a->how->phase + 1, (unsigned long long)a->of[i]->number, what);
}

// Check that each tool call of an episode that continues has an answer.
static rlhf_status check_answers(const struct call *a, uint32_t i, struct rlhf__error *err) {
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

static rlhf_status failed(const struct call *a, uint32_t i, const char *what,
                          struct rlhf__error *err) {
    a->of[i]->failed = 1;
    broken(a, i, what, err);
    if (err) err->code = RLHF_E_IO;
    return RLHF_E_IO;
}

// The answer for episode i comes later.
static rlhf_status wait_for(const struct call *a, uint32_t i, struct rlhf__error *err) {
    const rlhf_episode_out *out = &a->arrays.out;
    struct rlhf__episode *e = a->of[i];
    if (!a->environment->plugin->ops.environment.poll)
        return broken(a, i, "is to be answered later, but there is no poll()", err);
    if (e->n_said || out->end[i] || out->verdict[i] || out->reward[i] != 0)
        return broken(a, i, "is to be answered later, but has a part of its answer", err);
    e->answer = RLHF__ANSWER_LATER;
    if (a->how->function != RLHF__CALL_POLL) e->asked_at = rlhf__seconds();
    if (a->how->timeout_s <= 0 || rlhf__seconds() - e->asked_at <= a->how->timeout_s)
        return RLHF_OK;
    e->answer = RLHF__ANSWER_NONE;
    return failed(a, i, "has no answer within rewards.timeout_s", err);
}

// Store the results that the call gave for episode i.
static rlhf_status take(const struct call *a, uint32_t i, struct rlhf__error *err) {
    struct rlhf__episode *e = a->of[i];
    char what[80];
    if (a->arrays.out.failed[i] > 1 || a->arrays.out.later[i] > 1) {
        const int one = a->arrays.out.failed[i] > 1;
        snprintf(what, sizeof what, "has out->%s %u; it must be 0 or 1", one ? "failed" : "later",
                 one ? a->arrays.out.failed[i] : a->arrays.out.later[i]);
        return broken(a, i, what, err);
    }
    if (a->arrays.out.failed[i])
        return failed(a, i, "could not be answered; a warning above may say why", err);
    if (a->arrays.out.later[i]) return wait_for(a, i, err);
    e->answer = RLHF__ANSWER_HERE;
    if (a->arrays.out.verdict[i] > RLHF_VERDICT_WRONG) {
        snprintf(what, sizeof what,
                 "has the verdict %u; it must be from 0 to %d (enum rlhf_verdict)",
                 a->arrays.out.verdict[i], RLHF_VERDICT_WRONG);
        return broken(a, i, what, err);
    }
    if (a->arrays.out.end[i] > RLHF_EPISODE_TRUNCATED) {
        snprintf(what, sizeof what, "has the end %u, which an environment cannot give",
                 a->arrays.out.end[i]);
        return broken(a, i, what, err);
    }
    if (e->asked == RLHF__CALL_RESET && a->arrays.out.end[i])
        return broken(a, i, "ended before its first turn", err);
    if (e->asked == RLHF__CALL_FINISH && a->arrays.out.end[i])
        return broken(a, i, "is ended by finish(), although it has ended before", err);
    if (e->asked != RLHF__CALL_FINISH && a->arrays.out.verdict[i] && !a->arrays.out.end[i])
        return broken(a, i, "stays open, but has a verdict; only an episode that ends has one",
                      err);
    if (e->asked == RLHF__CALL_RESET && a->arrays.out.reward[i] != 0)
        return broken(a, i, "has a reward in reset(); only a turn or finish() may give one", err);
    if (e->asked == RLHF__CALL_RESET) return RLHF_OK;
    if (a->arrays.out.verdict[i]) e->verdict = a->arrays.out.verdict[i];
    e->paid[e->turns - 1] += a->arrays.reward[i];
    if (e->asked == RLHF__CALL_FINISH) return RLHF_OK;
    e->end = a->arrays.out.end[i];
    if (e->end == RLHF_EPISODE_OPEN && e->n_said == 0)
        return broken(a, i, "stays open, but nothing was said to the policy", err);
    return e->end == RLHF_EPISODE_OPEN ? check_answers(a, i, err) : RLHF_OK;
}

// Stops at the first episode for which the environment broke a rule. A failed episode does not stop
// the others.
static rlhf_status take_all(const struct call *a, uint32_t n, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; i < n; i++) {
        const rlhf_status one = take(a, i, err);
        if (one != RLHF_OK) st = one;
        if (one != RLHF_OK && !a->of[i]->failed) return one;
    }
    return st;
}

// Note in the episodes that the function is called.
static void begin(const struct rlhf__episode_call *c, struct rlhf__episode *const *of, uint32_t n,
                  int answered) {
    for (uint32_t i = 0; i < n; i++) {
        struct rlhf__episode *e = of[i];
        e->failed = 0;
        e->n_said = 0;
        e->answer = answered ? RLHF__ANSWER_HERE : RLHF__ANSWER_NONE;
        if (c->function == RLHF__CALL_POLL) continue;
        e->asked = c->function;
    }
}

rlhf_status rlhf__episode_call(const struct rlhf__episode_call *c, struct rlhf__episode *const *of,
                               uint32_t n, struct rlhf__error *err) {
    const rlhf_environment_ops *ops = &c->environment->plugin->ops.environment;
    rlhf_status (*const fn[])(void *, const rlhf_episode_in *, const rlhf_episode_out *) = {
        ops->reset, ops->step, ops->finish, ops->poll};
    struct call a = {.how = c, .environment = c->environment, .of = of, .n = n};
    begin(c, of, n, !fn[c->function]);
    if (n == 0 || !fn[c->function]) return RLHF_OK;
    rlhf_status st = fill(&a, n, err);
    if (st == RLHF_OK) {
        const struct rlhf__call call = rlhf__call_begin(a.environment, names[c->function]);
        struct rlhf__tails tails = {.n = 0};
        rlhf__episode_arrays_mark(&a.arrays, &tails, a.environment->plugin->abi_minor);
        st = fn[c->function](a.environment->self, &a.arrays.in, &a.arrays.out);
        if (a.refused && st == RLHF_OK) st = RLHF_E_INVALID;
        st = rlhf__call_wrote(&call, &tails, st, err);
        for (uint32_t i = 0; st != RLHF_OK && st != RLHF_E_INVALID && i < n; i++)
            of[i]->failed = 1;
        if (st == RLHF_OK) st = take_all(&a, n, err);
    }
    call_finish(&a);
    return st;
}

rlhf_status rlhf__episode_call_now(struct rlhf__episode_call c, struct rlhf__episode *e,
                                   struct rlhf__error *err) {
    const rlhf_host *host = c.environment->host;
    RLHF_TRY(rlhf__episode_call(&c, &e, 1, err));
    c.function = RLHF__CALL_POLL;
    c.wait_ms = WAIT_MS;
    while (e->answer == RLHF__ANSWER_LATER) {
        if (host->cancelled(host)) return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        RLHF_TRY(rlhf__episode_call(&c, &e, 1, err));
    }
    return RLHF_OK;
}

void rlhf__episode_close(const struct rlhf__instance *environment, struct rlhf__episode *const *of,
                         uint32_t n) {
    const rlhf_environment_ops *ops = &environment->plugin->ops.environment;
    for (uint32_t i = 0; i < n; i++) {
        rlhf_episode_close one = {.n = 1, .state = &of[i]->state};
        RLHF__PASS(rlhf_episode_close, &one, environment->plugin->abi_minor);
        if (of[i]->seen && ops->close) {
            const struct rlhf__call call = rlhf__call_begin(environment, "close()");
            ops->close(environment->self, &one);
            rlhf__call_end(&call, RLHF_OK, NULL);
        }
        of[i]->seen = 0;
        of[i]->answer = RLHF__ANSWER_NONE;
    }
}
