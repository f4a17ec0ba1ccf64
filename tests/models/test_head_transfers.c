// test_head_transfers.c: tests how often heads transfer data between host and device. Also tests
// that the reference model's hidden states stay on the device.
#include "on_backends.h"
#include "trial.h"

#include <string.h>

static int downloads, uploads;

static rlhf_status counted_download(void *ctx, void *dst, rlhf_dev src, uint64_t bytes) {
    downloads++;
    return backend.compute->download(ctx, dst, src, bytes);
}

static rlhf_status counted_upload(void *ctx, rlhf_dev dst, const void *src, uint64_t bytes) {
    uploads++;
    return backend.compute->upload(ctx, dst, src, bytes);
}

// With any number of heads, forward uploads the batch once and downloads the results once, and
// backward uploads the derivatives once. A table without linear_add gives the same bits as a table
// with it.
static void test_one_transfer_each_way(void **state) {
    (void)state;
    struct outputs o, plain;
    float *want = NULL;
    for (int without = 0; without < 2; without++) {
        struct trial t;
        rlhf_compute table = *backend.compute;
        table.download = counted_download;
        table.upload = counted_upload;
        if (without) table.linear_add = NULL;
        rlhf_model_open open = {.size = sizeof open,
                                .dtype = RLHF_F32,
                                .trainable = 1,
                                .n_labels = 1,
                                .value_kind = RLHF_VALUE_MLP,
                                .compute = &table};
        memset(&t, 0, sizeof t);
        t.m = model_open("gpt2", tiny_gpt2, &open);
        model_fill(&t.m, 0.3);
        t.f.size = sizeof t.f;
        t.f.heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_VALUE | RLHF_HEAD_TOKEN_SCORE;
        t.f.train = 1;
        downloads = uploads = 0;
        trial_loss(&t, &o);
        assert_int_equal(downloads, 1);
        assert_int_equal(uploads, 1);
        trial_gradient(&t); // one more forward pass, and a backward pass
        assert_int_equal(downloads, 2);
        assert_int_equal(uploads, 3);
        const uint64_t n = t.m.info.grad_bytes / sizeof(float);
        float *got = device_read(backend.compute, t.m.info.grad_base, n);
        if (without) {
            assert_memory_equal(&o, &plain, sizeof o);
            assert_memory_equal(got, want, n * sizeof *got);
            test_free(got);
        } else {
            plain = o;
            want = got;
        }
        trial_close(&t);
    }
    test_free(want);
}

// ---- the reference's states on the device ----

enum { KL_HEADS = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL };

static uint32_t response_tokens(void) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < VEC_ROWS; i++)
        n += (uint32_t)(vec_offset[i + 1] - vec_offset[i] - vec_prompt_len[i]);
    return n;
}

// Runs trial_gradient(t). Returns its results and the results of its forward pass.
static float *bits_of(struct trial *t, struct outputs *o) {
    trial_loss(t, o);
    trial_gradient(t);
    return device_read(t->m.c, t->m.info.grad_base, t->m.info.grad_bytes / sizeof(float));
}

// Copies the rows of the states at `from` to `to` in reverse order.
static void turn_round(rlhf_dev to, rlhf_dev from, uint32_t n, uint64_t row) {
    const rlhf_compute *c = backend.compute;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(
            c->copy(c->ctx, rlhf_dev_at(to, i * row), rlhf_dev_at(from, (n - 1 - i) * row), row),
            RLHF_OK);
}

// Opens a trial of the full KL on `table`. Its reference has not been called yet.
static void kl_open(struct trial *t, const rlhf_compute *table, int32_t dtype) {
    rlhf_model_open open = {.size = sizeof open, .dtype = dtype, .trainable = 1, .compute = table};
    memset(t, 0, sizeof *t);
    t->m = model_open("gpt2", tiny_gpt2, &open);
    model_fill(&t->m, 0.3);
    open.trainable = 0;
    t->ref = model_open("gpt2", tiny_gpt2, &open);
    model_fill(&t->ref, 0.25);
    assert_true(t->ref.info.caps & RLHF_CAP_DEV_HIDDEN);
    t->hidden = test_malloc(VEC_TOTAL * D * sizeof *t->hidden);
    t->f =
        (rlhf_forward){.size = sizeof t->f, .heads = KL_HEADS, .train = 1, .kl_self = t->ref.self};
}

// The reference's states are in order, or they are reversed and found by row number. In both cases,
// the numbers equal those of the path through the host. Only the batch and the results are
// transferred.
static void kl_is_the_same(struct trial *t, const float *want, const struct outputs *host,
                           uint64_t row) {
    const rlhf_compute *c = backend.compute;
    const uint32_t n = response_tokens();
    const uint64_t bytes = t->m.info.grad_bytes;
    rlhf_dev states, turned;
    int32_t rows[VEC_TOTAL];
    struct outputs o;
    assert_int_equal(c->alloc(c->ctx, n * row, &states), RLHF_OK);
    assert_int_equal(c->alloc(c->ctx, n * row, &turned), RLHF_OK);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .dev_hidden = states};
    downloads = uploads = 0;
    must(&t->ref, t->ref.ops->forward(t->ref.self, &vec_batch, &f, &out));
    assert_int_equal(downloads, 0);
    assert_int_equal(uploads, 1);
    turn_round(turned, states, n, row);
    for (uint32_t i = 0; i < n; i++)
        rows[i] = (int32_t)(n - 1 - i);
    for (int k = 0; k < 2; k++) {
        t->f.kl_hidden = NULL;
        t->f.kl_dev_hidden = k ? turned : states;
        t->f.kl_dev_row = k ? rows : NULL;
        downloads = uploads = 0;
        trial_loss(t, &o);
        assert_int_equal(downloads, 1);
        assert_int_equal(uploads, 1);
        float *got = bits_of(t, &o);
        assert_memory_equal(&o, host, sizeof o);
        assert_memory_equal(got, want, bytes);
        test_free(got);
    }
    rows[1] = -3;
    const rlhf_heads heads = trial_heads(&o);
    assert_int_equal(t->m.ops->forward(t->m.self, &vec_batch, &t->f, &heads), RLHF_E_INVALID);
    assert_string_equal(host_failure(), "kl head: kl_dev_row[1] is -3; at least 0");
    c->release(c->ctx, states);
    c->release(c->ctx, turned);
}

static void test_kl_on_the_device(void **state) {
    (void)state;
    for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
        rlhf_compute table = *backend.compute;
        struct outputs host;
        struct trial t;
        table.download = counted_download;
        table.upload = counted_upload;
        kl_open(&t, &table, dtype);
        const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
        const rlhf_heads out = {.size = sizeof out, .hidden = t.hidden};
        must(&t.ref, t.ref.ops->forward(t.ref.self, &vec_batch, &f, &out));
        t.f.kl_hidden = t.hidden;
        float *want = bits_of(&t, &host);
        kl_is_the_same(&t, want, &host, D * rlhf_dtype_size(dtype));
        test_free(want);
        trial_close(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_transfer_each_way),
                                       cmocka_unit_test(test_kl_on_the_device)};
    return on_backends("head_transfers", ON_REFERENCE | ON_CPU, 1, tests,
                       sizeof tests / sizeof *tests);
}
