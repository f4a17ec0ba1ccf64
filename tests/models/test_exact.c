// tests/models/test_exact.c: there is one numerical path. Log-probs that are recorded while
// sampling (ragged prompts, continuous batching, random admission, any number of slots) have the
// same bits as log-probs of the training forward (any split into batches, any thread count). The
// sampled ids are the same, too.
#include "decoders.h"
#include "rollout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct shape {
    const char *name, *plugin;
    const struct setting *settings;
    int32_t vocab, max_prompt, max_new;
    int32_t n_rules; // use only the first n of `rules`; 0: all
};

// Longer rows and a wider vocabulary, so that they exceed every block of a fast kernel. Two rules
// are enough for these shapes: one that keeps all tokens, and one that keeps some and records
// which. The other rules differ only in how the head chooses, which tests/kernels compares at such
// widths.
static const struct setting wider[] = {{"vocab_size", "1037"}, {"n_positions", "96"},
                                       {"n_embd", "80"},       {"n_layer", "3"},
                                       {"n_head", "5"},        {NULL, NULL}};
static const struct shape tiny_shape = {"tiny", "gpt2", tiny_gpt2, 61, 7, 12, 0};
static const struct shape wide_shape = {"wide", "gpt2", wider, 1037, 40, 50, 2};
static const struct shape tiny_decoders[] = {{"qwen2", "qwen2", tiny_qwen2, 61, 7, 12, 5},
                                             {"qwen3", "qwen3", tiny_qwen3, 61, 7, 12, 5},
                                             {"smollm3", "smollm3", tiny_smollm3, 61, 7, 12, 2},
                                             {"window", "mistral", tiny_window, 61, 7, 12, 2},
                                             {"gemma2", "gemma2", tiny_gemma2, 61, 7, 12, 2},
                                             {"gemma3", "gemma3_text", tiny_gemma3, 61, 7, 12, 2},
                                             {"granite", "granite", tiny_granite, 61, 7, 12, 5},
                                             {"phi3", "phi3", tiny_phi3, 61, 7, 12, 2},
                                             {"longrope", "phi3", long_phi3, 61, 7, 12, 2},
                                             {"olmo2", "olmo2", tiny_olmo2, 61, 7, 12, 5},
                                             {"olmo3", "olmo3", tiny_olmo3, 61, 7, 12, 2}};
static const struct shape state_shapes[] = {
    {"lfm2", "lfm2", tiny_lfm2, 61, 7, 12, 5},
    {"lfm2, biases", "lfm2", biased_lfm2, 61, 7, 12, 2},
    {"qwen3_5", "qwen3_5_text", tiny_qwen3_5, 61, 7, 12, 5},
    {"qwen3_5, biases", "qwen3_5_text", biased_qwen3_5, 61, 7, 12, 2},
    {"wide", "lfm2", wider_lfm2, 1037, 40, 50, 2},
    {"wide", "qwen3_5_text", wider_qwen3_5, 1037, 40, 50, 2}};
enum { N_NARROW = 4 };
static const struct shape wide_decoders[] = {
    {"wide", "qwen3", wider_qwen3, 1037, 40, 50, 2},
    {"wide window", "qwen2", wider_window, 1037, 40, 50, 2}};

struct rule {
    const char *name;
    rlhf_dist dist, logp_dist;
    int32_t keep; // log-probs are over the kept tokens
};
static const struct rule rules[] = {
    {"temperature 0.7", RLHF_DIST(1 / 0.7, 1, 0, 0), RLHF_DIST(1 / 0.7, 1, 0, 0), 0},
    {"top-p 0.8, its support at temperature 1", RLHF_DIST(1.4, 0.8, 0, 0), RLHF_DIST_WHOLE, 1},
    {"top-k 5", RLHF_DIST(1.25, 1, 5, 0), RLHF_DIST(1.25, 1, 5, 0), 0},
    {"top-p 0.8, top-k 20", RLHF_DIST(1, 0.8, 20, 0), RLHF_DIST(1, 0.8, 20, 0), 0},
    {"top-k 4, scored in full", RLHF_DIST(1.5, 1, 4, 0), RLHF_DIST_WHOLE, 0},
    {"top-k 5, its support", RLHF_DIST(1.25, 1, 5, 0), RLHF_DIST(1.25, 1, 0, 0), 1},
    {"everything, its support", RLHF_DIST_WHOLE, RLHF_DIST_WHOLE, 1},
    {"greedy, its support", RLHF_DIST(1, 1, 0, 1), RLHF_DIST_WHOLE, 1},
};

