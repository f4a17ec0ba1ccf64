// gold_reward.c: a reward that reads the data row. It gives the data row's "points" if the row's
// "answer" is the expected string, otherwise 0. If a group does not have `rows` rows, it refuses
// the batch. It reports metrics under its own names, and under names that belong to the host or to
// other plugins.
#include "support/plugin.h"

#include <rlhf/reward.h>
#include <rlhf/service.h>

#include <string.h>

struct config {
    const char *answer;
    int64_t rows;  // a group
    int64_t fails; // row, counted from 1, that fails the first time; 0: no row fails
};

static const rlhf_opt opts[] = {
    RLHF_OPT_STR(struct config, answer, "yes", "what is right"),
    RLHF_OPT_I64(struct config, rows, 1, 1, 1000, "rows of a group"),
    RLHF_OPT_I64(struct config, fails, 0, 0, 1000, "row that fails once, from 1; 0: none"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    int64_t calls;
};

TEST_INSTANCE(struct self)

static rlhf_status look_up(const struct self *s, const rlhf_row_service *r, const rlhf_row *row,
                           float *pays) {
    rlhf_str answer;
    double points;
    RLHF_TRY(r->string(s->host, row, "answer", &answer));
    RLHF_TRY(r->number(s->host, row, "/extra/points", &points));
    size_t n = strlen(s->config->answer);
    *pays = answer.len == n && memcmp(answer.ptr, s->config->answer, n) == 0 ? (float)points : 0;
    return RLHF_OK;
}

static rlhf_status check_groups(const struct self *s, const rlhf_reward_in *in) {
    for (uint32_t i = 0; i < in->n; i++) {
        uint32_t same = 0;
        for (uint32_t k = 0; k < in->n; k++)
            same += in->group[k] == in->group[i];
        if (same != s->config->rows || (i % s->config->rows && in->group[i] != in->group[i - 1]))
            return s->host->fail(s->host, RLHF_E_INVALID, "the groups are not as they should be");
    }
    return RLHF_OK;
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct self *s = self;
    const rlhf_row_service *r = s->host->service(s->host, RLHF_SVC_ROW);
    double right = 0;
    RLHF_TRY(check_groups(s, in));
    for (uint32_t i = 0; i < in->n; i++) {
        rlhf_row *row;
        if (out->verdict[i] != RLHF_VERDICT_NONE)
            return s->host->fail(s->host, RLHF_E_INVALID, "a verdict was there before");
        RLHF_TRY(r->open(s->host, in->meta[i], &row));
        rlhf_status st = look_up(s, r, row, &out->seq[i]);
        r->close(s->host, row);
        if (st < 0) return st;
        right += out->seq[i] > 0;
        out->verdict[i] = out->seq[i] > 0 ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_WRONG;
    }
    if (s->calls++ == 0 && s->config->fails > 0 && s->config->fails <= in->n)
        out->failed[s->config->fails - 1] = 1;
    rlhf_metric_last(s->host, "right", right);
    rlhf_metric_last(s->host, "objective/kl", 1e6);
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};
TEST_PLUGIN(RLHF_KIND_REWARD, "gold", .summary = "pays what the data row says", TEST_OPTIONS(opts),
            TEST_INSTANCES)
