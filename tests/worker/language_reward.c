// language_reward.c: a reward that calls every function of "rlhf.language_model". Its score is a
// number computed from everything that the service returns.
#include "support/plugin.h"

#include <rlhf/reward.h>
#include <rlhf/service.h>

#include <string.h>

enum { MOST = 512, MAX_NEW = 4 };

struct self {
    const rlhf_host *host;
    const rlhf_language_model_service *service;
    rlhf_language_model *model;
    rlhf_language_info info;
    rlhf_rng rng;
};

static void destroy(void *self) {
    struct self *s = self;
    if (!s) return;
    s->service->close(s->host, s->model);
    s->host->free(s->host, s);
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const rlhf_language_open how = {
        .size = sizeof how, .longest = 60, .slots = 2, .path = "default"};
    struct self *s = host->alloc(host, sizeof *s);
    (void)config;
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->service = host->service(host, RLHF_SVC_LANGUAGE_MODEL);
    s->info.size = sizeof s->info;
    rlhf_status st = s->service->open(host, &how, &s->model);
    if (st == RLHF_OK) st = s->service->info(host, s->model, &s->info);
    if (st == RLHF_OK && s->info.longest != how.longest)
        st = host->fail(host, RLHF_E_INTERNAL, "longest is lost");
    if (st < 0) {
        destroy(s);
        return st;
    }
    *self = s;
    return RLHF_OK;
}

// Two rows with the same prompt: the response is scored, and so is the prompt's own last token.
static rlhf_status score_rows(const struct self *s, const int32_t *ids, int32_t n, double *sum) {
    int32_t both[2 * MOST], offset[3] = {0, n, 2 * n - 1}, prompt_len[2] = {n / 2, n / 2};
    float logp[2 * MOST];
    memcpy(both, ids, (size_t)n * sizeof *ids);
    memcpy(both + n, ids, (size_t)(n - 1) * sizeof *ids);
    const rlhf_language_rows rows = {
        .size = sizeof rows, .n = 2, .ids = both, .offset = offset, .prompt_len = prompt_len};
    const rlhf_language_scores out = {.size = sizeof out, .logp = logp};
    RLHF_TRY(s->service->score(s->host, s->model, &rows, &out));
    for (int32_t t = 0; t < offset[2]; t++)
        *sum = *sum * 1.01 + (double)logp[t];
    return RLHF_OK;
}

static rlhf_status write_rows(struct self *s, const int32_t *ids, int32_t n, double *sum) {
    const int32_t offset[3] = {0, n / 2, n}, stop[1] = {ids[0]};
    int32_t made[2 * MAX_NEW], len[2];
    uint8_t stopped[2];
    float logp[2 * MAX_NEW];
    char text[64];
    rlhf_decode_out to = {.size = sizeof to, .utf8 = text, .cap = sizeof text};
    const rlhf_language_request q = {.size = sizeof q,
                                     .n = 2,
                                     .ids = ids,
                                     .offset = offset,
                                     .max_new = MAX_NEW,
                                     .top_k = 50,
                                     .temperature = 0.9,
                                     .top_p = 0.95,
                                     .rng = &s->rng,
                                     .stop = stop,
                                     .n_stop = 1,
                                     .flags = RLHF_LANGUAGE_PAST_ENDS};
    const rlhf_language_responses out = {
        .size = sizeof out, .ids = made, .len = len, .stopped = stopped, .logp = logp};
    RLHF_TRY(s->service->generate(s->host, s->model, &q, &out));
    s->rng.counter += q.n;
    for (int i = 0; i < 2; i++) {
        const int32_t *row = made + i * MAX_NEW;
        const rlhf_decode_in made_ids = {
            .size = sizeof made_ids, .n = (uint32_t)len[i], .ids = row};
        RLHF_TRY(s->service->decode(s->host, s->model, &made_ids, &to));
        *sum += (double)(to.len + stopped[i]) * 1e-3 + (double)text[0] * 1e-4;
        for (int32_t t = 0; t < len[i]; t++)
            *sum = *sum * 1.01 + row[t] * 1e-4 + (double)logp[i * MAX_NEW + t];
    }
    return RLHF_OK;
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct self *s = self;
    s->host->rng(s->host, "language", &s->rng);
    for (uint32_t i = 0; i < in->n; i++) {
        int32_t ids[MOST];
        double sum = s->info.n_vocab + (int32_t)s->info.n_ends + s->info.bos + s->info.templated;
        const rlhf_language_prompt q = {.size = sizeof q, .text = in->prompt[i]};
        const rlhf_encode_in text = {.size = sizeof text, .text = in->response[i]};
        rlhf_encode_out to = {.size = sizeof to, .cap = MOST / 2, .ids = ids};
        RLHF_TRY(s->service->prompt(s->host, s->model, &q, &to));
        uint32_t n = to.n;
        to.ids += n;
        RLHF_TRY(s->service->encode(s->host, s->model, &text, &to));
        n += to.n;
        if (n < 4 || n > 50)
            return s->host->fail(s->host, RLHF_E_INTERNAL, "the test has other rows");
        RLHF_TRY(score_rows(s, ids, (int32_t)n, &sum));
        RLHF_TRY(write_rows(s, ids, (int32_t)n, &sum));
        out->seq[i] = (float)sum;
    }
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "language", .summary = "uses a language model in every way",
            TEST_INSTANCES)
