// upcall.c: see upcall.h.
#include "worker/upcall.h"

#include "base/printable.h"
#include "worker/upcall_services.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 50, LONGEST_LINE = 1000 };

// ---- words ----

void rlhf__ear_begin(struct rlhf__ear *e) {
    e->lines = e->left_out = e->messages = 0;
    e->bytes = 0;
    e->metric[0] = e->said[0] = '\0';
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

// A line of the plugin, cut and without what a terminal would obey.
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
    rlhf__buf_free(&b);
}

void rlhf__ear_printed(struct rlhf__ear *e, const char *text, size_t n) {
    line(e, RLHF_LOG_WARN, "it printed: ", text, n);
}

// A text as messages have it; free() it.
static char *shown(rlhf_str s) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    rlhf__put_printable(&b, s.ptr, (size_t)(s.len < 2000 ? s.len : 2000), "");
    char *text = strdup(rlhf__buf_text(&b));
    rlhf__buf_free(&b);
    return text;
}

static void call_log(struct rlhf__ear *e, struct rlhf__wire *in) {
    const int32_t level = (int32_t)rlhf__wire_get_u32(in);
    const rlhf_str s = rlhf__wire_get_text(in);
    const int known = level >= RLHF_LOG_DEBUG && level <= RLHF_LOG_ERROR;
    if (!in->bad) line(e, known ? level : RLHF_LOG_WARN, "", s.ptr, (size_t)s.len);
}

static void call_fail(struct rlhf__ear *e, struct rlhf__wire *in, int of_service) {
    const rlhf_status code = (rlhf_status)rlhf__wire_get_u32(in);
    char *text = shown(rlhf__wire_get_text(in));
    if (!in->bad && e->api && text) {
        struct rlhf__error err = {0, ""};
        rlhf__fail(&err, code, "%s", text);
        if (of_service)
            rlhf__services_failed(rlhf__services_behind(e->api), &err);
        else
            e->api->fail(e->api, code, text);
        snprintf(e->said, sizeof e->said, "%s", text);
    }
    free(text);
}

static void call_metric(struct rlhf__ear *e, struct rlhf__wire *in) {
    const rlhf_str name = rlhf__wire_get_text(in);
    const double value = rlhf__wire_get_f64(in);
    char *text = shown(name);
    if (!in->bad && e->api && text) {
        if (e->parts)
            snprintf(e->metric, sizeof e->metric, "%.100s", text);
        else
            e->api->metric(e->api, text, value);
    }
    free(text);
}

// ---- calls ----

// Calls without a reply.
static int words(struct rlhf__ear *e, struct rlhf__wire *in) {
    const size_t bytes = (size_t)(in->end - in->at);
    e->bytes += bytes;
    if (bytes > RLHF__LONGEST_TEXT + 64) return -1;
    switch (in->kind) {
    case RLHF__CALL_LOG:
        call_log(e, in);
        break;
    case RLHF__CALL_FAIL:
    case RLHF__CALL_NOTED:
        call_fail(e, in, in->kind == RLHF__CALL_NOTED);
        break;
    case RLHF__CALL_METRIC:
        call_metric(e, in);
        break;
    default:
        return -1;
    }
    return in->bad ? -1 : 0;
}

int rlhf__ear_call(struct rlhf__ear *e, struct rlhf__wire in, struct rlhf__buf *reply) {
    rlhf__buf_clear(reply);
    e->messages++;
    return in.kind <= RLHF__CALL_NOTED ? words(e, &in) : rlhf__ear_serve(e, &in, reply);
}
