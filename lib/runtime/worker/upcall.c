// upcall.c: see upcall.h.
#include "worker/upcall.h"

#include "base/printable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 50, LONGEST_LINE = 1000 };

// ---- log lines, failures and metrics ----

void rlhf__ear_begin(struct rlhf__ear *e) {
    e->lines = e->left_out = e->messages = 0;
    e->bytes = 0;
    e->said[0] = '\0';
    rlhf__buf_clear(&e->reports);
}

void rlhf__ear_end(struct rlhf__ear *e) {
    char text[96];
    if (!e->left_out || !e->api) return;
    snprintf(text, sizeof text, "%u more lines of this call are left out", e->left_out);
    e->api->log(e->api, RLHF_LOG_WARN, text);
}

int rlhf__ear_flooded(const struct rlhf__ear *e) {
    return e->messages > RLHF__MOST_MESSAGES || e->bytes >> 20 >= RLHF__MOST_TEXT_MIB;
}

// Log a line from the plugin, shortened and with control characters escaped.
static void line(struct rlhf__ear *e, int32_t level, const char *front, const char *text,
                 size_t n) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    if (!e->api) return;
    if (e->lines++ >= MOST_LINES) {
        e->left_out++;
        return;
    }
    rlhf__buf_puts(&b, front);
    rlhf__put_printable(&b, text, n < LONGEST_LINE ? n : LONGEST_LINE, "");
    if (n > LONGEST_LINE) rlhf__buf_puts(&b, "...");
    e->api->log(e->api, level, rlhf__buf_text(&b));
    rlhf__buf_finish(&b);
}

void rlhf__ear_printed(struct rlhf__ear *e, const char *text, size_t n) {
    line(e, RLHF_LOG_WARN, "it printed: ", text, n);
}

// Returns a copy of a text that is safe to print; the caller frees it.
static char *shown(rlhf_str s) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    rlhf__put_printable(&b, s.ptr, (size_t)(s.len < 2000 ? s.len : 2000), "");
    char *text = strdup(rlhf__buf_text(&b));
    rlhf__buf_finish(&b);
    return text;
}

static void call_log(struct rlhf__ear *e, struct rlhf__wire *in) {
    const int32_t level = (int32_t)rlhf__wire_get_u32(in);
    const rlhf_str s = rlhf__wire_get_text(in);
    const int known = level >= RLHF_LOG_DEBUG && level <= RLHF_LOG_ERROR;
    if (!in->bad) line(e, known ? level : RLHF_LOG_WARN, "", s.ptr, (size_t)s.len);
}

static void call_fail(struct rlhf__ear *e, struct rlhf__wire *in) {
    const rlhf_status code = (rlhf_status)rlhf__wire_get_u32(in);
    char *text = shown(rlhf__wire_get_text(in));
    if (!in->bad && e->api && text) {
        e->api->fail(e->api, code, text);
        snprintf(e->said, sizeof e->said, "%s", text);
        e->said_code = code;
    }
    free(text);
}

// Keep a report until the call has succeeded. A call that fails or is repeated reports nothing.
static void call_metric(struct rlhf__ear *e, struct rlhf__wire *in) {
    const rlhf_str name = rlhf__wire_get_text(in);
    const double value = rlhf__wire_get_f64(in), weight = rlhf__wire_get_f64(in);
    const uint32_t combine = rlhf__wire_get_u32(in);
    if (in->bad || !e->api) return;
    rlhf__wire_text(&e->reports, name.ptr, name.len);
    rlhf__wire_f64(&e->reports, value);
    rlhf__wire_f64(&e->reports, weight);
    rlhf__wire_u32(&e->reports, combine);
}

void rlhf__ear_report(struct rlhf__ear *e) {
    const uint8_t *at = (const uint8_t *)e->reports.data;
    struct rlhf__wire in = {.at = at, .end = at + e->reports.len};
    while (at && in.at < in.end && !in.bad) {
        char *text = shown(rlhf__wire_get_text(&in));
        const double value = rlhf__wire_get_f64(&in), weight = rlhf__wire_get_f64(&in);
        const int32_t combine = (int32_t)rlhf__wire_get_u32(&in);
        if (text && !in.bad) e->api->metric(e->api, text, value, weight, combine);
        free(text);
    }
    rlhf__buf_clear(&e->reports);
}

void rlhf__ear_finish(struct rlhf__ear *e) { rlhf__buf_finish(&e->reports); }

int rlhf__ear_words(struct rlhf__ear *e, struct rlhf__wire *in) {
    const size_t bytes = (size_t)(in->end - in->at);
    e->bytes += bytes;
    if (bytes > RLHF__LONGEST_TEXT + 64) return -1;
    switch (in->kind) {
    case RLHF__CALL_LOG:
        call_log(e, in);
        break;
    case RLHF__CALL_FAIL:
        call_fail(e, in);
        break;
    case RLHF__CALL_METRIC:
        call_metric(e, in);
        break;
    default:
        return -1;
    }
    return in->bad ? -1 : 0;
}
