// sample.c: see sample.h.
#include "grader/sample.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define OPEN  "<tool_call>"
#define CLOSE "</tool_call>"

static int is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static rlhf_str trim(rlhf_str text) {
    while (text.len && is_blank(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len && is_blank(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

// Returns the offset of `what` in the text from offset `at` on, or the text's length.
static uint64_t find(rlhf_str text, uint64_t at, const char *what) {
    const size_t n = strlen(what);
    for (; at + n <= text.len; at++)
        if (memcmp(text.ptr + at, what, n) == 0) return at;
    return text.len;
}

// ---- tool calls ----

// Append a call in the form of chat completions. Returns 0 if `text` is no call.
static int put_call(struct rlhf__bytes *to, rlhf_str text, uint32_t number) {
    json_t *call = json_loadb(text.ptr, (size_t)text.len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *name = json_object_get(call, "name");
    const json_t *arguments = json_object_get(call, "arguments");
    char *written = json_is_object(arguments) ? json_dumps(arguments, JSON_ENSURE_ASCII) : NULL;
    const char *given = written ? written : json_string_value(arguments);
    const int ok = json_is_string(name) && given;
    if (ok) {
        rlhf__bytes_text(to, number ? ",{\"id\":\"call_" : "{\"id\":\"call_");
        rlhf__bytes_number(to, number);
        rlhf__bytes_text(to, "\",\"type\":\"function\",\"function\":{\"name\":");
        rlhf__bytes_string(to, (rlhf_str){json_string_value(name), json_string_length(name)});
        rlhf__bytes_text(to, ",\"arguments\":");
        rlhf__bytes_string(to, (rlhf_str){given, strlen(given)});
        rlhf__bytes_text(to, "}}");
    }
    json_decref(call);
    free(written); // jansson's memory
    return ok;
}

// Takes the calls out of the response: the text without them to `rest`, a list to `calls`.
static uint32_t take_calls(rlhf_str text, struct rlhf__bytes *rest, struct rlhf__bytes *calls) {
    uint32_t n = 0;
    uint64_t at = 0;
    while (at < text.len) {
        const uint64_t open = find(text, at, OPEN), from = open + strlen(OPEN);
        const uint64_t close = find(text, from < text.len ? from : text.len, CLOSE);
        if (close == text.len) break;
        rlhf__bytes_add(rest, text.ptr + at, (size_t)(open - at));
        if (put_call(calls, (rlhf_str){text.ptr + from, close - from}, n))
            n++;
        else
            rlhf__bytes_add(rest, text.ptr + open, (size_t)(close + strlen(CLOSE) - open));
        at = close + strlen(CLOSE);
    }
    rlhf__bytes_add(rest, text.ptr + at, (size_t)(text.len - at));
    return n;
}

// ---- the sample ----

// 1 if the text is one JSON object or list.
static int is_json(rlhf_str text) {
    if (!text.len || (*text.ptr != '{' && *text.ptr != '[')) return 0;
    json_t *v = json_loadb(text.ptr, (size_t)text.len,
                           JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    json_decref(v);
    return v != NULL;
}

static void put_sample(struct rlhf__bytes *to, rlhf_str text, rlhf_str calls, int finished,
                       int with_json) {
    rlhf__bytes_text(to, "{\"output_text\":");
    rlhf__bytes_string(to, text);
    rlhf__bytes_text(to, ",\"output_json\":");
    rlhf__bytes_json(to, with_json ? trim(text) : (rlhf_str){NULL, 0});
    rlhf__bytes_text(to, ",\"output_tools\":[");
    rlhf__bytes_add(to, calls.ptr, (size_t)calls.len);
    rlhf__bytes_text(to, "],\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                         "\"content\":");
    rlhf__bytes_string(to, text);
    if (calls.len) {
        rlhf__bytes_text(to, ",\"tool_calls\":[");
        rlhf__bytes_add(to, calls.ptr, (size_t)calls.len);
        rlhf__bytes_text(to, "]");
    }
    rlhf__bytes_text(to, "},\"finish_reason\":");
    rlhf__bytes_text(to, calls.len ? "\"tool_calls\"" : finished ? "\"stop\"" : "\"length\"");
    rlhf__bytes_text(to, "}]}");
}

static rlhf_status open_sample(struct rlhf__grader_sample *s, rlhf_str text, rlhf_str calls,
                               int finished) {
    const rlhf_row_service *rows = s->from.rows;
    // The row service refuses some JSON that jansson reads, such as numbers of thousands of digits.
    for (int with_json = is_json(trim(text)); with_json >= 0; with_json--) {
        s->text.len = 0;
        put_sample(&s->text, text, calls, finished, with_json);
        if (s->text.full) return (s->host->fail)(s->host, RLHF_E_NOMEM, "out of memory");
        const rlhf_status st =
            rows->open(s->host, (rlhf_str){s->text.data, s->text.len}, &s->sample);
        if (st == RLHF_E_NOMEM) return st;
        if (st == RLHF_OK) break;
    }
    s->from.of[RLHF__TEMPLATE_SAMPLE] = s->sample;
    return RLHF_OK;
}

rlhf_status rlhf__grader_sample_init(struct rlhf__grader_sample *s, const rlhf_host *host,
                                     const rlhf_reward_in *in, uint32_t i) {
    const rlhf_str none = {NULL, 0}, item = in->meta ? in->meta[i] : none;
    const int finished = !in->finished || in->finished[i];
    struct rlhf__bytes rest = {.host = host}, calls = {.host = host};
    rlhf_str text = in->response[i];
    *s = (struct rlhf__grader_sample){.host = host, .text = {.host = host}};
    s->from.rows = host->service(host, RLHF_SVC_ROW);
    if (!s->from.rows)
        return (host->fail)(host, RLHF_E_UNSUPPORTED, "this host does not offer " RLHF_SVC_ROW);
    if (item.len) RLHF_TRY(s->from.rows->open(host, item, &s->item));
    s->from.of[RLHF__TEMPLATE_ITEM] = s->item;
    if (s->item && s->from.rows->type(host, s->item, "tools") == RLHF_JSON_LIST &&
        take_calls(text, &rest, &calls))
        text = trim((rlhf_str){rest.data, rest.len});
    const rlhf_status st = rest.full || calls.full
                               ? (host->fail)(host, RLHF_E_NOMEM, "out of memory")
                               : open_sample(s, text, (rlhf_str){calls.data, calls.len}, finished);
    rlhf__bytes_finish(&rest);
    rlhf__bytes_finish(&calls);
    return st;
}

void rlhf__grader_sample_finish(struct rlhf__grader_sample *s) {
    if (!s->from.rows) return;
    s->from.rows->close(s->host, s->sample);
    s->from.rows->close(s->host, s->item);
    rlhf__bytes_finish(&s->text);
}
