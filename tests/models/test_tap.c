// tests/models/test_tap.c: the tap (rlhf/draft/tap.h). Checks identities between its values, runs
// that begin at a middle layer, rows of the LM head before and after its values are released, and
// errors. tests/inspect and tests/oracle compare the numbers with PyTorch.
#include "adapters.h"
#include "decoders.h"
#include "on_backends.h"

#include <rlhf/draft/tap.h>

#include <math.h>
#include <string.h>

enum { N = 9, MOST = 4096 };
static const int32_t ids[N] = {5, 17, 60, 3, 3, 41, 9, 2, 30};
static const int32_t offset[] = {0, N}, prompt_len[] = {N};
static const rlhf_batch row = {sizeof(rlhf_batch), 1, N, 0, ids, offset, prompt_len, NULL, NULL};

static const rlhf_tap_ops *tap_of(const struct model *m) {
    const rlhf_tap_ops *t = m->plugin->extension(m->self, RLHF_EXT_TAP);
    assert_non_null(t);
    assert_null(m->plugin->extension(NULL, RLHF_EXT_TAP)); // the tap depends on the instance
    assert_null(m->plugin->extension(m->self, "rlhf.other/1"));
    return t;
}

struct looked {
    struct model m;
    const rlhf_tap_ops *t;
    rlhf_tap_info info;
    uint64_t d, q;
};

static void look(struct looked *k, struct model m) {
    const rlhf_tap_run all = {.size = sizeof all, .keep = 1};
    k->m = m;
    k->t = tap_of(&m);
    k->info.size = sizeof k->info;
    must(&k->m, k->t->info(m.self, &k->info));
    must(&k->m, k->t->run(m.self, &row, &all));
    k->d = (uint64_t)k->info.d_model;
    k->q = (uint64_t)k->info.n_head * (uint64_t)k->info.head_dim;
    assert_true(N * k->d <= MOST && N * k->q <= MOST);
}

static void read_at(struct looked *k, int32_t point, int32_t layer, float *out, uint64_t n) {
    must(&k->m, k->t->read(k->m.self, point, layer, out, n));
}

static void add_bias(struct looked *k, int32_t point, int32_t layer, float *x) {
    float bias[MOST];
    if (k->t->read(k->m.self, point, layer, bias, k->d) == RLHF_E_UNSUPPORTED) return;
    for (uint64_t i = 0; i < N * k->d; i++)
        x[i] += bias[i % k->d];
}

// The norm of attention's output, which only some models have.
static void apply_norm(struct looked *k, int32_t layer, float *x) {
    float gain[MOST];
    if (k->t->read(k->m.self, RLHF_TAP_OUT_NORM, layer, gain, k->d) == RLHF_E_UNSUPPORTED) return;
    for (uint64_t t = 0; t < N; t++) {
        double square = 0;
        for (uint64_t i = 0; i < k->d; i++)
            square += (double)x[t * k->d + i] * (double)x[t * k->d + i];
        const double scale = sqrt(square / (double)k->d + k->info.norm_eps);
        for (uint64_t i = 0; i < k->d; i++)
            x[t * k->d + i] = (float)((double)x[t * k->d + i] / scale * (double)gain[i]);
    }
}

// Each point of the stream is the point before it plus the output of the part between them.
static void check_identities(struct looked *k) {
    static float a[MOST], b[MOST], heads[MOST];
    const uint64_t n = N * k->d;
    read_at(k, RLHF_TAP_TOKEN, 0, a, n);
    if (k->info.positions) {
        read_at(k, RLHF_TAP_POSITION, 0, b, n);
        for (uint64_t i = 0; i < n; i++)
            a[i] += b[i];
    }
    read_at(k, RLHF_TAP_IN, 0, b, n);
    assert_tensor_close(a, b, n, 1e-6, 0, "embeddings");
    for (int32_t l = 0; l < k->info.n_layer; l++) {
        read_at(k, RLHF_TAP_HEADS, l, heads, N * k->q);
        must(&k->m, k->t->project(k->m.self, l, heads, N, a));
        add_bias(k, RLHF_TAP_OUT_BIAS, l, a);
        apply_norm(k, l, a);
        read_at(k, RLHF_TAP_IN, l, b, n);
        for (uint64_t i = 0; i < n; i++)
            a[i] += b[i];
        read_at(k, RLHF_TAP_MID, l, b, n);
        assert_tensor_close(a, b, n, 1e-5, 0, "attention");
    }
}

