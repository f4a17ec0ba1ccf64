// judge_program.c: see judge_program.h.
#include "rubric/judge_program.h"

#include "process/utf8.h"
#include "process/words.h"

#include <math.h>
#include <rlhf/log.h>
#include <rlhf/service.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_LINE = 1 << 20, SHOWN = 120 };

rlhf_status rlhf__judge_program_open(struct rlhf__judge_program *j, const rlhf_host *host,
                                     const char *command) {
    RLHF_TRY(rlhf__words_split(host, command, &j->words));
    return rlhf__program_init(&j->program, host, j->words, NULL);
}

void rlhf__judge_program_close(struct rlhf__judge_program *j, const rlhf_host *host) {
    if (!j->words) return;
    rlhf__program_finish(&j->program);
    rlhf__said_show(&j->program.said, host, NULL);
    host->free(host, j->words);
}

// ---- one criterion ----

struct reader {
    struct rlhf__asks *asks;
    struct rlhf__bytes rest; // a line without its end
    uint32_t first, n, left; // the asks of the criterion, and those without an answer
    char why[RLHF__ASK_WHY];
};

static int refuse(struct reader *r, const char *line, size_t n, const char *what) {
    char shown[SHOWN];
    snprintf(r->why, sizeof r->why, "it answered \"%s\": %s",
             rlhf__utf8_shown(line, n, shown, sizeof shown), what);
    return 0;
}

static int take_line(struct reader *r, const char *line, size_t n) {
    const rlhf_host *host = r->asks->host;
    const rlhf_row_service *rows = host->service(host, RLHF_SVC_ROW);
    rlhf_row *row = NULL;
    int64_t k = -1;
    double score = 0;
    rlhf_str failed = {NULL, 0};
    char text[RLHF__ASK_WHY];
    const int is_object = rows && n && rows->open(host, (rlhf_str){line, n}, &row) == RLHF_OK;
    if (is_object) rows->integer(host, row, "ask", &k);
    if (is_object && rows->type(host, row, "failed") == RLHF_JSON_STRING)
        rows->string(host, row, "failed", &failed);
    int good = k >= r->first && k < (int64_t)r->first + r->n;
    struct rlhf__ask *ask = good ? &r->asks->ask[k] : NULL;
    if (!good)
        refuse(r, line, n, "it has no \"ask\", the number of a question that was asked");
    else if (!ask->open)
        good = refuse(r, line, n, "the question was answered already");
    else if (!failed.ptr && rows->number(host, row, "score", &score) != RLHF_OK)
        good = refuse(r, line, n, "it has neither \"score\", a number, nor \"failed\", a text");
    if (good && failed.ptr) {
        snprintf(text, sizeof text, "%.*s", (int)fmin((double)failed.len, RLHF__ASK_WHY),
                 failed.ptr);
        rlhf__ask_lose(ask, text);
    } else if (good) {
        snprintf(text, sizeof text, "%.17g", score);
        rlhf__ask_answer(r->asks, ask, text, strlen(text));
    }
    r->left -= (uint32_t)good;
    if (is_object) rows->close(host, row);
    return good;
}

static enum rlhf__taken take(void *ctx, const char *bytes, size_t n) {
    struct reader *r = ctx;
    for (const char *end; (end = memchr(bytes, '\n', n));) {
        const size_t len = (size_t)(end - bytes);
        rlhf__bytes_add(&r->rest, bytes, len);
        if (r->rest.full || !take_line(r, r->rest.data ? r->rest.data : "", r->rest.len))
            return RLHF__TAKEN_NONE;
        r->rest.len = 0;
        bytes += len + 1;
        n -= len + 1;
    }
    rlhf__bytes_add(&r->rest, bytes, n);
    if (r->rest.full) return RLHF__TAKEN_NONE;
    if (r->rest.len > LONGEST_LINE)
        return refuse(r, r->rest.data, SHOWN, "the line is longer than 1 MiB") ? RLHF__TAKEN_MORE
                                                                               : RLHF__TAKEN_NONE;
    return r->left ? RLHF__TAKEN_MORE : RLHF__TAKEN_ALL;
}

static void write_lines(const struct reader *r, struct rlhf__bytes *to) {
    struct rlhf__bytes text = {.host = r->asks->host};
    for (uint32_t k = r->first; k < r->first + r->n; k++) {
        const struct rlhf__ask *ask = &r->asks->ask[k];
        const char *name = r->asks->criteria->of[ask->criterion].name;
        text.len = 0;
        rlhf__criteria_ask(r->asks->criteria, ask->criterion, r->asks->in, ask->row, &text);
        rlhf__bytes_text(to, "{\"ask\":");
        rlhf__bytes_number(to, k);
        rlhf__bytes_text(to, ",\"criterion\":\"");
        rlhf__bytes_text(to, name);
        rlhf__bytes_text(to, "\",\"text\":");
        rlhf__bytes_string(to, (rlhf_str){text.data, text.len});
        rlhf__bytes_text(to, "}\n");
    }
    if (text.full) to->full = 1;
    rlhf__bytes_finish(&text);
}

static void lose_rest(struct reader *r, const char *why) {
    for (uint32_t k = r->first; k < r->first + r->n; k++)
        if (r->asks->ask[k].open) rlhf__ask_lose(&r->asks->ask[k], why);
}

static rlhf_status talk(struct rlhf__judge_program *j, struct reader *r,
                        const struct rlhf__bytes *to) {
    struct rlhf__exchange x = {.send = to->data, .n_send = to->len, .take = take, .ctx = r};
    const rlhf_host *host = r->asks->host;
    char why[1024];
    if (!j->program.process || rlhf__program_has_ended(&j->program)) {
        rlhf__program_kill(&j->program);
        RLHF_TRY(rlhf__program_start(&j->program));
    }
    const enum rlhf__talk what = rlhf__talk(&j->program, &x);
    if (what == RLHF__TALK_DONE) return RLHF_OK;
    if (what != RLHF__TALK_REFUSED && what != RLHF__TALK_CANCELLED)
        rlhf__talk_why(&j->program, what, "", why, sizeof why);
    rlhf__program_kill(&j->program);
    if (what == RLHF__TALK_CANCELLED) return RLHF_E_CANCELLED;
    if (r->rest.full) return (host->fail)(host, RLHF_E_NOMEM, "out of memory for answers");
    if (what != RLHF__TALK_REFUSED) snprintf(r->why, sizeof r->why, "%.500s", why);
    lose_rest(r, r->why);
    return RLHF_OK;
}

rlhf_status rlhf__judge_program_ask(struct rlhf__judge_program *j, struct rlhf__asks *asks) {
    rlhf_status st = RLHF_OK;
    for (uint32_t k = 0, end; st == RLHF_OK && k < asks->n; k = end) {
        for (end = k + 1; end < asks->n && asks->ask[end].criterion == asks->ask[k].criterion;)
            end++;
        struct reader r = {
            .asks = asks, .rest = {.host = asks->host}, .first = k, .n = end - k, .left = end - k};
        struct rlhf__bytes to = {.host = asks->host};
        write_lines(&r, &to);
        if (to.full)
            st = (asks->host->fail)(asks->host, RLHF_E_NOMEM, "out of memory for questions");
        else
            st = talk(j, &r, &to);
        rlhf__bytes_finish(&to);
        rlhf__bytes_finish(&r.rest);
    }
    return st;
}
