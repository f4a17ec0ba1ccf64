// again.c: see again.h.
#include "episode/again.h"

#include "base/clock.h"
#include "episode/call.h"

#include <stdlib.h>
#include <string.h>

// ---- the past of an episode ----

static uint64_t mix(uint64_t hash, const void *data, size_t n) {
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

// Returns a hash of the answer to the last call: the messages, the reward and whether the episode
// ended.
static uint64_t answer_of(const struct rlhf__episode *e) {
    uint64_t hash = mix(0xcbf29ce484222325u, &e->end, sizeof e->end);
    if (e->turns) hash = mix(hash, &e->paid[e->turns - 1], sizeof *e->paid);
    for (uint32_t k = 0; k < e->n_said; k++) {
        const struct rlhf__buf *text = &e->said[k].text;
        hash = mix(hash, &e->said[k].role, sizeof e->said[k].role);
        hash = mix(hash, &text->len, sizeof text->len);
        hash = mix(hash, rlhf__buf_text(text), text->len);
    }
    return hash;
}

// Copy the input of a call: the turn and its tool calls.
static rlhf_status copy_turn(struct rlhf__buf *text, struct rlhf__tool_calls *calls,
                             const struct rlhf__buf *from, const struct rlhf__tool_calls *given,
                             struct rlhf__error *err) {
    rlhf__buf_clear(text);
    rlhf__buf_put(text, rlhf__buf_text(from), from->len);
    rlhf__tool_calls_finish(calls);
    *calls = *given;
    for (size_t k = 0; k < calls->n; k++) {
        json_incref(calls->item[k].name);
        json_incref(calls->item[k].arguments);
        json_incref(calls->item[k].id);
    }
    return rlhf__buf_ok(text, err);
}

static rlhf_status remember(struct rlhf__episode *e, struct rlhf__error *err) {
    struct rlhf__answered *more = realloc(e->past, (e->n_past + 1) * sizeof *more);
    if (!more) return RLHF__NOMEM(err, "out of memory for %zu turns", e->n_past);
    e->past = more;
    struct rlhf__answered *now = &more[e->n_past++];
    memset(now, 0, sizeof *now);
    now->turn = e->turns;
    now->answer = answer_of(e);
    return copy_turn(&now->text, &now->calls, &e->text, &e->calls, err);
}

// ---- playing again ----

static struct rlhf__episode_call call_of(const struct rlhf__asking *a, int function) {
    return (struct rlhf__episode_call){.environment = a->environment,
                                       .phase = a->phase,
                                       .timeout_s = a->timeout_s,
                                       .function = function};
}

// Repeat a call that was answered before, and check that the answer is the same.
static rlhf_status repeat(const struct rlhf__asking *a, struct rlhf__episode *e,
                          const struct rlhf__answered *was, struct rlhf__error *err) {
    RLHF_TRY(copy_turn(&e->text, &e->calls, &was->text, &was->calls, err));
    e->turns = was->turn;
    e->end = RLHF_EPISODE_OPEN;
    if (e->turns) e->paid[e->turns - 1] = 0;
    RLHF_TRY(
        rlhf__episode_call_now(call_of(a, e->turns ? RLHF__CALL_STEP : RLHF__CALL_RESET), e, err));
    if (answer_of(e) == was->answer) return RLHF_OK;
    e->failed = 0;
    return rlhf__fail(
        err, RLHF_E_INTERNAL,
        "environment %s, phase %lld: episode %llu was played again after a failure, "
        "and %s differently this time; if its answers vary, set episodes.retries=0 (a "
        "plugin in C sets RLHF_ENVIRONMENT_VARIES)",
        rlhf__plugin_name(a->environment->plugin), (long long)a->phase + 1,
        (unsigned long long)e->number, e->turns ? "a turn was answered" : "began");
}

// Begin the episode again: repeat all calls that were answered, then the call that failed. Sets
// e->failed if one of these calls fails.
static rlhf_status play_again(const struct rlhf__asking *a, struct rlhf__episode *e,
                              struct rlhf__error *err) {
    const int32_t function = e->asked;
    const struct rlhf__episode_call call = call_of(a, function);
    const uint64_t bytes = a->environment->plugin->ops.environment.state_size;
    const int32_t turns = e->turns;
    const uint8_t end = e->end, verdict = e->verdict;
    struct rlhf__answered now = {.turn = turns};
    rlhf__episode_close(a->environment, &e, 1);
    if (bytes) memset(e->state, 0, (size_t)bytes);
    e->n_metrics = 0; // a failed call reports nothing, and the other calls report again
    rlhf_status st = copy_turn(&now.text, &now.calls, &e->text, &e->calls, err);
    for (size_t k = 0; st == RLHF_OK && k < e->n_past; k++)
        st = repeat(a, e, &e->past[k], err);
    const rlhf_status back = copy_turn(&e->text, &e->calls, &now.text, &now.calls, err);
    rlhf__buf_finish(&now.text);
    rlhf__tool_calls_finish(&now.calls);
    e->asked = function; // a repeated call that failed is not the one to be answered
    e->turns = turns;
    e->end = end;
    if (function != RLHF__CALL_FINISH) e->verdict = verdict;
    if (st != RLHF_OK || back != RLHF_OK) return st != RLHF_OK ? st : back;
    return rlhf__episode_call(&call, &e, 1, err);
}

// Returns 1 if another attempt may help.
static int may_retry(const struct rlhf__asking *a, struct rlhf__episode *const *of, uint32_t n,
                     rlhf_status st) {
    const uint32_t flags = a->environment->plugin->ops.environment.flags;
    int some = 0, past = 0;
    if (st == RLHF_OK || st == RLHF_E_NOMEM || st == RLHF_E_CANCELLED) return 0;
    for (uint32_t i = 0; i < n; i++) {
        some |= of[i]->failed;
        past |= of[i]->failed && of[i]->n_past > 0;
    }
    return some && !(past && (flags & RLHF_ENVIRONMENT_VARIES));
}

static void say(const struct rlhf__asking *a, const struct rlhf__error *err, uint32_t n,
                int64_t attempt) {
    const rlhf_host *host = a->environment->host;
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text, "%u episode%s played again (%lld of %lld): %.600s", n,
                     n == 1 ? " is" : "s are", (long long)attempt, (long long)a->retries,
                     err ? err->text : "");
    if (!text.bad) host->log(host, RLHF_LOG_WARN, rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
}

// Give up the failed episodes, and return RLHF_OK. If all episodes succeeded, returns `st`.
static rlhf_status give_up(struct rlhf__asking *a, struct rlhf__episode *const *of, uint32_t n,
                           rlhf_status st, const struct rlhf__error *why) {
    const rlhf_host *host = a->environment->host;
    uint32_t lost = 0;
    if (st == RLHF_OK || st == RLHF_E_NOMEM || st == RLHF_E_CANCELLED) return st;
    for (uint32_t i = 0; i < n; i++) {
        lost += of[i]->failed;
        of[i]->lost |= of[i]->failed;
        if (of[i]->failed) of[i]->answer = RLHF__ANSWER_HERE;
        of[i]->failed = 0;
    }
    if (!lost) return st;
    a->lost += lost;
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text, "%u episode%s left out of the batch (episodes.on_failure=drop): %.600s",
                     lost, lost == 1 ? " is" : "s are", why->text);
    if (!text.bad) host->log(host, RLHF_LOG_WARN, rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    return RLHF_OK;
}

// Returns how many of the failed episodes have attempts left, and sets *attempt to the number of
// the next attempt.
static uint32_t count_again(const struct rlhf__asking *a, struct rlhf__episode *const *of,
                            uint32_t n, int64_t *attempt) {
    uint32_t again = 0;
    *attempt = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!of[i]->failed || of[i]->attempts >= a->retries) continue;
        if (of[i]->attempts >= *attempt) *attempt = of[i]->attempts + 1;
        again++;
    }
    return again;
}