// A run that begins at a point gets the stream of that point. Its end is the same as that of the
// whole run.
static void check_runs(struct looked *k) {
    static float end[MOST], again[MOST], stream[MOST];
    const uint64_t n = N * k->d;
    const int32_t last = k->info.n_layer - 1;
    const int32_t points[][2] = {{RLHF_TAP_IN, 0},
                                 {RLHF_TAP_MID, 0},
                                 {RLHF_TAP_IN, last},
                                 {RLHF_TAP_MID, last},
                                 {RLHF_TAP_END, 0}};
    read_at(k, RLHF_TAP_END, 0, end, n);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        for (int32_t keep = 0; keep < 2; keep++) {
            const rlhf_tap_run all = {.size = sizeof all, .keep = 1};
            must(&k->m, k->t->run(k->m.self, &row, &all));
            read_at(k, points[i][0], points[i][1], stream, n);
            const rlhf_tap_run from = {.size = sizeof from,
                                       .keep = keep,
                                       .point = points[i][0],
                                       .layer = points[i][1],
                                       .stream = stream};
            must(&k->m, k->t->run(k->m.self, &row, &from));
            read_at(k, RLHF_TAP_END, 0, again, n);
            adapted_same(end, again, n, "the end of a run from a point");
            if (points[i][0] == RLHF_TAP_MID) // this run did not compute earlier points
                assert_int_equal(
                    k->t->read(k->m.self, RLHF_TAP_HEADS, points[i][1], stream, N * k->q),
                    RLHF_E_INVALID);
        }
}

static double capped(float x, double cap) {
    return cap > 0 ? cap * tanh((double)x / cap) : (double)x;
}

// Log-probs from the logits equal the log-probs of forward().
static void check_logits(struct looked *k) {
    const rlhf_tap_run all = {.size = sizeof all, .keep = 1};
    const int32_t first[] = {1};
    const rlhf_batch b = {sizeof b, 1, N, 0, ids, offset, first, NULL, NULL};
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
    float logp[N];
    const rlhf_heads out = {.size = sizeof out, .logp = logp};
    const uint64_t v = (uint64_t)k->info.n_vocab;
    const double cap = k->info.logit_softcap;
    float *logits = test_malloc(2 * v * sizeof *logits);
    must(&k->m, k->t->run(k->m.self, &row, &all));
    must(&k->m, k->m.ops->forward(k->m.self, &b, &f, &out)); // this call does not disturb the tap
    must(&k->m, k->t->logits(k->m.self, N - 3, 2, logits));
    for (uint64_t t = 0; t < 2; t++) {
        double sum = 0;
        for (uint64_t i = 0; i < v; i++)
            sum += exp(capped(logits[t * v + i], cap));
        const double got = capped(logits[t * v + (uint64_t)ids[N - 2 + t]], cap) - log(sum);
        assert_true(fabs(got - (double)logp[N - 2 + t]) < 1e-4);
    }
    assert_int_equal(k->t->logits(k->m.self, N - 1, 2, logits), RLHF_E_INVALID);
    test_free(logits);
}