// Runs the forward pass over the rollout in batches of `step` rows. It must reproduce every
// recorded log-prob exactly.
static void check_forward(struct model *m, const struct rollout *r, const struct rule *rule,
                          uint32_t step, int32_t train) {
    uint64_t finite = 0;
    for (uint32_t first = 0; first < ROLL_ROWS; first += step) {
        struct rollout_batch b = rollout_batch(
            r, first, first + step > ROLL_ROWS ? ROLL_ROWS - first : step, m->info.n_vocab);
        float *logp = test_malloc(b.b.total * sizeof *logp);
        const rlhf_forward f = {.size = sizeof f,
                                .heads = RLHF_HEAD_LOGP,
                                .train = train,
                                .dist = &rule->logp_dist,
                                .support = rule->keep ? b.support : NULL};
        const rlhf_heads out = {.size = sizeof out, .logp = logp};
        must(m, m->ops->forward(m->self, &b.b, &f, &out));
        for (uint32_t t = 0; t < b.b.total; t++) {
            if (isfinite(logp[t]) && (logp[t] < 0 || rule->dist.greedy)) finite++;
            if (memcmp(&logp[t], &b.logp[t], sizeof *logp) != 0)
                fail_msg("token %u of rows %u..: forward %.9g, sampled %.9g", t, first,
                         (double)logp[t], (double)b.logp[t]);
        }
        test_free(logp);
        rollout_batch_free(&b);
    }
    assert_true(finite > 3 * ROLL_ROWS); // at least one value was compared
}

// Runs all rules, slot counts and batch splits with one backend, dtype and thread count. For the
// first configuration of a backend and dtype (`first`), stores the rollouts in `want`. Every other
// configuration must reproduce them.
static void check_config(const struct shape *s, const char *name, int32_t dtype, uint32_t threads,
                         struct rollout *want, int32_t first) {
    static const uint32_t slots[] = {13, 1, 4};
    struct backend backend = backend_open(name, threads, 0);
    assert_non_null(backend.compute);
    const rlhf_model_open o = open_args(&backend, dtype, 1);
    struct model m = model_open(s->plugin, s->settings, &o);
    struct rollout *r = test_malloc(sizeof *r);
    model_fill(&m, 0.3);
    const uint32_t n_rules = s->n_rules ? (uint32_t)s->n_rules : sizeof rules / sizeof *rules;
    for (uint32_t i = 0; i < n_rules; i++) {
        for (uint32_t k = 0; k < 3; k++) {
            rollout_init(r, s->vocab, s->max_prompt, s->max_new);
            rollout_run(r, &m, slots[k], 100 + k, &rules[i].dist, &rules[i].logp_dist,
                        rules[i].keep);
            if (first && k == 0) memcpy(&want[i], r, sizeof *r);
            if (memcmp(&want[i], r, sizeof *r) != 0)
                fail_msg("%s, %s: %u slots and %u threads draw something else", name, rules[i].name,
                         slots[k], threads);
        }
        check_forward(&m, r, &rules[i], ROLL_ROWS, 1);
        check_forward(&m, r, &rules[i], 5, 0);
        check_forward(&m, r, &rules[i], 1, 1);
    }
    test_free(r);
    model_close(&m);
    backend_close(&backend);
}

