// lines_reply.c: see lines_reply.h.
#include "lines_reply.h"

#include "process/json_reward.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- checks ----

static int refuse(char *why, const char *key, const char *wanted) {
    snprintf(why, RLHF__REPLY_WHY, "\"%.60s\" is not %s", key, wanted);
    return 0;
}

static int role_of(const json_t *message) {
    static const char *const names[] = {
        [RLHF_ROLE_SYSTEM] = "system", [RLHF_ROLE_USER] = "user", [RLHF_ROLE_TOOL] = "tool"};
    const char *role = json_string_value(json_object_get(message, "role"));
    for (int i = 0; role && i <= RLHF_ROLE_TOOL; i++)
        if (names[i] && strcmp(role, names[i]) == 0) return i;
    return -1;
}

static int is_message(const json_t *v) {
    return json_is_string(v) || (role_of(v) >= 0 && json_object_size(v) == 2 &&
                                 json_is_string(json_object_get(v, "content")));
}

static int check_say(const json_t *v, char *why) {
    int good = json_is_string(v) || json_is_array(v) || json_is_null(v);
    for (size_t i = 0; good && i < json_array_size(v); i++)
        good = is_message(json_array_get(v, i));
    return good ? 1
                : refuse(why, "say",
                         "a text, or a list of texts or of {\"role\": \"user\", \"content\": "
                         "\"...\"} messages (roles: user, tool, and in reset system)");
}

static int check_metrics(const json_t *v, char *why) {
    const char *key;
    json_t *number;
    int good = json_is_object(v) && json_object_size(v) <= RLHF__REPLY_METRICS;
    json_object_foreach((json_t *)(uintptr_t)v, key, number) good = good && json_is_number(number);
    return good ? 1 : refuse(why, "metrics", "an object of at most 32 numbers");
}

// Returns the verdict, or -1 if `v` is not a verdict.
static int verdict_of(const json_t *v) {
    const char *text = json_string_value(v);
    if (!v || json_is_null(v)) return RLHF_VERDICT_NONE;
    if (json_is_true(v) || (text && strcmp(text, "right") == 0)) return RLHF_VERDICT_RIGHT;
    if (json_is_false(v) || (text && strcmp(text, "wrong") == 0)) return RLHF_VERDICT_WRONG;
    return -1;
}

static int check_member(const char *key, const json_t *v, enum rlhf__asked what, char *why) {
    double reward;
    if (strcmp(key, "episode") == 0) return 1;
    if (strcmp(key, "reward") == 0)
        return rlhf__json_reward(v, &reward) ? 1
                                             : refuse(why, key, "a number, true, false or null");
    if (strcmp(key, "metrics") == 0) return check_metrics(v, why);
    if (strcmp(key, "failed") == 0) return json_is_string(v) ? 1 : refuse(why, key, "a text");
    if (strcmp(key, "verdict") == 0)
        return verdict_of(v) >= 0 ? 1 : refuse(why, key, "\"right\", \"wrong\" or null");
    if (what != RLHF__ASKED_FINISH && strcmp(key, "say") == 0) return check_say(v, why);
    if (what != RLHF__ASKED_FINISH && (strcmp(key, "done") == 0 || strcmp(key, "truncated") == 0))
        return json_is_boolean(v) ? 1 : refuse(why, key, "true or false");
    snprintf(why, RLHF__REPLY_WHY, "\"%.60s\" is not a member of an answer to %s", key,
             rlhf__asked_name(what));
    return 0;
}

// The host would end the run for these, because a plugin must not do them.
static int check_end(const json_t *line, enum rlhf__asked what, char *why) {
    const char *end = json_is_true(json_object_get(line, "done"))        ? "done"
                      : json_is_true(json_object_get(line, "truncated")) ? "truncated"
                                                                         : NULL;
    if (what == RLHF__ASKED_FINISH || json_object_get(line, "failed")) return 1;
    if (what == RLHF__ASKED_RESET && end) {
        snprintf(why, RLHF__REPLY_WHY,
                 "\"%s\" is true in an answer to reset, but an episode "
                 "cannot end before its first turn",
                 end);
        return 0;
    }
    if (end || verdict_of(json_object_get(line, "verdict")) == RLHF_VERDICT_NONE) return 1;
    snprintf(why, RLHF__REPLY_WHY,
             "\"verdict\" is only allowed with \"done\": true or \"truncated\": true, or in an "
             "answer to finish");
    return 0;
}

