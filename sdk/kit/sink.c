// sink.c: simulates a run for a sink. See rlhf/test.h.
#include <rlhf/test.h>

enum { MOST = 64 };

static rlhf_status play_phase(const rlhf_sink_ops *ops, void *self, const struct rlhf_test_run *run,
                              int64_t k) {
    const rlhf_str prompt = {"It was ", 7}, response = {"\"fun\", they said.\n", 18};
    const float score = 0.5F;
    double value[MOST];
    const uint32_t n = run->n_metrics < MOST ? run->n_metrics : MOST;
    for (uint32_t i = 0; i < n; i++)
        value[i] = run->values[i] * (double)k;
    const rlhf_sink_phase phase = {.size = (uint32_t)sizeof phase,
                                   .n_metrics = n,
                                   .n_samples = 1,
                                   .phase = k,
                                   .steps = k,
                                   .elapsed = 2.0 * (double)k,
                                   .name = run->names,
                                   .value = value,
                                   .prompt = &prompt,
                                   .response = &response,
                                   .score = &score};
    return ops->phase(self, &phase);
}

rlhf_status rlhf_test_sink(const rlhf_sink_ops *ops, void *self, const struct rlhf_test_run *run) {
    const char *slash = strrchr(run->dir, '/');
    const rlhf_sink_run begin = {.size = (uint32_t)sizeof begin,
                                 .resumed = run->done > 0,
                                 .phase = run->done,
                                 .phases = run->phases,
                                 .dir = run->dir,
                                 .name = slash ? slash + 1 : run->dir,
                                 .config = "{\"run\": {\"seed\": 1}}"};
    rlhf_status st = ops->begin(self, &begin);
    for (int64_t k = run->done + 1; st >= 0 && k <= run->phases; k++)
        st = play_phase(ops, self, run, k);
    const rlhf_status last = ops->end ? ops->end(self, run->how, run->why ? run->why : "") : 0;
    return st < 0 ? st : last;
}
