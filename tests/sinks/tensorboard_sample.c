// tensorboard_sample.c: writes the input of check_tensorboard.py to the directory argv[1]: a run of
// 4 phases, of which the last two are written twice because of a resume.
#include "sinks/fixture.h"

#include <math.h>

static void phases(struct sink *k, const char *dir, int64_t done, int64_t to, double base) {
    static const char text[] = " great | film\n\xc3\xa9";
    const char *const name[] = {"loss/total", "objective/scores"};
    const rlhf_str prompt = {"This was", 8}, response = {text, sizeof text - 1};
    const double score = 0.5, logp = -12.5;
    const uint8_t held_out = 0;
    double x[33];
    for (int i = 0; i < 33; i++)
        x[i] = (double)((i * 39 + 16) / 32);
    const rlhf_spread spread = {
        .size = sizeof spread, .n = 33, .numbers = 40, .mean = 19.5, .name = "length", .value = x};
    const rlhf_spread *const spreads = &spread;
    assert_int_equal(sink_begin(k, dir, done), RLHF_OK);
    for (int64_t p = k->from > 0 ? k->from : 1; p <= to; p++) {
        const double value[] = {NAN, base + (double)p};
        const rlhf_sink_phase in = {.size = sizeof in,
                                    .n_metrics = 2,
                                    .n_samples = 1,
                                    .n_spreads = 1,
                                    .phases_done = p,
                                    .name = name,
                                    .value = value,
                                    .prompt = &prompt,
                                    .response = &response,
                                    .score = &score,
                                    .ref_logp = &logp,
                                    .held_out = &held_out,
                                    .spread = &spreads};
        assert_int_equal(k->ops->phase(k->self, &in), RLHF_OK);
    }
    sink_end(k);
}

int main(int argc, char **argv) {
    struct sink k;
    if (argc != 2) return 2;
    sink_load(&k, "tensorboard.so");
    phases(&k, argv[1], -1, 4, 0);
    phases(&k, argv[1], 2, 4, 100);
    return 0;
}
