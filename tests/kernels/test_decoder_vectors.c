// test_decoder_vectors.c: compares the ops of test_decoder.c with float64 autograd
// (decoder_vectors.json).
#include "kit.h"
#include "support/numbers.h"
#include "support/tensor_close.h"

// The sizes of make_decoder_vectors.py.
enum { ROWS = 3, D = 10, INNER = 6, HEADS = 4, KV_HEADS = 2, DIM = 8, N_POS = 12, PART = 6 };

static json_t *vectors;
static double vec_eps;

static int setup(void **state) {
    vectors = numbers_open("kernels/decoder_vectors.json");
    vec_eps = numbers_one(vectors, "eps");
    return kit_setup(state);
}

static int teardown(void **state) {
    json_decref(vectors);
    return kit_teardown(state);
}

// Returns number i of tensor `tag`, as in make_decoder_vectors.py.
static float input(uint64_t tag, uint64_t i) {
    return (float)((double)((i * 7919 + tag * 104729 + i * i % 1009) % 2003) / 1001.0 - 1.0);
}

static rlhf_dev inputs(struct call *k, uint64_t tag, uint64_t n, float scale) {
    float *x = call_host(k, n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i] = scale * input(tag, i);
    return call_floats(k, x, n, RLHF_F32);
}

static void check(struct call *k, rlhf_dev p, const char *key, uint64_t n) {
    float *got = call_host(k, n * sizeof *got), *want = call_host(k, n * sizeof *want);
    char label[96];
    snprintf(label, sizeof label, "%s, %s", k->c->name, key);
    kit_read(k->c, got, p, n, RLHF_F32);
    numbers_floats(vectors, key, want, n);
    assert_tensor_close(got, want, n, 1e-6, 1e-6, label);
}

static void rms_norm_of(struct call *k, double offset, const char *const names[3]) {
    rlhf_dev x = inputs(k, 1, ROWS * D, 3.0f), gamma = inputs(k, 2, D, 1.0f);
    rlhf_dev y = call_zeros(k, ROWS * D, RLHF_F32), stats = call_zeros(k, ROWS, RLHF_F32);
    rlhf_dev dx = call_zeros(k, ROWS * D, RLHF_F32), dgamma = call_zeros(k, D, RLHF_F32);
    KIT_OK(k->c, k->c->rms_norm(k->c->ctx, y, RLHF_F32, stats, x, gamma, offset, vec_eps, ROWS, D));
    KIT_OK(k->c, k->c->rms_norm_bwd(k->c->ctx, dx, 0, dgamma, inputs(k, 3, ROWS * D, 1.0f),
                                    RLHF_F32, x, stats, gamma, offset, ROWS, D));
    check(k, y, names[0], ROWS * D);
    check(k, dx, names[1], ROWS * D);
    check(k, dgamma, names[2], D);
}

static void rms_norm(struct call *k) {
    rms_norm_of(k, 0.0, (const char *const[]){"rms_out", "rms_dx", "rms_dgamma"});
    rms_norm_of(k, 1.0, (const char *const[]){"rms_one_out", "rms_one_dx", "rms_one_dgamma"});
}

static void silu(struct call *k) {
    rlhf_dev x = inputs(k, 1, ROWS * D, 9.0f), dx = inputs(k, 3, ROWS * D, 1.0f);
    KIT_OK(k->c, k->c->act_bwd(k->c->ctx, dx, dx, x, RLHF_ACT_SILU, RLHF_F32, ROWS * D));
    KIT_OK(k->c, k->c->act(k->c->ctx, x, x, RLHF_ACT_SILU, RLHF_F32, ROWS * D));
    check(k, x, "silu_out", ROWS * D);
    check(k, dx, "silu_dx", ROWS * D);
}

static void gate(struct call *k) {
    static const char *const name[] = {"gelu_tanh", "gelu_erf", "relu", "silu", "relu2"};
    char key[64];
    for (int32_t kind = RLHF_ACT_GELU_TANH; kind <= RLHF_ACT_RELU2; kind++) {
        rlhf_dev x = inputs(k, 1, 2 * ROWS * INNER, 3.0f), y = inputs(k, 9, ROWS * INNER, 1.0f);
        KIT_OK(k->c, k->c->gate(k->c->ctx, y, x, kind, RLHF_F32, ROWS, INNER));
        KIT_OK(k->c, k->c->gate_bwd(k->c->ctx, x, inputs(k, 3, ROWS * INNER, 1.0f), x, kind,
                                    RLHF_F32, ROWS, INNER));
        snprintf(key, sizeof key, "gate_%s_out", name[kind - 1]);
        check(k, y, key, ROWS * INNER);
        snprintf(key, sizeof key, "gate_%s_dx", name[kind - 1]);
        check(k, x, key, 2 * ROWS * INNER);
    }
}