// Replay the failed episodes until they succeed or have used up their attempts. `st` and *why are
// the failure; returns that of the last attempt.
static rlhf_status mend(struct rlhf__asking *a, struct rlhf__episode *const *of, uint32_t n,
                        rlhf_status st, struct rlhf__error *why) {
    int64_t attempt;
    uint32_t again;
    for (uint32_t i = 0; may_retry(a, of, n, st) && i < n; i++)
        a->failures += of[i]->failed;
    while (may_retry(a, of, n, st) && (again = count_again(a, of, n, &attempt)) > 0) {
        say(a, why, again, attempt);
        const rlhf_status before = st;
        st = RLHF_OK;
        for (uint32_t i = 0; i < n; i++) {
            if (!of[i]->failed) continue;
            const int has_left = of[i]->attempts++ < a->retries;
            const rlhf_status one = has_left ? play_again(a, of[i], why) : before;
            a->failures += has_left && of[i]->failed;
            if (one != RLHF_OK) st = one;
            if (one != RLHF_OK && !of[i]->failed) return one;
        }
    }
    return st;
}

static rlhf_status ask(struct rlhf__asking *a, const struct rlhf__episode_call *call,
                       struct rlhf__episode *const *of, uint32_t n, struct rlhf__error *err) {
    struct rlhf__error none = {0, ""};
    struct rlhf__error *why = err ? err : &none;
    rlhf_status st = rlhf__episode_call(call, of, n, why);
    st = mend(a, of, n, st, why);
    RLHF_TRY(a->drops ? give_up(a, of, n, st, why) : st);
    for (uint32_t i = 0; i < n; i++) {
        struct rlhf__episode *e = of[i];
        if (e->answer != RLHF__ANSWER_HERE) continue;
        e->attempts = 0;
        if (e->asked != RLHF__CALL_FINISH && !e->lost) RLHF_TRY(remember(e, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__episode_ask(struct rlhf__asking *a, int function, uint32_t wait_ms,
                              struct rlhf__episode *const *of, uint32_t n,
                              struct rlhf__error *err) {
    struct rlhf__episode_call call = call_of(a, function);
    const double from = rlhf__seconds();
    call.wait_ms = wait_ms;
    const rlhf_status st = ask(a, &call, of, n, err);
    a->seconds += rlhf__seconds() - from;
    return st;
}
