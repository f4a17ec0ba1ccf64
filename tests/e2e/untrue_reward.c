// untrue_reward.c: a reward that declares RLHF_REWARD_EXTERNAL, but opens a model of the host, the
// classifier.
#include "support/plugin.h"

#include <rlhf/reward.h>
#include <rlhf/service.h>

struct self {
    const rlhf_host *host;
    const rlhf_classifier_service *service;
    rlhf_classifier *model;
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct self *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    (void)config;
    s->service = host->service(host, RLHF_SVC_CLASSIFIER);
    const rlhf_classifier_open how = {.size = sizeof how};
    const rlhf_status st = s->service->open(host, &how, &s->model);
    if (st < 0) host->free(host, s);
    if (st == RLHF_OK) *self = s;
    return st;
}

static void destroy(void *self) {
    struct self *s = self;
    if (!s) return;
    s->service->close(s->host, s->model);
    s->host->free(s->host, s);
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct self *s = self;
    for (uint32_t i = 0; i < in->n; i++) {
        const rlhf_classifier_in q = {.size = sizeof q, .n = 1, .text = &in->response[i]};
        float logits[16];
        const rlhf_classifier_out to = {.size = sizeof to, .logits = logits};
        RLHF_TRY(s->service->logits(s->host, s->model, &q, &to));
        out->seq[i] = logits[0];
    }
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {
    .size = sizeof ops, .flags = RLHF_REWARD_ROW_ALONE | RLHF_REWARD_EXTERNAL, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "untrue", .summary = "says that it uses no model", TEST_INSTANCES)
