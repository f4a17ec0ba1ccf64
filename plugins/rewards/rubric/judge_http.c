// judge_http.c: see judge_http.h.
#include "rubric/judge_http.h"

#include <math.h>
#include <rlhf/log.h>
#include <stdio.h>
#include <string.h>

enum { POLL_MS = 200 };

struct work {
    struct rlhf__judge_http *j;
    struct rlhf__asks *asks;
    struct rlhf__pause pause;
    uint32_t from; // all asks before this one are closed or in flight
    char last_why[RLHF__WHY];
};

rlhf_status rlhf__judge_http_open(struct rlhf__judge_http *j) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return (j->host->fail)(j->host, RLHF_E_INTERNAL, "libcurl does not start");
    j->started = 1;
    j->host->rng(j->host, "backoff", &j->jitter);
    j->client.host = j->host;
    j->client.o = j->o;
    return rlhf__http_open(&j->client);
}

void rlhf__judge_http_close(struct rlhf__judge_http *j) {
    if (!j->started) return;
    rlhf__http_close(&j->client);
    curl_global_cleanup();
}

// ---- requests ----

static rlhf_status write_body(const struct work *w, const struct rlhf__ask *ask,
                              struct rlhf__bytes *to) {
    struct rlhf__bytes text = {.host = w->j->host};
    to->len = 0;
    to->full = 0;
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
    if (!to->full) return RLHF_OK;
    return (w->j->host->fail)(w->j->host, RLHF_E_NOMEM, "out of memory for a request");
}

static rlhf_status send_ask(struct work *w, struct rlhf__ask *ask) {
    struct rlhf__http_client *c = &w->j->client;
    struct rlhf__http_slot *s = c->slot;
    while (s->flying)
        s++;
    RLHF_TRY(write_body(w, ask, &s->body));
    s->batch = (uint32_t)(ask - w->asks->ask);
    RLHF_TRY(rlhf__http_send(c, s));
    ask->open = 2;
    w->j->requests++;
    return RLHF_OK;
}

// ---- answers ----

// Reads choices[0].message.content of an answer.
static void read_answer(struct work *w, struct rlhf__ask *ask, const struct rlhf__bytes *body) {
    json_t *v = body->data ? json_loadb(body->data, body->len, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *choice = json_array_get(json_object_get(v, "choices"), 0);
    const json_t *text = json_object_get(json_object_get(choice, "message"), "content");
    if (json_is_string(text))
        rlhf__ask_answer(w->asks, ask, json_string_value(text), json_string_length(text));
    else
        rlhf__ask_lose(w->asks, ask,
                       "its answer is no chat completion, {\"choices\": [{\"message\": "
                       "{\"content\": TEXT}}]}");
    json_decref(v);
}

static void answered(struct work *w) {
    const double now = rlhf__http_now();
    if (w->pause.failures) w->j->paused += now - w->pause.since;
    const double lasted = rlhf__pause_answered(&w->pause, now);
    if (lasted > 0)
        rlhf_logf(w->j->host, RLHF_LOG_INFO, "%s answers again, after %.0f s",
                  w->j->client.target.shown, lasted);
}

static void again(struct work *w, struct rlhf__ask *ask) {
    const uint32_t at = (uint32_t)(ask - w->asks->ask);
    ask->open = 1;
    if (at < w->from) w->from = at;
    w->j->repeats++;
}

static void settle(struct work *w, const struct rlhf__http_slot *s, enum rlhf__http_end end,
                   const char *why, double retry_after) {
    const struct rlhf__http_options *o = w->j->o;
    struct rlhf__ask *ask = &w->asks->ask[s->batch];
    const double now = rlhf__http_now();
    struct rlhf__pause own = {.failures = ask->repeats, .since = now, .last_failed = s->began};
    if (end == RLHF__HTTP_ONWARD) return;
    if (end == RLHF__HTTP_ANSWERED || end == RLHF__HTTP_ERROR) answered(w);
    if (end == RLHF__HTTP_ANSWERED) {
        read_answer(w, ask, &s->answer);
    } else if (end == RLHF__HTTP_REFUSED ||
               (end == RLHF__HTTP_ERROR && ask->repeats == o->repeats)) {
        rlhf__ask_lose(w->asks, ask, why);
    } else if (end == RLHF__HTTP_ERROR) {
        rlhf__pause_failed(&own, o, &w->j->jitter, s->began, now, retry_after);
        ask->not_before = own.gate;
        ask->repeats++;
        again(w, ask);
    } else {
        rlhf__pause_failed(&w->pause, o, &w->j->jitter, s->began, now, retry_after);
        snprintf(w->last_why, sizeof w->last_why, "%s", why);
        again(w, ask);
    }
}

// ---- the loop ----

static struct rlhf__ask *next_ask(struct work *w, double now, double *when) {
    const uint32_t most = w->pause.failures ? 1 : w->j->client.n_slots;
    *when = now + 1;
    if (w->j->client.n_flying >= most) return NULL;
    if (now < w->pause.gate) {
        *when = w->pause.gate;
        return NULL;
    }
    while (w->from < w->asks->n && w->asks->ask[w->from].open != 1)
        w->from++;
    for (uint32_t k = w->from; k < w->asks->n; k++) {
        struct rlhf__ask *ask = &w->asks->ask[k];
        if (ask->open != 1) continue;
        if (ask->not_before <= now) return ask;
        *when = fmin(*when, ask->not_before);
    }
    return NULL;
}

static void look_at_pause(struct work *w, double now) {
    const struct rlhf__judge_http *j = w->j;
    char why[RLHF__WHY];
    if (rlhf__pause_over(&w->pause, j->o, now)) {
        snprintf(why, sizeof why, "%.300s, for patience_s=%g", w->last_why, j->o->patience_s);
        for (uint32_t k = 0; k < w->asks->n; k++)
            if (w->asks->ask[k].open == 1) rlhf__ask_lose(w->asks, &w->asks->ask[k], why);
    } else if (rlhf__pause_line_due(&w->pause, now)) {
        rlhf_logf(j->host, RLHF_LOG_WARN,
                  "%s does not answer: %.300s; the run waits for it, at most %.0f s more",
                  j->client.target.shown, w->last_why, rlhf__pause_left(&w->pause, j->o, now));
    }
}

static rlhf_status work(struct work *w) {
    const rlhf_host *host = w->j->host;
    while (w->asks->open) {
        enum rlhf__http_end end;
        char why[RLHF__WHY];
        double retry_after, when;
        if (host->cancelled(host)) return RLHF_E_CANCELLED;
        const double now = rlhf__http_now();
        look_at_pause(w, now);
        for (struct rlhf__ask *ask; (ask = next_ask(w, now, &when));)
            RLHF_TRY(send_ask(w, ask));
        const double ms = fmin(fmax((when - now) * 1000, 1), POLL_MS);
        if (w->asks->open) rlhf__http_wait(&w->j->client, (int)ms);
        for (struct rlhf__http_slot *s;
             (s = rlhf__http_next(&w->j->client, &end, why, &retry_after));)
            settle(w, s, end, why, retry_after);
    }
    return RLHF_OK;
}

rlhf_status rlhf__judge_http_ask(struct rlhf__judge_http *j, struct rlhf__asks *asks) {
    struct work w = {.j = j, .asks = asks};
    j->requests = j->repeats = 0;
    j->paused = 0;
    const rlhf_status st = work(&w);
    rlhf__http_drop(&j->client);
    if (w.pause.failures) j->paused += rlhf__http_now() - w.pause.since;
    return st;
}
