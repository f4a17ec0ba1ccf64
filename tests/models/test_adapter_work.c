// tests/models/test_adapter_work.c: the backend calls of a model with an adapter. The model
// computes no unnecessary matrix products, and samples the same tokens if its calls are recorded.
#include "adapters.h"
#include "decoders.h"
#include "recorder.h"
#include "rollout.h"

#include <string.h>

// The backend's table, with counters.
static struct counted { int32_t dw, dx, across, embeddings, head_weights; } counted;

static rlhf_status count_dw(void *ctx, rlhf_dev dw, rlhf_dev db, rlhf_dev x, rlhf_dev dy,
                            const rlhf_weight *w, uint32_t rows) {
    counted.dw++;
    return backend.compute->linear_dw(ctx, dw, db, x, dy, w, rows);
}
static rlhf_status count_dx(void *ctx, rlhf_dev dx, int32_t dtype, int32_t add, rlhf_dev dy,
                            const rlhf_weight *w, uint32_t rows) {
    counted.dx++;
    return backend.compute->linear_dx(ctx, dx, dtype, add, dy, w, rows);
}
static rlhf_status count_sum(void *ctx, const rlhf_linear_sum *a) {
    counted.across += a->across;
    return backend.compute->linear_sum(ctx, a);
}
static rlhf_status count_embed_bwd(void *ctx, rlhf_dev dwte, rlhf_dev dwpe, rlhf_dev dout,
                                   rlhf_dev ids, rlhf_dev pos, double scale, uint32_t rows,
                                   int32_t d, int32_t vocab, int32_t n_pos) {
    counted.embeddings++;
    return backend.compute->embed_bwd(ctx, dwte, dwpe, dout, ids, pos, scale, rows, d, vocab,
                                      n_pos);
}
static rlhf_status count_head(void *ctx, const rlhf_lm_head *a) {
    counted.head_weights += a->d_weight != NULL;
    return backend.compute->lm_head_bwd(ctx, a);
}

// Two layers with four products each. Only A and B get gradients, and nothing is computed below the
// lowest adapter.
static void nothing_in_vain(void **state) {
    (void)state;
    static const struct {
        const char *target[3];
        struct counted want;
    } cases[] = {
        // The first three numbers count calls of linear_dw, of linear_dx, and of linear_sum with
        // `across`. linear_dw is called for each B and each A. linear_dx is called for four
        // products in layer 1, for three in layer 0, and once for each B. For an adapted product,
        // linear_sum is called instead.
        {{"q_proj", "v_proj"}, {4, 3 + 3 + 2, 1, 0, 0}},
        {{"down_proj"}, {4, 3 + 2, 1, 0, 0}},
        {{"all-linear"}, {16, 8, 4 + 3, 0, 0}},
        {{"1.mlp.gate_proj"}, {2, 1 + 1, 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adapted k = {"qwen2", tiny_qwen2, {NULL}, 2, 0, RLHF_VALUE_NONE, 0, RLHF_HEAD_LOGP};
        memcpy(k.target, cases[i].target, sizeof k.target);
        rlhf_compute table = *backend.compute;
        table.linear_dw = count_dw;
        table.linear_dx = count_dx;
        table.linear_sum = count_sum;
        table.embed_bwd = count_embed_bwd;
        table.lm_head_bwd = count_head;
        const struct backend counting = {NULL, NULL, &table, NULL};
        struct model m = adapted_open_on(&counting, &k,
                                         (struct adapted_how){.dtype = RLHF_BF16, .trainable = 1});
        test_free(adapted_heads(&m, &k, &vec_batch, 1, 0));
        counted = (struct counted){0, 0, 0, 0, 0};
        adapted_backward(&m, &k, &vec_batch);
        if (memcmp(&counted, &cases[i].want, sizeof counted) != 0)
            fail_msg("%s: %d dw, %d dx, %d sums, %d embeddings, %d head weights", k.target[0],
                     counted.dw, counted.dx, counted.across, counted.embeddings,
                     counted.head_weights);
        model_close(&m);
    }
}

// On a backend that records calls, the model samples the same tokens and breaks no rule of
// recordings.
static void recorded(void **state) {
    (void)state;
    const rlhf_dist dist = RLHF_DIST(1 / 0.7, 1, 0, 0);
    struct rollout *r = test_malloc(2 * sizeof *r);
    for (int32_t i = 0; i < N_ADAPTED; i++) {
        if (!plugin_fits(backend.compute, adapted_kinds[i].plugin)) continue;
        if (!(adapted_kinds[i].heads & RLHF_HEAD_LOGP) || backend_is_slow()) continue;
        struct recorder rec;
        recorder_init(&rec, backend.compute);
        const struct backend recording = {NULL, NULL, &rec.table, NULL};
        for (int32_t with = 0; with < 2; with++) {
            const struct adapted_how h = {.dtype = RLHF_BF16};
            struct model m = adapted_open_on(with ? &recording : &backend, &adapted_kinds[i], h);
            rollout_init(r + with, 61, 7, 12);
            rollout_run(r + with, &m, ROLL_ROWS, 100, &dist, &dist, 0);
            model_close(&m);
        }
        assert_string_equal(rec.broken, "");
        assert_true(rec.replays > 0);
        assert_memory_equal(r, r + 1, sizeof *r);
        recorder_finish(&rec);
    }
    test_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_in_vain),
                                       cmocka_unit_test(recorded)};
    return on_backends("adapter, work", ON_ALL, 2, tests, sizeof tests / sizeof *tests);
}
