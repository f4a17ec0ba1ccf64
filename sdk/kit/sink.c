// sink.c: simulates a run for a sink. See rlhf/test.h.
#include <rlhf/test.h>

enum { MOST = 64 };

static rlhf_status play_phase(const rlhf_sink_ops *ops, void *self, const struct rlhf_test_run *run,
                              int64_t k) {
    const rlhf_str prompt = {"It was ", 7}, response = {"\"fun\", they said.\n", 18};
    const double score = 0.5, ref_logp = -2.5, lengths[] = {17, 18};
    const int64_t counts[] = {1, 3};
    const uint8_t held_out = 0;
    const rlhf_spread spread = {.size = (uint32_t)sizeof spread,
                                .n = 2,
                                .numbers = 4,
                                .mean = 17.75,
                                .name = "length",
                                .value = lengths,
                                .count = counts};
    const rlhf_spread *const spreads = &spread;
    double value[MOST];
    const uint32_t n = run->n_metrics < MOST ? run->n_metrics : MOST;
    for (uint32_t i = 0; i < n; i++)
        value[i] = run->values[i] * (double)k;
    const rlhf_sink_phase phase = {.size = (uint32_t)sizeof phase,
                                   .n_metrics = n,
                                   .n_samples = 1,
                                   .n_spreads = 1,
                                   .phases_done = k,
                                   .elapsed = 2.0 * (double)k,
                                   .name = run->names,
                                   .value = value,
                                   .prompt = &prompt,
                                   .response = &response,
                                   .score = &score,
                                   .ref_logp = &ref_logp,
                                   .held_out = &held_out,
                                   .spread = &spreads};
    return ops->phase(self, &phase);
}

rlhf_status rlhf_test_sink(const rlhf_sink_ops *ops, void *self, const struct rlhf_test_run *run) {
    const char *slash = strrchr(run->dir, '/');
    const rlhf_sink_run begin = {.size = (uint32_t)sizeof begin,
                                 .resumed = run->done > 0,
                                 .phases_done = run->done,
                                 .phases = run->phases,
                                 .dir = run->dir,
                                 .own_dir = run->dir,
                                 .name = slash ? slash + 1 : run->dir,
                                 .config = "{\"run\": {\"seed\": 1}}"};
    const rlhf_sink_end end = {.size = (uint32_t)sizeof end,
                               .how = run->how,
                               .phases_done = run->phases,
                               .why = run->why ? run->why : "",
                               .verdict = ""};
    rlhf_sink_answer answer = {.size = (uint32_t)sizeof answer};
    rlhf_status st = ops->begin(self, &begin, &answer);
    for (int64_t k = 1; st >= 0 && k <= run->phases; k++)
        if (k >= answer.from_phase) st = play_phase(ops, self, run, k);
    const rlhf_status last = ops->end ? ops->end(self, &end) : 0;
    return st < 0 ? st : last;
}