enum { WIDTH = (HEADS + KV_HEADS) * DIM };

// Compares x and dx, and with norms the gradients of the gammas, with the vectors `name`_out and so
// on.
static void rope_of(struct call *k, const rlhf_rope *g, const char *name) {
    static const char *const ends[] = {"out", "dx", "dgamma_q", "dgamma_k"};
    rlhf_dev x = inputs(k, 1, ROWS * WIDTH, 2.0f), dx = inputs(k, 3, ROWS * WIDTH, 1.0f);
    const uint64_t of_q = g->whole ? HEADS * DIM : DIM, of_k = g->whole ? KV_HEADS * DIM : DIM;
    rlhf_dev dq = g->gamma_q ? call_zeros(k, of_q, RLHF_F32) : NULL;
    rlhf_dev dk = g->gamma_q ? call_zeros(k, of_k, RLHF_F32) : NULL;
    rlhf_dev all[] = {x, dx, dq, dk};
    const uint64_t n[] = {ROWS * WIDTH, ROWS * WIDTH, of_q, of_k};
    KIT_OK(k->c, k->c->rope(k->c->ctx, g, x, ROWS));
    KIT_OK(k->c, k->c->rope_bwd(k->c->ctx, g, dx, dq, dk, ROWS));
    for (size_t i = 0; i < (dq ? 4 : 2); i++) {
        char key[64];
        snprintf(key, sizeof key, "%s_%s", name, ends[i]);
        check(k, all[i], key, n[i]);
    }
}

static void normed_rope(struct call *k, rlhf_rope g, double offset, const char *name) {
    g.gamma_offset = offset;
    g.gamma_q = inputs(k, 2, g.whole ? HEADS * DIM : DIM, 1.0f);
    g.gamma_k = inputs(k, 4, g.whole ? KV_HEADS * DIM : DIM, 1.0f);
    g.raw = call_zeros(k, ROWS * WIDTH, RLHF_F32);
    g.stats = call_zeros(k, ROWS * (HEADS + KV_HEADS), RLHF_F32);
    rope_of(k, &g, name);
}

// Without norms; all elements of a head are rotated.
static rlhf_rope plain_rope(struct call *k) {
    rlhf_rope g = {.size = sizeof g,
                   .heads = HEADS,
                   .kv_heads = KV_HEADS,
                   .head_dim = DIM,
                   .dtype = RLHF_F32,
                   .n_pos = N_POS,
                   .stride = WIDTH,
                   .eps = vec_eps};
    int32_t pos[ROWS];
    float turn[N_POS * DIM];
    numbers_ints(vectors, "pos", pos, ROWS);
    numbers_floats(vectors, "turn", turn, N_POS * DIM);
    g.pos = call_ints(k, pos, ROWS);
    g.turn = call_floats(k, turn, N_POS * DIM, RLHF_F32);
    return g;
}

static void rope(struct call *k) {
    float turn[N_POS * DIM];
    rlhf_rope g = plain_rope(k);
    rope_of(k, &g, "rope");
    normed_rope(k, g, 0, "norm_rope");
    normed_rope(k, g, 1, "one_rope");
    numbers_floats(vectors, "part_turn", turn, N_POS * PART);
    g.turn = call_floats(k, turn, N_POS * PART, RLHF_F32);
    g.rotary_dim = PART;
    rope_of(k, &g, "part_rope");
    normed_rope(k, g, 1, "part_norm_rope");
}

static void whole_rope(struct call *k) {
    rlhf_rope g = plain_rope(k);
    g.whole = 1;
    normed_rope(k, g, 0, "whole_rope");
}

static void on_all(void **state, void (*run)(struct call *)) {
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t b = 0; b < CHECK_COUNT(backends); b++) {
        struct call k = {.c = backends[b]};
        run(&k);
        call_finish(&k);
    }
}

static void rms_norms(void **state) { on_all(state, rms_norm); }
static void silus(void **state) { on_all(state, silu); }
static void gates(void **state) { on_all(state, gate); }
static void ropes(void **state) { on_all(state, rope); }
static void whole_ropes(void **state) { on_all(state, whole_rope); }

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rms_norms), cmocka_unit_test(silus),
                                       cmocka_unit_test(gates), cmocka_unit_test(ropes),
                                       cmocka_unit_test(whole_ropes)};
    return cmocka_run_group_tests_name("kernels: decoder vectors", tests, setup, teardown);
}
