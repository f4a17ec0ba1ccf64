// rows.c: see rows.h.
#include "rewards/rows.h"

#include "base/json.h"

rlhf_status try_row(struct reward *r, const char *row, const char *response, double *score) {
    static struct texts t;
    memset(&t, 0, sizeof t);
    texts_add(&t, "It was ", 7, response, strlen(response));
    t.meta[0] = (rlhf_str){row, row ? strlen(row) : 0};
    t.seq[0] = -99;
    r->host.fail_text[0] = 0;
    rlhf_status st = texts_score(r, &t, 0, 1);
    *score = (double)t.seq[0];
    return st;
}

double score_row(struct reward *r, const char *row, const char *response) {
    double score;
    if (try_row(r, row, response, &score) != RLHF_OK)
        fail_msg("%s and \"%s\": %s", row, response, rlhf_test_failure(&r->host));
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
    rlhf__buf_finish(&text);
    return row;
}
