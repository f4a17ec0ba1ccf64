// http_openenv_message.c: see http_openenv_message.h.
#include "http_openenv_message.h"

#include "http/member.h"

#include "process/json_reward.h"
#include "process/utf8.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 160, FAULTS = 3 };

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

void rlhf__openenv_write(const struct rlhf__openenv *o, enum rlhf__asked what,
                         const rlhf_episode_in *in, uint32_t i, struct rlhf__bytes *out) {
    if (what == RLHF__ASKED_RESET)
        write_reset(out, in, i);
    else
        write_step(o, out, in->text[i]);
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

int rlhf__openenv_take(const struct rlhf__openenv *o, struct rlhf__openenv_state *s,
                       const struct rlhf__bytes *text, const rlhf_episode_out *out, uint32_t i,
                       char *why) {
    const enum rlhf__asked what = (enum rlhf__asked)s->asked;
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

int rlhf__openenv_is_full(const struct rlhf__bytes *text) {
    json_t *v = json_loadb(text->data ? text->data : "", text->len, JSON_ALLOW_NUL, NULL);
    const char *code = json_string_value(json_object_get(json_object_get(v, "data"), "code"));
    const int full = code && strcmp(code, "CAPACITY_REACHED") == 0;
    json_decref(v);
    return full;
}
