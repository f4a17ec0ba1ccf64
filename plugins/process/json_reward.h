// json_reward.h: the values that count as a reward, for all programs and services that answer in
// JSON: a number; true, which is 1, and false, which is 0; null, which is NaN. Texts, lists and
// objects are not rewards.
#ifndef RLHF_PLUGINS_PROCESS_JSON_REWARD_H
#define RLHF_PLUGINS_PROCESS_JSON_REWARD_H

#include <jansson.h>
#include <math.h>

// Returns 1 and sets *out, or 0 if `v` is not a reward or NULL. [any]
static inline int rlhf__json_reward(const json_t *v, double *out) {
    if (!json_is_number(v) && !json_is_boolean(v) && !json_is_null(v)) return 0;
    *out = json_is_null(v) ? (double)NAN : json_is_true(v) ? 1 : json_number_value(v);
    return 1;
}

// The kind of a value, for messages: "a list". [any]
static inline const char *rlhf__json_what(const json_t *v) {
    static const char *const names[] = {"an object", "a list", "a string", "a number",
                                        "a number",  "true",   "false",    "null"};
    return v ? names[json_typeof(v)] : "missing";
}

#endif