static void every_kind_has_its_identities(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ADAPTED; i++) {
        const struct adapted *kind = &adapted_kinds[i];
        if (strcmp(kind->plugin, "distilbert") == 0 || !strcmp(kind->plugin, "lfm2") ||
            !strcmp(kind->plugin, "qwen3_5_text"))
            continue; // without a tap
        struct looked k = {0};
        look(&k, adapted_open_on(&backend, kind, (struct adapted_how){.dtype = RLHF_F32}));
        check_identities(&k);
        check_runs(&k);
        if (kind->heads & RLHF_HEAD_LOGP) check_logits(&k);
        model_close(&k.m);
    }
}

// Gemma 3: norms of the outputs of attention and MLP, and a cap of logits.
static void norms_after_blocks(void **state) {
    (void)state;
    for (size_t i = 0; i < N_DECODERS; i++) {
        if (strcmp(decoders[i].plugin, "gemma3_text") != 0) continue;
        const rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
        struct model m = model_open("gemma3_text", decoders[i].settings, &o);
        struct looked k = {0};
        float bias[MOST];
        model_fill(&m, 0.3);
        look(&k, m);
        check_identities(&k);
        check_runs(&k);
        check_logits(&k);
        assert_int_equal(k.t->read(m.self, RLHF_TAP_MLP_BIAS, 0, bias, k.d), RLHF_E_UNSUPPORTED);
        model_close(&m);
    }
}

// Rows of the LM head are the same after its values have been released.
static void rows_of_a_frozen_model(void **state) {
    (void)state;
    static const int32_t rows[] = {3, 41};
    float w[2][MOST], bias[2];
    for (int32_t frozen = 0; frozen < 2; frozen++) {
        rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
        o.frozen = frozen;
        struct model m = model_open("qwen2", adapted_untied_qwen2, &o);
        model_fill(&m, 0.3);
        must(&m, tap_of(&m)->head(m.self, RLHF_TAP_LM, rows, 2, w[frozen], bias));
        assert_true(bias[0] == 0 && bias[1] == 0);
        assert_int_equal(tap_of(&m)->head(m.self, RLHF_TAP_SCORE, rows, 1, w[0], NULL),
                         RLHF_E_UNSUPPORTED);
        const int32_t past = m.info.n_vocab;
        assert_int_equal(tap_of(&m)->head(m.self, RLHF_TAP_LM, &past, 1, w[0] + MOST / 2, NULL),
                         RLHF_E_INVALID);
        if (frozen) adapted_same(w[0], w[1], 2 * (uint64_t)m.info.d_model, "rows of the LM head");
        model_close(&m);
    }
}

// Checks that the heads' outputs are those that follow from queries, keys, values, scale and
// window.
static void check_heads(struct looked *k, int32_t layer, float want_window) {
    static float q[MOST], key[MOST], v[MOST], heads[MOST];
    const uint64_t w = (uint64_t)k->info.head_dim, kv = (uint64_t)k->info.n_kv_head * w;
    const uint64_t group = k->q / kv;
    float scale, window, cap;
    read_at(k, RLHF_TAP_Q, layer, q, N * k->q);
    read_at(k, RLHF_TAP_K, layer, key, N * kv);
    read_at(k, RLHF_TAP_V, layer, v, N * kv);
    read_at(k, RLHF_TAP_HEADS, layer, heads, N * k->q);
    read_at(k, RLHF_TAP_SCALE, layer, &scale, 1);
    read_at(k, RLHF_TAP_WINDOW, layer, &window, 1);
    read_at(k, RLHF_TAP_SOFTCAP, layer, &cap, 1);
    assert_true(window == want_window && cap == 0);
    for (uint64_t i = 0; i < N * k->q; i++) {
        const uint64_t t = i / k->q, h = i % k->q / w, at = h / group * w;
        double sum = 0, mixed = 0;
        for (uint64_t s = 0; s <= t; s++) {
            double dot = 0;
            if (window > 0 && (double)(t - s) >= (double)window) continue;
            for (uint64_t c = 0; c < w; c++)
                dot += (double)q[t * k->q + h * w + c] * (double)key[s * kv + at + c];
            sum += exp(dot * (double)scale);
            mixed += exp(dot * (double)scale) * (double)v[s * kv + at + i % w];
        }
        assert_true(fabs(mixed / sum - (double)heads[i]) < 1e-5);
    }
}