static void check(const struct shape *s, const char *name, int32_t dtype) {
    struct rollout *want = test_calloc(sizeof rules / sizeof *rules, sizeof *want);
    check_config(s, name, dtype, 1, want, 1);
    check_config(s, name, dtype, 2, want, 0);
    test_free(want);
}

static void test_reference_f32(void **state) {
    (void)state;
    check(&tiny_shape, "reference", RLHF_F32);
}
static void test_reference_bf16(void **state) {
    (void)state;
    check(&tiny_shape, "reference", RLHF_BF16);
}
static void test_cpu_f32(void **state) {
    (void)state;
    check(&tiny_shape, "cpu", RLHF_F32);
}
static void test_cpu_bf16(void **state) {
    (void)state;
    check(&tiny_shape, "cpu", RLHF_BF16);
}
static void test_cpu_f32_wide(void **state) {
    (void)state;
    if (backend_is_slow()) skip();
    check(&wide_shape, "cpu", RLHF_F32);
}
static void test_cpu_bf16_wide(void **state) {
    (void)state;
    if (backend_is_slow()) skip();
    check(&wide_shape, "cpu", RLHF_BF16);
}

// Grouped heads, rotary positions, norms of heads, gated MLPs.
static void test_decoders_reference(void **state) {
    (void)state;
    check(&tiny_decoders[0], "reference", RLHF_BF16);
    check(&tiny_decoders[1], "reference", RLHF_F32);
    check(&tiny_decoders[3], "reference", RLHF_BF16);
    check(&tiny_decoders[4], "reference", RLHF_BF16);
}
static void test_decoders_cpu(void **state) {
    (void)state;
    check(&tiny_decoders[0], "cpu", RLHF_F32);
    check(&tiny_decoders[1], "cpu", RLHF_BF16);
    check(&tiny_decoders[2], "cpu", RLHF_F32);
    check(&tiny_decoders[3], "cpu", RLHF_F32);
    check(&tiny_decoders[3], "cpu", RLHF_BF16);
    for (size_t i = 4; i < sizeof tiny_decoders / sizeof *tiny_decoders; i++) {
        check(&tiny_decoders[i], "cpu", RLHF_F32);
        check(&tiny_decoders[i], "cpu", RLHF_BF16);
    }
    if (backend_is_slow()) return;
    for (size_t i = 0; i < sizeof wide_decoders / sizeof *wide_decoders; i++) {
        check(&wide_decoders[i], "cpu", RLHF_F32);
        check(&wide_decoders[i], "cpu", RLHF_BF16);
    }
}

// Convolutions, the delta rule, gates of attention.
static void states_on(const char *name, size_t n) {
    struct backend b = backend_open(name, 1, 0);
    const int fits = plugin_fits(b.compute, "lfm2");
    backend_close(&b);
    if (!fits) skip();
    for (size_t i = 0; i < n; i++) {
        check(&state_shapes[i], name, RLHF_F32);
        check(&state_shapes[i], name, RLHF_BF16);
    }
}

static void test_states_reference(void **state) {
    (void)state;
    states_on("reference", N_NARROW);
}
static void test_states_cpu(void **state) {
    (void)state;
    states_on("cpu", backend_is_slow() ? N_NARROW : sizeof state_shapes / sizeof *state_shapes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference_f32),
                                       cmocka_unit_test(test_reference_bf16),
                                       cmocka_unit_test(test_cpu_f32),
                                       cmocka_unit_test(test_cpu_bf16),
                                       cmocka_unit_test(test_cpu_f32_wide),
                                       cmocka_unit_test(test_cpu_bf16_wide),
                                       cmocka_unit_test(test_states_reference),
                                       cmocka_unit_test(test_states_cpu),
                                       cmocka_unit_test(test_decoders_reference),
                                       cmocka_unit_test(test_decoders_cpu)};
    return cmocka_run_group_tests_name("sampled log-probs = forward", tests, NULL, NULL);
}
