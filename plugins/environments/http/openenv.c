// openenv.c: see openenv.h.
#include "http/openenv.h"
#include "http/client.h"
#include "http/member.h"

#include "process/json_reward.h"
#include "process/utf8.h"

#include <jansson.h>
#include <math.h>
#include <rlhf/log.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHOWN = 160, FULL_S = 10, PROBE_S = 10, FAULTS = 3 };

// The metric environment/refused_turns is the number of turns of an episode that were not valid
// actions.
#define REFUSED "refused_turns"

// ---- what is sent ----

static void write_reset(struct rlhf__bytes *out, const rlhf_episode_in *in, uint32_t i) {
    char text[80];
    // 31 bits, which every generator of random numbers accepts
    snprintf(text, sizeof text, "{\"type\":\"reset\",\"data\":{\"seed\":%llu}}",
             (unsigned long long)(in->seed[i] >> 33));
    rlhf__bytes_text(out, text);
}

static void write_step(const struct rlhf__openenv *o, struct rlhf__bytes *out, rlhf_str turn) {
    rlhf__bytes_text(out, "{\"type\":\"step\",\"data\":");
    if (strcmp(o->action, "json") == 0) {
        // Only checks the turn, which is sent as it is: so integers keep all their digits.
        json_t *v = json_loadb(turn.ptr ? turn.ptr : "", (size_t)turn.len,
                               JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
        // anything else becomes an empty action, which the server refuses
        if (json_is_object(v))
            rlhf__bytes_add(out, turn.ptr, (size_t)turn.len);
        else
            rlhf__bytes_text(out, "{}");
        json_decref(v);
    } else {
        rlhf__bytes_text(out, "{");
        rlhf__bytes_string(out, (rlhf_str){o->action, strlen(o->action)});
        rlhf__bytes_text(out, ":");
        rlhf__bytes_string(out, turn);
        rlhf__bytes_text(out, "}");
    }
    rlhf__bytes_text(out, "}");
}

// ---- what is read ----

// Returns the value at a JSON pointer that consists of member names ("/a/b"), or NULL if the value
// is missing.
static json_t *at_pointer(json_t *v, const char *pointer) {
    char key[128];
    while (v && *pointer == '/') {
        const size_t n = strcspn(++pointer, "/");
        snprintf(key, sizeof key, "%.*s", (int)(n < sizeof key ? n : 0), pointer);
        v = json_object_get(v, key);
        pointer += n;
    }
    return v;
}

static rlhf_status say(const struct rlhf__openenv *o, const rlhf_episode_out *out, uint32_t i,
                       json_t *observation) {
    json_t *v = o->observation ? at_pointer(observation, o->observation) : observation;
    if (json_is_string(v) && !rlhf__long_digits(v))
        return rlhf_say(out, i, RLHF_ROLE_USER,
                        (rlhf_str){json_string_value(v), json_string_length(v)});
    json_t *shown = json_deep_copy(v);
    static const char *const beside[] = {"reward", "done", "metadata"};
    for (size_t k = 0; !o->observation && k < 3; k++)
        json_object_del(shown, beside[k]);
    char *text = rlhf__long_text(shown, 0);
    json_decref(shown);
    if (!text) return RLHF_E_NOMEM;
    const rlhf_status st = rlhf_say(out, i, RLHF_ROLE_USER, (rlhf_str){text, strlen(text)});
    free(text);
    return st;
}

// Append ": action: Input should be 'UP', ..." for the first faults that the server lists.
static void add_faults(struct rlhf__bytes *text, const json_t *faults) {
    for (size_t k = 0; k < FAULTS && k < json_array_size(faults); k++) {
        const json_t *fault = json_array_get(faults, k), *where = json_object_get(fault, "loc");
        const char *why = json_string_value(json_object_get(fault, "msg"));
        rlhf__bytes_text(text, k ? "; " : ": ");
        for (size_t i = 0; i < json_array_size(where); i++) {
            const char *part = json_string_value(json_array_get(where, i));
            if (!part) continue; // an index
            rlhf__bytes_text(text, part);
            rlhf__bytes_text(text, ": ");
        }
        rlhf__bytes_text(text, why ? why : "wrong");
    }
}

// Handles the server's refusal of a turn: the turn is not a valid action or, with `reads_errors`,
// the action failed. The policy then reads the reason, the episode continues, and this function
// returns 1. Otherwise returns 0.
static int take_refusal(const struct rlhf__openenv *o, struct rlhf__openenv_state *s,
                        const json_t *data, const rlhf_episode_out *out, uint32_t i) {
    const char *code = json_string_value(json_object_get(data, "code"));
    const char *message = json_string_value(json_object_get(data, "message"));
    struct rlhf__bytes text = {.host = o->host};
    const int is_read = code && o->reads_errors && strcmp(code, "EXECUTION_ERROR") == 0;
    if (!is_read && (!code || strcmp(code, "VALIDATION_ERROR") != 0)) return 0;
    rlhf__bytes_text(&text, "error: ");
    rlhf__bytes_text(&text, message ? message : "invalid action");
    add_faults(&text, json_object_get(data, "errors"));
    const int good =
        !text.full && rlhf_say(out, i, RLHF_ROLE_USER, (rlhf_str){text.data, text.len}) == RLHF_OK;
    rlhf__bytes_finish(&text);
    if (good) out->metric(out, i, REFUSED, (double)++s->refused, 1, RLHF_COMBINE_MEAN);
    return good;
}

// Reads the reward and the end of a step. Steps without a reward have null, which counts as 0. If
// the values are of another kind, returns 0 with the reason in `why`.
static int take_reward(json_t *data, const rlhf_episode_out *out, uint32_t i, char *why) {
    const json_t *reward = json_object_get(data, "reward"), *done = json_object_get(data, "done");
    const char *digits = rlhf__long_digits(reward);
    double value = digits ? strtod(digits, NULL) : 0;
    if (reward && !digits && !json_is_null(reward) && !rlhf__json_reward(reward, &value)) {
        char *text = json_dumps(reward, JSON_ENCODE_ANY), shown[SHOWN];
        snprintf(why, RLHF__SOCKET_WHY,
                 "the reward that it sent, %s, is %s; expected a number, "
                 "true, false or null",
                 rlhf__utf8_shown(text ? text : "", text ? strlen(text) : 0, shown, sizeof shown),
                 rlhf__json_what(reward));
        free(text);
        return 0;
    }
    if (done && !json_is_boolean(done) && !json_is_null(done)) {
        snprintf(why, RLHF__SOCKET_WHY, "the \"done\" that it sent is %s; expected true or false",
                 rlhf__json_what(done));
        return 0;
    }
    out->reward[i] = (float)value;
    if (json_is_true(done)) out->end[i] = RLHF_EPISODE_DONE;
    return 1;
}

// Reads a message. If it is not an observation, returns 0 with the reason in `why`.
static int take(const struct rlhf__openenv *o, enum rlhf__asked what, struct rlhf__openenv_state *s,
                const struct rlhf__bytes *text, const rlhf_episode_out *out, uint32_t i,
                char *why) {
    json_t *v = rlhf__long_read(text->data, text->len);
    json_t *data = json_object_get(v, "data"), *seen = json_object_get(data, "observation");
    const char *type = json_string_value(json_object_get(v, "type"));
    char shown[SHOWN];
    int good = type && strcmp(type, "observation") == 0 && seen &&
               (!o->observation || at_pointer(seen, o->observation));
    if (!good && what == RLHF__ASKED_STEP && take_refusal(o, s, data, out, i)) {
        json_decref(v);
        return 1;
    }
    if (!good)
        snprintf(why, RLHF__SOCKET_WHY, "it answered %s: %s",
                 rlhf__utf8_shown(text->data ? text->data : "", text->len, shown, sizeof shown),
                 seen ? "the option observation names nothing in it" : "it is not an observation");
    else if (what == RLHF__ASKED_RESET)
        out->metric(out, i, REFUSED, (double)(s->refused = 0), 1, RLHF_COMBINE_MEAN);
    else
        good = take_reward(data, out, i, why);
    const int said = good && say(o, out, i, seen) == RLHF_OK;
    if (good && !said)
        snprintf(why, RLHF__SOCKET_WHY, "its text could not be added to the episode");
    json_decref(v);
    return said;
}

// ---- episodes ----

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

// Sends the request of an episode before `until`; 0: timeout_s after its connection.
static enum rlhf__socket_end send_one(const struct rlhf__openenv *o, enum rlhf__asked what,
                                      const rlhf_episode_in *in, uint32_t i, double until,
                                      char *why) {
    struct rlhf__openenv_state *s = in->state[i];
    struct rlhf__bytes text = {.host = o->host};
    enum rlhf__socket_end end = RLHF__SOCKET_DONE;
    if (what == RLHF__ASKED_RESET) end = connect_patiently(o, s, why);
    if (what == RLHF__ASKED_RESET)
        write_reset(&text, in, i);
    else
        write_step(o, &text, in->text[i]);
    if (text.full) end = RLHF__SOCKET_NO_MEMORY;
    if (end == RLHF__SOCKET_DONE && (!s->socket || !s->socket->easy)) {
        snprintf(why, RLHF__SOCKET_WHY, "the episode's connection is closed");
        end = RLHF__SOCKET_FAILED;
    }
    if (end == RLHF__SOCKET_DONE)
        end =
            rlhf__socket_send(s->socket, text.data, text.len, until > 0 ? until : deadline(o), why);
    rlhf__bytes_finish(&text);
    return end;
}

static rlhf_status give_up(const struct rlhf__openenv *o, enum rlhf__socket_end end) {
    if (end == RLHF__SOCKET_CANCELLED) return RLHF_E_CANCELLED;
    return (o->host->fail)(o->host, RLHF_E_NOMEM, "out of memory for an episode");
}

// Returns 1 if the server refuses a further session.
static int is_full(const struct rlhf__bytes *text) {
    json_t *v = json_loadb(text->data ? text->data : "", text->len, JSON_ALLOW_NUL, NULL);
    const char *code = json_string_value(json_object_get(json_object_get(v, "data"), "code"));
    const int full = code && strcmp(code, "CAPACITY_REACHED") == 0;
    json_decref(v);
    return full;
}

// Receives the answer. A server with a limit on sessions may count a session for a moment after the
// session was closed. The server then refuses to begin a new episode. Refused resets of a call are
// repeated until `full` (in all FULL_S seconds).
static enum rlhf__socket_end receive(const struct rlhf__openenv *o, enum rlhf__asked what,
                                     const rlhf_episode_in *in, uint32_t i,
                                     struct rlhf__bytes *text, double until, double *full,
                                     char *why) {
    const struct rlhf__openenv_state *s = in->state[i];
    for (;;) {
        enum rlhf__socket_end end = rlhf__socket_receive(s->socket, text, until, why);
        if (end != RLHF__SOCKET_DONE || what != RLHF__ASKED_RESET || !is_full(text)) return end;
        if (!*full) *full = rlhf__http_now() + FULL_S;
        if (rlhf__http_now() > *full) {
            snprintf(why, RLHF__SOCKET_WHY,
                     "it has no room for another session, and %u are needed at once: raise its "
                     "max_concurrent_envs, or lower sampling.slots, which counts whole groups, so "
                     "that one session is enough only for an algorithm without groups (ppo.so); "
                     "if it never had a session, its log may say why",
                     in->n);
            return RLHF__SOCKET_FAILED;
        }
        const struct timespec nap = {0, 100000000};
        nanosleep(&nap, NULL);
        if (o->host->cancelled(o->host)) return RLHF__SOCKET_CANCELLED;
        end = send_one(o, what, in, i, 0, why);
        if (end != RLHF__SOCKET_DONE) return end;
    }
}

// Sends all requests before it reads the first answer, so that the server can work on all of them
// at the same time.
rlhf_status rlhf__openenv_ask(const struct rlhf__openenv *o, enum rlhf__asked what,
                              const rlhf_episode_in *in, const rlhf_episode_out *out) {
    struct rlhf__bytes text = {.host = o->host};
    char why[RLHF__SOCKET_WHY] = "", first[RLHF__SOCKET_WHY] = "";
    uint32_t failed = 0;
    double full = 0;
    rlhf_status st = RLHF_OK;
    if (what == RLHF__ASKED_RESET) begin_wait(o, in->phase);
    for (int reading = 0; st == RLHF_OK && reading < 2; reading++) {
        const double until = deadline(o);
        for (uint32_t i = 0; st == RLHF_OK && i < in->n; i++) {
            if (out->failed[i]) continue;
            const double by = what == RLHF__ASKED_RESET ? 0 : until;
            enum rlhf__socket_end end = reading ? receive(o, what, in, i, &text, until, &full, why)
                                                : send_one(o, what, in, i, by, why);
            if (end == RLHF__SOCKET_CANCELLED || end == RLHF__SOCKET_NO_MEMORY)
                st = give_up(o, end);
            else if (reading && end == RLHF__SOCKET_DONE &&
                     !take(o, what, in->state[i], &text, out, i, why))
                end = RLHF__SOCKET_FAILED;
            if (end != RLHF__SOCKET_FAILED) continue;
            out->failed[i] = 1;
            if (!failed++) snprintf(first, sizeof first, "%s", why);
        }
    }
    rlhf__bytes_finish(&text);
    if (what == RLHF__ASKED_RESET && !o->wait->failed) o->wait->until = 0;
    if (st != RLHF_OK || !failed) return st;
    if (failed == in->n) return rlhf_failf(o->host, RLHF_E_IO, "%s: %s", o->shown, first);
    rlhf_logf(o->host, RLHF_LOG_WARN, "%s: %u of %u episodes: %s", o->shown, failed, in->n, first);
    return RLHF_OK;
}

void rlhf__openenv_close(const struct rlhf__openenv *o, struct rlhf__openenv_state *s) {
    static const char bye[] = "{\"type\":\"close\"}";
    char why[RLHF__SOCKET_WHY];
    if (!s->socket) return;
    if (s->socket->easy)
        rlhf__socket_send(s->socket, bye, sizeof bye - 1, rlhf__http_now() + 1, why);
    rlhf__socket_close(s->socket);
    o->host->free(o->host, s->socket);
    s->socket = NULL;
}
