// test_attention_vectors.c: compares attention with a sliding window and capped scores with float64
// autograd (attention_vectors.json).
#include "kit.h"
#include "support/numbers.h"
#include "support/tensor_close.h"

// The sizes of make_attention_vectors.py.
enum { TOKENS = 17, HEADS = 4, KV_HEADS = 2, DIM = 8 };
enum { D = HEADS * DIM, KV_D = KV_HEADS * DIM };

static json_t *vectors;

static int setup(void **state) {
    vectors = numbers_open("kernels/attention_vectors.json");
    return kit_setup(state);
}

static int teardown(void **state) {
    json_decref(vectors);
    return kit_teardown(state);
}

// Returns number i of tensor `tag`, as in make_attention_vectors.py.
static float input(uint64_t tag, uint64_t i) {
    return (float)((double)((i * 7919 + tag * 104729 + i * i % 1009) % 2003) / 1001.0 - 1.0);
}

static rlhf_dev inputs(struct call *k, uint64_t tag, uint64_t n, float scale) {
    float *x = call_host(k, n * sizeof *x);
    for (uint64_t i = 0; i < n; i++)
        x[i] = scale * input(tag, i);
    return call_floats(k, x, n, RLHF_F32);
}

static void check(struct call *k, const char *name, const char *what, rlhf_dev p, uint64_t n) {
    float *got = call_host(k, n * sizeof *got), *want = call_host(k, n * sizeof *want);
    char key[64], label[96];
    snprintf(key, sizeof key, "%s_%s", name, what);
    snprintf(label, sizeof label, "%s, %s", k->c->name, key);
    kit_read(k->c, got, p, n, RLHF_F32);
    numbers_floats(vectors, key, want, n);
    assert_tensor_close(got, want, n, 1e-6, 2e-6, label);
}

static void run(struct call *k, const char *name) {
    char window[64], cap[64];
    const int32_t offset[] = {0, TOKENS};
    snprintf(window, sizeof window, "%s_window", name);
    snprintf(cap, sizeof cap, "%s_cap", name);
    const rlhf_attn a = {.size = sizeof a,
                         .heads = HEADS,
                         .kv_heads = KV_HEADS,
                         .head_dim = DIM,
                         .causal = 1,
                         .dtype = RLHF_F32,
                         .q_stride = D,
                         .kv_stride = KV_D,
                         .out_stride = D,
                         .scale = numbers_one(vectors, "scale"),
                         .window = (int32_t)numbers_one(vectors, window),
                         .softcap = numbers_one(vectors, cap)};
    rlhf_ragged r = {.size = sizeof r, .n = 1, .total = TOKENS, .max_q = TOKENS, .max_k = TOKENS};
    r.offset = r.kv_base = call_ints(k, offset, 2);
    r.start = call_zeros(k, 1, RLHF_I32);
    rlhf_dev q = inputs(k, 1, TOKENS * D, 2.0f), key = inputs(k, 2, TOKENS * KV_D, 2.0f);
    rlhf_dev v = inputs(k, 3, TOKENS * KV_D, 2.0f), dout = inputs(k, 4, TOKENS * D, 1.0f);
    rlhf_dev out = call_zeros(k, TOKENS * D, RLHF_F32);
    rlhf_dev lse = call_zeros(k, TOKENS * HEADS, RLHF_F32);
    rlhf_dev dq = call_zeros(k, TOKENS * D, RLHF_F32);
    rlhf_dev dk = call_zeros(k, TOKENS * KV_D, RLHF_F32);
    rlhf_dev dv = call_zeros(k, TOKENS * KV_D, RLHF_F32);
    KIT_OK(k->c, k->c->attention(k->c->ctx, &a, &r, out, lse, q, key, v));
    KIT_OK(k->c, k->c->attention_bwd(k->c->ctx, &a, &r, dq, dk, dv, dout, out, lse, q, key, v));
    check(k, name, "out", out, TOKENS * D);
    check(k, name, "dq", dq, TOKENS * D);
    check(k, name, "dk", dk, TOKENS * KV_D);
    check(k, name, "dv", dv, TOKENS * KV_D);
}

static void attention(void **state) {
    struct kit *kit = *state;
    static const char *const names[] = {"plain", "window", "cap", "both"};
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t i = 0; i < CHECK_COUNT(backends) * CHECK_COUNT(names); i++) {
        struct call k = {.c = backends[i / CHECK_COUNT(names)]};
        run(&k, names[i % CHECK_COUNT(names)]);
        call_finish(&k);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(attention)};
    return cmocka_run_group_tests_name("kernels: attention vectors", tests, setup, teardown);
}
