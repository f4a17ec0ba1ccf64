// tests/models/test_alloc.c: every allocation of host memory and of device memory fails in turn,
// first alone and then together with all later ones. The call in which an allocation fails reports
// this, without a crash or a leak, and a later call works.
#include "decoders.h"
#include "vectors.h"

#include <stdio.h>
#include <string.h>

// The table with an `alloc` and a `weight_create` that can fail.
static struct backend backend;
static rlhf_compute table;
static int64_t device_left = -1;
static int32_t device_forever;
static int64_t device_blocks;
static int64_t before;     // blocks of the backend
static const char *plugin; // plugin of the current sweep
static const struct setting *settings;
static int32_t adapted; // whether the model has an adapter

static int32_t device_fails(void) {
    if (device_left < 0) return 0;
    if (device_left-- > 0) return 0;
    device_left = device_forever ? 0 : -1;
    return 1;
}

static rlhf_status out_of_memory(void) {
    return (fake_host()->fail)(fake_host(), RLHF_E_NOMEM, "out of device memory");
}

static rlhf_status failing_alloc(void *ctx, uint64_t bytes, rlhf_dev *out) {
    if (device_fails()) return out_of_memory();
    const rlhf_status st = backend.compute->alloc(ctx, bytes, out);
    device_blocks += st >= 0;
    return st;
}

static void counting_release(void *ctx, rlhf_dev p) {
    device_blocks -= p != NULL;
    backend.compute->release(ctx, p);
}

static rlhf_status failing_weight(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                  rlhf_weight **out) {
    if (device_fails()) return out_of_memory();
    const rlhf_status st = backend.compute->weight_create(ctx, k, n, dtype, flags, out);
    device_blocks += st >= 0;
    return st;
}

static rlhf_status failing_blocks(void *ctx, const rlhf_blocks *a, rlhf_weight **out) {
    if (device_fails()) return out_of_memory();
    const rlhf_status st = backend.compute->weight_create_blocks(ctx, a, out);
    device_blocks += st >= 0;
    return st;
}

static void counting_destroy(void *ctx, rlhf_weight *w) {
    device_blocks -= w != NULL;
    backend.compute->weight_destroy(ctx, w);
}

static const rlhf_batch batch = {sizeof(rlhf_batch), VEC_ROWS,       VEC_TOTAL, 0,   vec_ids,
                                 vec_offset,         vec_prompt_len, NULL,      NULL};

static rlhf_status generate(struct model *m) {
    rlhf_gen *g = NULL;
    int32_t slot[] = {1, 0, 2}, start[] = {0, 0, 0}, offset[] = {0, 2, 3, 4}, next[3];
    const int32_t prefix[] = {-1, 1, -1};
    const uint8_t silent[] = {1, 0, 0};
    uint64_t counter[] = {0, 1, 2};
    float logp[3];
    const rlhf_gen_step s = {.size = sizeof s,
                             .n = 3,
                             .slot = slot,
                             .start = start,
                             .ids = vec_ids,
                             .offset = offset,
                             .counter = counter,
                             .next = next,
                             .logp = logp,
                             .prefix = prefix,
                             .silent = silent};
    RLHF_TRY(m->ops->gen_open(m->self, 3, 8, &g));
    const rlhf_status st = m->ops->gen_step(m->self, g, &s);
    m->ops->gen_close(m->self, g);
    return st;
}

// Does everything once that a program does with a model. The first failure ends the sequence.
static rlhf_status use(struct model *m) {
    rlhf_model_open o = open_args(&backend, RLHF_BF16, 1);
    const rlhf_forward f = {.size = sizeof f,
                            .heads = RLHF_HEAD_LOGP | RLHF_HEAD_VALUE | RLHF_HEAD_SCORE |
                                     RLHF_HEAD_TOKEN_SCORE,
                            .train = 1};
    float d[VEC_TOTAL] = {1};
    const rlhf_heads h = {.size = sizeof h};
    const rlhf_heads g = {.size = sizeof g, .logp = d, .value = d, .score = d, .token_score = d};
    const char *const all[] = {"all-linear"};
    const rlhf_adapter a = {.size = sizeof a, .rank = 2, .scale = 1, .target = all, .n_targets = 1};
    RLHF_TRY(model_create(plugin, settings, m));
    o.compute = &table;
    o.adapter = adapted ? &a : NULL;
    o.value_kind = RLHF_VALUE_MLP;
    o.n_labels = 1;
    o.pooling = RLHF_POOL_MEAN;
    RLHF_TRY(m->ops->open(m->self, &o));
    RLHF_TRY(model_pass(m));
    RLHF_TRY(m->ops->refresh(m->self));
    for (int again = 0; again < 2; again++) {
        RLHF_TRY(m->ops->forward(m->self, &batch, &f, &h));
        RLHF_TRY(m->ops->backward(m->self, &batch, &f, &g));
    }
    return generate(m);
}

// Lets one allocation after another fail, until the scenario succeeds without a failure.
static void sweep_one(int32_t device, int32_t forever) {
    for (int64_t i = 0; i < 1000; i++) {
        struct model m;
        if (device) {
            device_left = i;
            device_forever = forever;
        } else {
            host_alloc_fail(i, forever);
        }
        const rlhf_status st = use(&m);
        const int32_t untouched = device && device_left >= 0;
        device_left = -1;
        host_alloc_fail(-1, 0);
        if (st < 0) {
            if (st != RLHF_E_NOMEM) fail_msg("%d %s", st, host_failure());
            assert_true(host_failure()[0] != 0);
        }
        model_close(&m);
        assert_int_equal(host_blocks(), before);
        assert_int_equal(device_blocks, 0);
        if (st >= 0) {
            assert_true(i > (device ? 40 : 7));
            assert_true(!device || untouched);
            return;
        }
    }
    fail_msg("the scenario never got through");
}

static void sweep(int32_t device, int32_t forever) {
    plugin = "gpt2";
    settings = tiny_gpt2;
    sweep_one(device, forever);
    plugin = "qwen3";
    settings = tied_qwen3;
    sweep_one(device, forever);
    adapted = 1;
    sweep_one(device, forever);
    plugin = "qwen3_5_text";
    settings = biased_qwen3_5;
    sweep_one(device, forever);
    adapted = 0;
}

static void test_host_once(void **state) {
    (void)state;
    sweep(0, 0);
}
static void test_host_forever(void **state) {
    (void)state;
    sweep(0, 1);
}
static void test_device_once(void **state) {
    (void)state;
    sweep(1, 0);
}
static void test_device_forever(void **state) {
    (void)state;
    sweep(1, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_once), cmocka_unit_test(test_host_forever),
        cmocka_unit_test(test_device_once), cmocka_unit_test(test_device_forever)};
    backend = backend_open("reference", 1, 0);
    if (!backend.compute) return 1;
    table = *backend.compute;
    before = host_blocks();
    table.alloc = failing_alloc;
    table.release = counting_release;
    table.weight_create = failing_weight;
    table.weight_create_blocks = failing_blocks;
    table.weight_destroy = counting_destroy;
    const int failed = cmocka_run_group_tests_name("allocation failures", tests, NULL, NULL);
    backend_close(&backend);
    return failed;
}
