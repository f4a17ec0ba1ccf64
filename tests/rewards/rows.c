// rows.c: see rows.h.
#include "rewards/rows.h"

#include "base/json.h"
#include "plugin/row_service.h"

static struct rlhf__services services;
static struct rlhf__note failure;
static struct rlhf__row_service service;
static uint64_t mark;

const rlhf_row_service *rows_open(void) {
    services = (struct rlhf__services){.phase = -1, .failure = &failure};
    rlhf__note_init(&failure);
    if (rlhf__row_service_init(&service, &services, NULL) != RLHF_OK) return NULL;
    return rlhf__services_find(&services, RLHF_SVC_ROW);
}

void rows_close(void) { rlhf__note_finish(&failure); }

const char *rows_said(const struct reward *r) {
    static char text[2048];
    rlhf__note_since(&failure, mark, text, sizeof text);
    mark = rlhf__note_mark(&failure);
    return *text ? text : r->host.fail_text;
}

rlhf_status try_row(struct reward *r, const char *row, const char *response, double *score) {
    static struct texts t;
    memset(&t, 0, sizeof t);
    texts_add(&t, "It was ", 7, response, strlen(response));
    t.meta[0] = (rlhf_str){row, row ? strlen(row) : 0};
    t.seq[0] = -99;
    r->host.fail_text[0] = 0;
    mark = rlhf__note_mark(&failure);
    rlhf_status st = texts_score(r, &t, 0, 1);
    *score = (double)t.seq[0];
    return st;
}

double score_row(struct reward *r, const char *row, const char *response) {
    double score;
    if (try_row(r, row, response, &score) != RLHF_OK)
        fail_msg("%s and \"%s\": %s", row, response, rows_said(r));
    return score;
}

const char *row_of(const char *answer) {
    static char row[4096];
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_puts(&text, "{\"answer\": ");
    rlhf__json_write_string(&text, answer, strlen(answer));
    rlhf__buf_puts(&text, "}");
    assert_true(text.len < sizeof row);
    memcpy(row, rlhf__buf_text(&text), text.len + 1);
    rlhf__buf_free(&text);
    return row;
}
