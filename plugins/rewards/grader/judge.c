// judge.c: see judge.h.
#include "grader/judge.h"

#include "grader/sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

rlhf_status rlhf__grader_judge_open(struct rlhf__grader_judge *j) {
    j->client.host = j->host;
    j->client.o = j->o;
    RLHF_TRY(rlhf__target_network(j->host));
    return rlhf__http_open(&j->client);
}

void rlhf__grader_judge_close(struct rlhf__grader_judge *j) { rlhf__http_close(&j->client); }

// ---- a request ----

static void put_text(struct rlhf__bytes *to, const char *text) {
    rlhf__bytes_string(to, (rlhf_str){text, strlen(text)});
}

static void put_texts(struct rlhf__bytes *to, const json_t *list) {
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)(uintptr_t)list, i, v) {
        rlhf__bytes_text(to, i ? "," : "[");
        put_text(to, json_string_value(v));
    }
    rlhf__bytes_text(to, "]");
}

static void put_number(struct rlhf__bytes *to, double x) {
    if (fabs(x) < 0x1p53 && floor(x) == x)
        rlhf__bytes_number(to, (int64_t)x);
    else
        rlhf__bytes_double(to, x);
}

// The sampling parameters by their names in chat completions.
static void put_sampling(struct rlhf__bytes *to, const json_t *sampling) {
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)sampling, key, v) {
        if (json_is_null(v)) continue;
        rlhf__bytes_text(to, ",");
        put_text(to, strcmp(key, "max_completions_tokens") == 0 ? "max_completion_tokens" : key);
        rlhf__bytes_text(to, ":");
        if (json_is_number(v))
            put_number(to, json_number_value(v));
        else
            put_text(to, json_string_value(v));
    }
}

// The form of the answer, as the hosted service asks for it: the steps of the reasoning, then a
// number or a label.
static void put_format(struct rlhf__bytes *to, const struct rlhf__grader *g) {
    rlhf__bytes_text(
        to, ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"grade\","
            "\"strict\":true,\"schema\":{\"type\":\"object\",\"properties\":{\"steps\":{\"type\":"
            "\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"description\":{\"type\":"
            "\"string\"},\"conclusion\":{\"type\":\"string\"}},\"required\":[\"description\","
            "\"conclusion\"],\"additionalProperties\":false}},\"result\":{\"type\":");
    if (g->labels) {
        rlhf__bytes_text(to, "\"string\",\"enum\":");
        put_texts(to, g->labels);
    } else
        rlhf__bytes_text(to, "\"number\"");
    rlhf__bytes_text(to,
                     "}},\"required\":[\"steps\",\"result\"],\"additionalProperties\":false}}}");
}

int rlhf__grader_judge_write(const struct rlhf__grader_judge *j, const struct rlhf__grader *g,
                             const struct rlhf__template_from *from, struct rlhf__bytes *to) {
    struct rlhf__bytes text = {.host = j->host};
    int ok = 1;
    rlhf__bytes_text(to, "{\"model\":");
    put_text(to, j->model ? j->model : g->model);
    rlhf__bytes_text(to, ",\"messages\":[");
    for (uint32_t i = 0; ok && i < g->n_messages; i++) {
        text.len = 0;
        ok = rlhf__template_fill(&g->message[i].content, from, &text, NULL, 0);
        rlhf__bytes_text(to, i ? ",{\"role\":" : "{\"role\":");
        put_text(to, g->message[i].role);
        rlhf__bytes_text(to, ",\"content\":");
        rlhf__bytes_string(to, (rlhf_str){text.data, text.len});
        rlhf__bytes_text(to, "}");
    }
    rlhf__bytes_text(to, "]");
    put_sampling(to, g->sampling);
    put_format(to, g);
    rlhf__bytes_text(to, "}");
    to->full |= text.full;
    rlhf__bytes_finish(&text);
    return ok;
}

// ---- an answer ----

