// reply.c: see reply.h.
#include "http/reply.h"

#include "answer_line.h"
#include "process/json_reward.h"
#include "process/utf8.h"

#include <rlhf/reward.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 2, 3))) static void say(char *why, const char *fmt, ...) {
    va_list ap;
    if (*why) return; // only the first problem is reported
    va_start(ap, fmt);
    vsnprintf(why, RLHF__WHY, fmt, ap);
    va_end(ap);
}

// Reads a reward into *seq. Returns 0 if v is not a reward.
static int read_number(const json_t *v, float *seq) {
    double value;
    if (!rlhf__json_reward(v, &value)) return 0;
    *seq = (float)value; // a number too large becomes Inf, see nan_policy
    return 1;
}

static rlhf_status count(const struct rlhf__reply *r, const rlhf_host *host, const char *name,
                         double value) {
    if (!*r->tally) *r->tally = host->alloc(host, sizeof **r->tally);
    if (!*r->tally) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    rlhf__tally_add(*r->tally, name, value);
    return RLHF_OK;
}

// ---- our own format ----

static rlhf_status read_entry(const struct rlhf__reply *r, const rlhf_host *host, uint32_t i,
                              json_t *v, char *why) {
    struct rlhf__line line;
    char what[RLHF__LINE_WHY], shown[RLHF__LINE_WHY];
    r->verdict[i] = RLHF_VERDICT_NONE;
    r->failed[i] = 0;
    if (read_number(v, &r->seq[i])) return RLHF_OK;
    r->failed[i] = 1;
    if (!json_is_object(v)) {
        say(why, "entry %u of the answer is %s; expected a number, null or an object", i,
            rlhf__json_what(v));
        return RLHF_OK;
    }
    if (!rlhf__line_object(v, &line, what)) {
        say(why, "entry %u of the answer: %s", i,
            rlhf__utf8_shown(what, strlen(what), shown, sizeof shown));
        return RLHF_OK;
    }
    if (line.index >= 0 && line.index != i) {
        say(why, "entry %u of the answer has the index %lld", i, (long long)line.index);
        return RLHF_OK;
    }
    r->failed[i] = 0;
    r->seq[i] = (float)line.reward;
    r->verdict[i] = (uint8_t)line.verdict;
    for (uint32_t k = 0; k < line.n_metrics; k++)
        RLHF_TRY(count(r, host, line.metric[k].name, line.metric[k].value));
    return RLHF_OK;
}

static rlhf_status read_rows(const struct rlhf__reply *r, const rlhf_host *host, json_t *root,
                             char *why) {
    if (!json_is_array(root)) {
        say(why, "the answer is %s; expected a list of %u rewards", rlhf__json_what(root), r->n);
        return RLHF_E_INVALID;
    }
    if (json_array_size(root) != r->n) {
        say(why, "the answer has %zu rewards for %u rows", json_array_size(root), r->n);
        return RLHF_E_INVALID;
    }
    for (uint32_t i = 0; i < r->n; i++)
        RLHF_TRY(read_entry(r, host, i, json_array_get(root, i), why));
    return RLHF_OK;
}

// ---- OpenRLHF's format ----

// Each member of extra_logs is a list of one number per row, or one number for all rows. Other
// values are ignored, and so are names that cannot be shown.
static rlhf_status count_logs(const struct rlhf__reply *r, const rlhf_host *host, json_t *logs) {
    const char *name;
    json_t *value;
    json_object_foreach(logs, name, value) {
        const int list = json_is_array(value) && json_array_size(value) == r->n;
        if (!rlhf__line_name(name)) continue;
        for (uint32_t i = 0; i < r->n; i++) {
            const json_t *v = list ? json_array_get(value, i) : value;
            if (json_is_number(v)) RLHF_TRY(count(r, host, name, json_number_value(v)));
        }
    }
    return RLHF_OK;
}

static rlhf_status read_openrlhf(const struct rlhf__reply *r, const rlhf_host *host, json_t *root,
                                 char *why) {
    json_t *rewards = json_object_get(root, "rewards");
    const int one = r->n == 1 && (json_is_number(rewards) || json_is_boolean(rewards));
    if (!json_is_array(rewards) && !one) {
        say(why, "\"rewards\" of the answer is %s; expected a list of %u numbers",
            rlhf__json_what(rewards), r->n);
        return RLHF_E_INVALID;
    }
    if (!one && json_array_size(rewards) != r->n) {
        say(why, "the answer has %zu rewards for %u rows", json_array_size(rewards), r->n);
        return RLHF_E_INVALID;
    }
    for (uint32_t i = 0; i < r->n; i++) {
        const json_t *v = one ? rewards : json_array_get(rewards, i);
        r->verdict[i] = RLHF_VERDICT_NONE;
        r->failed[i] = !read_number(v, &r->seq[i]);
        if (r->failed[i])
            say(why, "entry %u of \"rewards\" is %s; expected a number", i, rlhf__json_what(v));
    }
    return count_logs(r, host, json_object_get(root, "extra_logs"));
}

// ---- both formats ----

static void no_json(const json_error_t *error, const char *text, size_t len, char *why) {
    char said[80], shown[80];
    if (!len) {
        say(why, "the answer is empty");
        return;
    }
    say(why, "the answer is not JSON (%s, at byte %d): \"%s\"",
        rlhf__utf8_shown(error->text, strlen(error->text), said, sizeof said), error->position,
        rlhf__utf8_shown(text, len, shown, sizeof shown));
}

rlhf_status rlhf__reply_read(const struct rlhf__reply *r, const rlhf_host *host, const char *text,
                             size_t len, char *why) {
    json_error_t error;
    *why = 0;
    // Integers of any size are allowed as rewards. A duplicate name is an error, because it would
    // hide one of the two values.
    json_t *root =
        json_loadb(len ? text : "", len,
                   JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return host->fail(host, RLHF_E_NOMEM, "out of memory");
    if (!root) {
        no_json(&error, text, len, why);
        return RLHF_E_INVALID;
    }
    rlhf_status st = r->form == RLHF__FORM_OPENRLHF ? read_openrlhf(r, host, root, why)
                                                    : read_rows(r, host, root, why);
    json_decref(root);
    return st;
}