// If an integer is beyond 64 bits, all integers of the line become the nearest doubles. Rewards and
// metrics are doubles anyway.
static json_t *decode(const char *line, size_t n, json_error_t *error) {
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_t *v = json_loadb(line, n, flags, error);
    if (v || json_error_code(error) != json_error_numeric_overflow) return v;
    return json_loadb(line, n, flags | JSON_DECODE_INT_AS_REAL, error);
}

// Returns the number of an episode, or -1.
static int64_t number_of(const json_t *v) {
    const double real = json_number_value(v);
    if (json_is_integer(v)) return json_integer_value(v);
    return json_is_real(v) && real >= 0 && real < 0x1p53 && floor(real) >= real ? (int64_t)real
                                                                                : -1;
}

int rlhf__line_reply_read(const char *line, size_t n, enum rlhf__asked what,
                          struct rlhf__line_reply *out, char *why) {
    json_error_t error;
    json_t *v = decode(line, n, &error), *member;
    const int64_t episode = number_of(json_object_get(v, "episode"));
    const char *key;
    int good = json_is_object(v);
    if (!good)
        snprintf(why, RLHF__REPLY_WHY, "%s",
                 !v && json_error_code(&error) == json_error_numeric_overflow
                     ? "it has a number beyond 1e308"
                     : "it is not a JSON object");
    else if (episode < 0)
        good = refuse(why, "episode", "the number of an episode");
    json_object_foreach(v, key, member) good = good && check_member(key, member, what, why);
    good = good && check_end(v, what, why);
    if (!good) {
        json_decref(v);
        return 0;
    }
    out->episode = (uint64_t)episode;
    out->line = v;
    return 1;
}

// ---- the output ----

static rlhf_str text_of(const json_t *v) {
    return (rlhf_str){json_string_value(v), json_string_length(v)};
}

static rlhf_status say_one(const rlhf_episode_out *out, uint32_t i, const json_t *v, int32_t role) {
    if (json_is_string(v)) return rlhf_say(out, i, role, text_of(v));
    return rlhf_say(out, i, role_of(v), text_of(json_object_get(v, "content")));
}

static rlhf_status put_say(const json_t *v, const rlhf_episode_out *out, uint32_t i, int32_t calls,
                           char *why) {
    const int32_t role = calls ? RLHF_ROLE_TOOL : RLHF_ROLE_USER;
    const size_t n = json_is_string(v) ? 1 : json_array_size(v);
    size_t texts = 0;
    for (size_t k = 0; k < json_array_size(v); k++)
        texts += json_is_string(json_array_get(v, k));
    texts += json_is_string(v);
    if (calls && texts && texts != (size_t)calls) {
        snprintf(why, RLHF__REPLY_WHY,
                 "the turn has %d call%s and \"say\" has %zu text%s; expected one for each call",
                 (int)calls, calls > 1 ? "s" : "", texts, texts > 1 ? "s" : "");
        return RLHF_E_INVALID;
    }
    if (json_is_string(v)) return say_one(out, i, v, role);
    for (size_t k = 0; k < n; k++)
        RLHF_TRY(say_one(out, i, json_array_get(v, k), role));
    return RLHF_OK;
}

rlhf_status rlhf__line_reply_put(const struct rlhf__line_reply *r, const rlhf_episode_out *out,
                                 uint32_t i, enum rlhf__asked what, int32_t calls, char *why) {
    double reward;
    json_t *metrics = json_object_get(r->line, "metrics"), *number;
    const char *key;
    if (rlhf__line_reply_failed(r)) {
        out->failed[i] = 1;
        return RLHF_OK;
    }
    if (what != RLHF__ASKED_FINISH)
        RLHF_TRY(put_say(json_object_get(r->line, "say"), out, i, calls, why));
    if (rlhf__json_reward(json_object_get(r->line, "reward"), &reward))
        out->reward[i] = (float)reward;
    out->verdict[i] = (uint8_t)verdict_of(json_object_get(r->line, "verdict"));
    if (json_is_true(json_object_get(r->line, "truncated")))
        out->end[i] = RLHF_EPISODE_TRUNCATED;
    else if (json_is_true(json_object_get(r->line, "done")))
        out->end[i] = RLHF_EPISODE_DONE;
    json_object_foreach(metrics, key, number)
        out->metric(out, i, key, json_number_value(number), 1, RLHF_COMBINE_MEAN);
    return RLHF_OK;
}

const char *rlhf__line_reply_failed(const struct rlhf__line_reply *r) {
    return json_string_value(json_object_get(r->line, "failed"));
}

void rlhf__line_reply_finish(struct rlhf__line_reply *r) {
    json_decref(r->line);
    *r = (struct rlhf__line_reply){0};
}