static double read_result(const struct rlhf__grader *g, const json_t *result) {
    double score = (double)NAN;
    if (g->labels && json_is_string(result) &&
        rlhf__grader_has_label(g->labels, json_string_value(result)))
        score = rlhf__grader_has_label(g->passing, json_string_value(result));
    if (!g->labels && json_is_number(result))
        score = fmin(fmax(json_number_value(result), g->low), g->high);
    return score;
}

double rlhf__grader_judge_read(const struct rlhf__grader *g, const char *body, size_t n) {
    const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
    json_t *v = n ? json_loadb(body, n, flags, NULL) : NULL;
    const json_t *choice = json_array_get(json_object_get(v, "choices"), 0);
    const json_t *text = json_object_get(json_object_get(choice, "message"), "content");
    json_t *answer = json_is_string(text)
                         ? json_loadb(json_string_value(text), json_string_length(text),
                                      flags | JSON_DECODE_ANY, NULL)
                         : NULL;
    // A service that does not know response_format may answer with the number alone.
    const double grade =
        read_result(g, json_is_object(answer) ? json_object_get(answer, "result") : answer);
    json_decref(answer);
    json_decref(v);
    return grade;
}

// ---- all rows ----

struct work {
    const struct rlhf__grader_judge *j;
    const struct rlhf__grader *g;
    const rlhf_reward_in *in;
    uint32_t *row; // [n] of each request
    double *grade;
    uint8_t *failed;
    char *why;
};

static rlhf_status write_row(struct work *w, uint32_t row, struct rlhf__bytes *to, int *ok) {
    struct rlhf__grader_sample s = {0};
    const rlhf_status st = rlhf__grader_sample_init(&s, w->j->host, w->in, row);
    *ok = st == RLHF_OK && rlhf__grader_judge_write(w->j, w->g, &s.from, to);
    rlhf__grader_sample_finish(&s);
    return st;
}

static rlhf_status write_request(void *ctx, uint32_t at, struct rlhf__bytes *to) {
    struct work *w = ctx;
    int ok;
    return write_row(w, w->row[at], to, &ok);
}

static rlhf_status take_answer(void *ctx, uint32_t at, const struct rlhf__bytes *body) {
    const struct work *w = ctx;
    w->grade[w->row[at]] = rlhf__grader_judge_read(w->g, body->data, body->len);
    return RLHF_OK;
}

static void lose_request(void *ctx, uint32_t at, const char *why) {
    const struct work *w = ctx;
    w->failed[w->row[at]] = 1;
    if (!*w->why) snprintf(w->why, RLHF__WHY, "%s", why);
}

// Lists the rows that have a question.
static rlhf_status list_rows(struct work *w, uint32_t *n) {
    struct rlhf__bytes body = {.host = w->j->host};
    rlhf_status st = RLHF_OK;
    int ok;
    *n = 0;
    for (uint32_t i = 0; st == RLHF_OK && i < w->in->n; i++) {
        body.len = 0;
        st = write_row(w, i, &body, &ok);
        w->grade[i] = (double)NAN;
        if (ok) w->row[(*n)++] = i;
    }
    if (st == RLHF_OK && body.full)
        st = (w->j->host->fail)(w->j->host, RLHF_E_NOMEM, "out of memory");
    rlhf__bytes_finish(&body);
    return st;
}

rlhf_status rlhf__grader_judge_ask(struct rlhf__grader_judge *j, const struct rlhf__grader *g,
                                   const rlhf_reward_in *in, double *grade, uint8_t *failed,
                                   char *why) {
    struct work w = {.j = j, .g = g, .in = in, .grade = grade, .failed = failed, .why = why};
    uint32_t n = 0;
    w.row = j->host->alloc(j->host, in->n * sizeof *w.row);
    if (!w.row) return (j->host->fail)(j->host, RLHF_E_NOMEM, "out of memory");
    rlhf_status st = list_rows(&w, &n);
    j->requests = (struct rlhf__requests){.client = &j->client,
                                          .ctx = &w,
                                          .write = write_request,
                                          .take = take_answer,
                                          .lose = lose_request,
                                          .n = n};
    if (st == RLHF_OK) st = rlhf__requests_send(&j->requests);
    j->host->free(j->host, w.row);
    return st;
}
