// judge_http.c: see judge_http.h.
#include "rubric/judge_http.h"

#include <string.h>

struct work {
    const struct rlhf__judge_http *j;
    struct rlhf__asks *asks;
};

rlhf_status rlhf__judge_http_open(struct rlhf__judge_http *j) {
    j->client.host = j->host;
    j->client.o = j->o;
    return rlhf__http_open(&j->client);
}

void rlhf__judge_http_close(struct rlhf__judge_http *j) { rlhf__http_close(&j->client); }

static rlhf_status write_ask(void *ctx, uint32_t at, struct rlhf__bytes *to) {
    const struct work *w = ctx;
    const struct rlhf__ask *ask = &w->asks->ask[at];
    struct rlhf__bytes text = {.host = w->j->host};
    rlhf__criteria_ask(w->asks->criteria, ask->criterion, w->asks->in, ask->row, &text);
    rlhf__bytes_text(to, "{\"model\":");
    rlhf__bytes_string(to, (rlhf_str){w->j->model, strlen(w->j->model)});
    rlhf__bytes_text(to, ",\"temperature\":0,\"max_tokens\":");
    rlhf__bytes_number(to, w->j->max_tokens);
    rlhf__bytes_text(to, ",\"messages\":[{\"role\":\"user\",\"content\":");
    rlhf__bytes_string(to, (rlhf_str){text.data, text.len});
    rlhf__bytes_text(to, "}]}");
    if (text.full) to->full = 1;
    rlhf__bytes_finish(&text);
    return RLHF_OK;
}

// Reads choices[0].message.content of an answer.
static rlhf_status take_score(void *ctx, uint32_t at, const struct rlhf__bytes *body) {
    const struct work *w = ctx;
    struct rlhf__ask *ask = &w->asks->ask[at];
    json_t *v = body->data ? json_loadb(body->data, body->len,
                                        JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL)
                           : NULL;
    const json_t *choice = json_array_get(json_object_get(v, "choices"), 0);
    const json_t *text = json_object_get(json_object_get(choice, "message"), "content");
    if (json_is_string(text))
        rlhf__ask_answer(w->asks, ask, json_string_value(text), json_string_length(text));
    else
        rlhf__ask_lose(ask, "its answer is not a chat completion, {\"choices\": "
                            "[{\"message\": {\"content\": TEXT}}]}");
    json_decref(v);
    return RLHF_OK;
}

static void lose_ask(void *ctx, uint32_t at, const char *why) {
    const struct work *w = ctx;
    rlhf__ask_lose(&w->asks->ask[at], why);
}

rlhf_status rlhf__judge_http_ask(struct rlhf__judge_http *j, struct rlhf__asks *asks) {
    struct work w = {.j = j, .asks = asks};
    j->requests = (struct rlhf__requests){.client = &j->client,
                                          .ctx = &w,
                                          .write = write_ask,
                                          .take = take_score,
                                          .lose = lose_ask,
                                          .n = asks->n};
    return rlhf__requests_send(&j->requests);
}