static void windows_are_told(void **state) {
    (void)state;
    static const struct {
        const char *plugin;
        const struct setting *settings;
        float window[2];
    } cases[] = {{"mistral", tiny_window, {4, 4}}, {"qwen2", tiny_qwen2, {0, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
        struct model m = model_open(cases[i].plugin, cases[i].settings, &o);
        struct looked k = {0};
        model_fill(&m, 0.3);
        look(&k, m);
        for (int32_t layer = 0; layer < 2; layer++)
            check_heads(&k, layer, cases[i].window[layer]);
        model_close(&m);
    }
}

// ---- structs of other versions, and wrong calls ----

struct longer_run {
    rlhf_tap_run run;
    uint64_t later;
};
struct longer_info {
    rlhf_tap_info info;
    uint64_t later;
};

static void structs_may_be_longer(void **state) {
    (void)state;
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    const rlhf_tap_ops *t = tap_of(&m);
    model_fill(&m, 0.3);
    struct longer_run run = {.run = {.size = sizeof run, .keep = 1}};
    struct longer_info info = {.info = {.size = sizeof info}, .later = 7};
    must(&m, t->run(m.self, &row, &run.run));
    must(&m, t->info(m.self, &info.info));
    assert_int_equal(info.info.d_model, m.info.d_model);
    run.later = 1; // a field that this model does not know
    assert_int_equal(t->run(m.self, &row, &run.run), RLHF_E_UNSUPPORTED);
    run.run.size = 8; // without the stream
    assert_int_equal(t->run(m.self, &row, &run.run), RLHF_E_INVALID);
    model_close(&m);
}

static void wrong_calls(void **state) {
    (void)state;
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    const rlhf_tap_ops *t = tap_of(&m);
    const uint64_t n = N * (uint64_t)m.info.d_model;
    static float x[MOST];
    model_fill(&m, 0.3);
    assert_int_equal(t->read(m.self, RLHF_TAP_END, 0, x, n),
                     RLHF_E_INVALID); // before the first run
    const rlhf_tap_run light = {.size = sizeof light};
    must(&m, t->run(m.self, &row, &light));
    must(&m, t->read(m.self, RLHF_TAP_END, 0, x, n));
    assert_int_equal(t->read(m.self, RLHF_TAP_END, 0, x, n - 1), RLHF_E_INVALID);
    assert_int_equal(t->read(m.self, RLHF_TAP_MID, 0, x, n), RLHF_E_INVALID); // point was not kept
    assert_int_equal(t->read(m.self, RLHF_TAP_MID, 99, x, n), RLHF_E_INVALID);
    assert_int_equal(t->read(m.self, 99, 0, x, n), RLHF_E_INVALID);
    const rlhf_tap_run wrong[] = {
        {.size = sizeof light, .point = RLHF_TAP_Q, .stream = x},
        {.size = sizeof light, .point = RLHF_TAP_IN, .layer = 99, .stream = x},
        {.size = sizeof light, .point = RLHF_TAP_MID, .layer = 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(t->run(m.self, &row, &wrong[i]), RLHF_E_INVALID);
        assert_int_equal(t->read(m.self, RLHF_TAP_END, 0, x, n), RLHF_E_INVALID); // this run failed
    }
    model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_its_identities), cmocka_unit_test(norms_after_blocks),
        cmocka_unit_test(rows_of_a_frozen_model),        cmocka_unit_test(windows_are_told),
        cmocka_unit_test(structs_may_be_longer),         cmocka_unit_test(wrong_calls),
    };
    return on_backends("tap", ON_REFERENCE | ON_CPU, 1, tests, sizeof tests / sizeof *tests);
}
