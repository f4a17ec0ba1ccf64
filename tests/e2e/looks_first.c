// looks_first.c: an algorithm that reads the whole batch before it learns from it, and stops the
// run if advantages() and loss() get inputs that violate the contract. It raises the log-probs.
#include "support/plugin.h"

#include <rlhf/algo.h>
#include <rlhf/service.h>

#include <string.h>

struct config {
    int64_t source;
    int32_t mismatched, reserved;
};

enum { MOST = 1024 };

struct algo {
    const rlhf_host *host;
    const struct config *config;
    double looked, wanted, other, answers, checked; // numbers of the phase
    int64_t n, total;
    int32_t group[MOST], label[MOST]; // [n] of the rows that loss() must get
    int32_t ids[MOST], begin[MOST + 1];
    float old[MOST]; // [total]
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, source, RLHF_SOURCE_COMPLETIONS, 0, 100, "rows"),
    RLHF_OPT_BOOL(struct config, mismatched, 0, "rows of another's completion"),
};

TEST_INSTANCE(struct algo)

static rlhf_status plan(void *self, const rlhf_run_info *run, rlhf_plan *out) {
    const struct algo *a = self;
    (void)run;
    out->source = (int32_t)a->config->source;
    out->heads = RLHF_HEAD_LOGP;
    out->flags = RLHF_PLAN_REFERENCE | RLHF_PLAN_RECOMPUTE_LOGP;
    if (a->config->mismatched) out->flags |= RLHF_PLAN_MISMATCHED;
    out->epochs = out->minibatches = out->group_size = 1;
    return RLHF_OK;
}

#define EXPECT(a, what)                                                                            \
    do {                                                                                           \
        if (!(what)) return (a)->host->fail((a)->host, RLHF_E_INTERNAL, "not so: " #what);         \
    } while (0)

static rlhf_status read_row(struct algo *a, rlhf_str json) {
    const rlhf_row_service *s = a->host->service(a->host, RLHF_SVC_ROW);
    rlhf_row *row = NULL;
    double answer = 0;
    EXPECT(a, s && json.len > 0);
    rlhf_status st = s->open(a->host, json, &row);
    if (st == RLHF_OK) st = s->number(a->host, row, "answer", &answer);
    s->close(a->host, row);
    a->answers += answer;
    return st;
}

static rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    struct algo *a = self;
    const int rollout = a->config->source == RLHF_SOURCE_ROLLOUT;
    a->n = a->total = 0;
    EXPECT(a, in->n <= MOST && in->total <= MOST && in->ids && in->label);
    EXPECT(a, (in->meta != NULL) == rollout);
    for (uint32_t i = 0; i < in->n; i++) {
        const int32_t from = in->offset[i], len = in->offset[i + 1] - from;
        if (rollout) {
            const rlhf_status st = read_row(a, in->meta[i]);
            if (st != RLHF_OK) return st;
        }
        a->wanted += in->label[i] == 1;
        a->other += in->label[i] == -1;
        if (in->label[i] < 0) { // follows the preferred row, whose prompt it has
            EXPECT(a, i > 0 && in->group[i] == in->group[i - 1] && in->label[i - 1] >= 0);
            EXPECT(a, in->prompt_len[i] == in->prompt_len[i - 1]);
            EXPECT(a, memcmp(in->ids + from, in->ids + in->offset[i - 1],
                             (size_t)in->prompt_len[i] * sizeof *in->ids) == 0);
            out->use[i] = RLHF_USE_EXCLUDED;
            continue;
        }
        memcpy(a->ids + a->total, in->ids + from, (size_t)len * sizeof *a->ids);
        memcpy(a->old + a->total, in->logp_old + from, (size_t)len * sizeof *a->old);
        a->group[a->n] = in->group[i];
        a->label[a->n] = in->label[i];
        a->begin[a->n++] = (int32_t)a->total;
        a->total += len;
        for (int32_t t = in->prompt_len[i]; t < len; t++)
            out->advantage[from + t] = in->logp_old[from + t];
    }
    a->looked += 1;
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct algo *a = self;
    const int rollout = a->config->source == RLHF_SOURCE_ROLLOUT;
    out->loss = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        const int32_t from = in->offset[i], len = in->offset[i + 1] - from;
        int64_t k = 0; // rows of rollouts are shuffled, but groups stay together
        while (k < a->n &&
               (a->group[k] != in->group[i] ||
                memcmp(a->ids + a->begin[k], in->ids + from, (size_t)len * sizeof *a->ids) != 0))
            k++;
        EXPECT(a, k < a->n && in->label[i] == a->label[k]);
        for (int32_t t = in->prompt_len[i]; t < len; t++) {
            // No step was taken since advantages(), so the log-probs must be those that
            // advantages() got.
            EXPECT(a, a->old[a->begin[k] + t] == in->heads->logp[from + t]);
            EXPECT(a, in->logp_old[from + t] == in->heads->logp[from + t]);
            EXPECT(a, in->advantage[from + t] == in->logp_old[from + t]);
            EXPECT(a, rollout || in->logp_sampled == NULL);
            out->loss -= (double)in->heads->logp[from + t] / (double)in->batch_tokens;
            out->d_heads->logp[from + t] = (float)(-1 / (double)in->batch_tokens);
            a->checked++;
        }
    }
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    struct algo *a = self;
    (void)info;
    rlhf_metric_last(a->host, "test/looked", a->looked);
    rlhf_metric_last(a->host, "test/wanted", a->wanted);
    rlhf_metric_last(a->host, "test/other", a->other);
    rlhf_metric_last(a->host, "test/answers", a->answers);
    rlhf_metric_last(a->host, "test/checked", a->checked);
    a->looked = a->wanted = a->other = a->answers = a->checked = 0;
    return RLHF_OK;
}

static const rlhf_algo_ops ops = {.size = sizeof ops,
                                  .plan = plan,
                                  .advantages = advantages,
                                  .loss = loss,
                                  .phase_end = phase_end};
TEST_PLUGIN(RLHF_KIND_ALGO, "looks_first", .summary = "looks at the batch first",
            TEST_OPTIONS(opts), TEST_INSTANCES)
