// reply.c: see reply.h.
#include "http/reply.h"

#include "http/text.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 2, 3))) static void say(char *why, const char *fmt, ...) {
    va_list ap;
    if (*why) return; // the first one is told
    va_start(ap, fmt);
    vsnprintf(why, RLHF__WHY, fmt, ap);
    va_end(ap);
}

static const char *kind(const json_t *v) {
    static const char *const names[] = {"an object", "a list",  "a string", "an integer",
                                        "a number",  "a truth", "a truth",  "null"};
    return v ? names[json_typeof(v)] : "missing";
}

// A number or null into *seq; 0: it is neither.
static int read_number(const json_t *v, float *seq) {
    if (json_is_null(v))
        *seq = NAN;
    else if (json_is_number(v))
        *seq = (float)json_number_value(v); // beyond floats: Inf, which nan_policy is for
    else
        return 0;
    return 1;
}

// ---- our own form ----

static int read_verdict(const json_t *v, uint8_t *verdict) {
    if (!v || json_is_null(v)) return 1;
    const char *text = json_is_string(v) ? json_string_value(v) : "";
    if (strcmp(text, "right") == 0) *verdict = RLHF_VERDICT_RIGHT;
    if (strcmp(text, "wrong") == 0) *verdict = RLHF_VERDICT_WRONG;
    return *verdict != RLHF_VERDICT_NONE;
}

// One row's entry; 0: it is none, *why says so.
static int read_entry(const struct rlhf__reply *r, uint32_t i, const json_t *v, char *why) {
    if (!json_is_object(v)) {
        if (read_number(v, &r->seq[i])) return 1;
        say(why, "entry %u of the answer is %s; a number, null or an object is wanted", i, kind(v));
        return 0;
    }
    const json_t *reward = json_object_get(v, "reward");
    if (!reward || !read_number(reward, &r->seq[i])) {
        say(why, "\"reward\" of entry %u of the answer is %s; a number or null is wanted", i,
            kind(reward));
        return 0;
    }
    if (!read_verdict(json_object_get(v, "verdict"), &r->verdict[i])) {
        say(why,
            "\"verdict\" of entry %u of the answer is neither \"right\" nor \"wrong\" nor null", i);
        return 0;
    }
    const json_t *metrics = json_object_get(v, "metrics");
    if (metrics && !json_is_null(metrics) && !json_is_object(metrics)) {
        say(why, "\"metrics\" of entry %u of the answer is %s; an object is wanted", i,
            kind(metrics));
        return 0;
    }
    return 1;
}

static rlhf_status count_metrics(const struct rlhf__reply *r, const rlhf_host *host,
                                 json_t *entry) {
    json_t *metrics = json_object_get(entry, "metrics"), *value;
    const char *name;
    json_object_foreach(metrics, name, value) {
        if (json_is_number(value))
            RLHF_TRY(
                rlhf__tally_add(r->tally, host, name, strlen(name), json_number_value(value), 1));
        else
            r->tally->left_out = 1;
    }
    return RLHF_OK;
}

static rlhf_status read_rows(const struct rlhf__reply *r, const rlhf_host *host, json_t *root,
                             char *why) {
    if (!json_is_array(root)) {
        say(why, "the answer is %s; a list of %u rewards is wanted", kind(root), r->n);
        return RLHF_E_INVALID;
    }
    if (json_array_size(root) != r->n) {
        say(why, "the answer has %zu rewards for %u rows", json_array_size(root), r->n);
        return RLHF_E_INVALID;
    }
    for (uint32_t i = 0; i < r->n; i++) {
        json_t *entry = json_array_get(root, i);
        r->verdict[i] = RLHF_VERDICT_NONE;
        r->failed[i] = !read_entry(r, i, entry, why);
        if (r->failed[i])
            r->verdict[i] = RLHF_VERDICT_NONE;
        else
            RLHF_TRY(count_metrics(r, host, entry));
    }
    return RLHF_OK;
}

// ---- OpenRLHF's ----

// Each of the logs is a list of one number a row, or one number for them all.
static rlhf_status count_logs(const struct rlhf__reply *r, const rlhf_host *host, json_t *logs) {
    const char *name;
    json_t *value;
    json_object_foreach(logs, name, value) {
        if (json_is_number(value))
            RLHF_TRY(rlhf__tally_add(r->tally, host, name, strlen(name),
                                     json_number_value(value) * r->n, r->n));
        else if (!json_is_array(value) || json_array_size(value) != r->n)
            r->tally->left_out = 1;
        for (uint32_t i = 0; i < json_array_size(value) && i < r->n; i++) {
            const json_t *v = json_array_get(value, i);
            if (json_array_size(value) == r->n && json_is_number(v))
                RLHF_TRY(
                    rlhf__tally_add(r->tally, host, name, strlen(name), json_number_value(v), 1));
        }
    }
    return RLHF_OK;
}

static rlhf_status read_openrlhf(const struct rlhf__reply *r, const rlhf_host *host, json_t *root,
                                 char *why) {
    json_t *rewards = json_object_get(root, "rewards");
    const int one = r->n == 1 && json_is_number(rewards);
    if (!json_is_array(rewards) && !one) {
        say(why, "\"rewards\" of the answer is %s; a list of %u numbers is wanted", kind(rewards),
            r->n);
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
        if (r->failed[i]) say(why, "entry %u of \"rewards\" is %s; a number is wanted", i, kind(v));
    }
    return count_logs(r, host, json_object_get(root, "extra_logs"));
}

// ---- both ----

rlhf_status rlhf__reply_read(const struct rlhf__reply *r, const rlhf_host *host, const char *text,
                             size_t len, char *why) {
    json_error_t error;
    char shown[260];
    *why = 0;
    // Integers of any size are rewards; a name that is there twice would hide one of two values.
    json_t *root =
        json_loadb(len ? text : "", len,
                   JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return host->fail(host, RLHF_E_NOMEM, "out of memory");
    if (!root && !len) {
        say(why, "the answer is empty");
        return RLHF_E_INVALID;
    }
    if (!root) {
        char said[260];
        say(why, "the answer is no JSON (%s, at byte %d): %s",
            rlhf__excerpt(error.text, strlen(error.text), said), error.position,
            rlhf__excerpt(text, len, shown));
        return RLHF_E_INVALID;
    }
    rlhf_status st = r->form == RLHF__FORM_OPENRLHF ? read_openrlhf(r, host, root, why)
                                                    : read_rows(r, host, root, why);
    json_decref(root);
    return st;
}
