// test_kernel.c: opens kernels_my_kernel.so and makes the same calls to it and to the reference
// backend. Replaced functions must return the same results as the reference's functions.
//
// Usage: test_kernel path/to/kernels_my_kernel.so
#include <rlhf/compute.h>
#include <rlhf/test.h>

static struct rlhf_test_host host;

enum { N = 7 };
static const float given[N] = {-2, -0.5F, -0.0F, 0, 0.25F, 1, 3};

// Applies the table's act() to `given`, in place if `same` is set.
static void apply(rlhf_compute *c, int32_t kind, int same, float out[N]) {
    rlhf_dev x = NULL, y = NULL;
    RLHF_TEST_CHECK(&host, c->alloc(c->ctx, sizeof given, &x) == RLHF_OK);
    RLHF_TEST_CHECK(&host, c->alloc(c->ctx, sizeof given, &y) == RLHF_OK);
    RLHF_TEST_CHECK(&host, c->upload(c->ctx, x, given, sizeof given) == RLHF_OK);
    RLHF_TEST_CHECK(&host, c->act(c->ctx, same ? x : y, x, kind, RLHF_F32, N) == RLHF_OK);
    RLHF_TEST_CHECK(&host, c->download(c->ctx, out, same ? x : y, sizeof given) == RLHF_OK);
    c->release(c->ctx, x);
    c->release(c->ctx, y);
}

static void does_what_the_reference_does(rlhf_compute *own, rlhf_compute *reference) {
    static const int32_t kinds[] = {RLHF_ACT_GELU_TANH, RLHF_ACT_GELU_ERF, RLHF_ACT_RELU,
                                    RLHF_ACT_SILU};
    for (int k = 0; k < 8; k++) {
        float got[N], want[N];
        apply(own, kinds[k / 2], k % 2, got);
        apply(reference, kinds[k / 2], k % 2, want);
        for (int i = 0; i < N; i++)
            RLHF_TEST_NEAR(&host, (double)got[i], (double)want[i], 0);
    }
}

static void refuses_what_is_too_short(struct rlhf_test_backend *b) {
    rlhf_compute *c = b->c;
    rlhf_dev x = NULL;
    RLHF_TEST_CHECK(&host, c->alloc(c->ctx, sizeof given, &x) == RLHF_OK);
    RLHF_TEST_CHECK(&host, c->act(c->ctx, x, x, RLHF_ACT_RELU, RLHF_F32, N + 1) < 0);
    RLHF_TEST_CHECK(&host, b->said[0] != '\0');
    c->release(c->ctx, x);
    RLHF_TEST_CHECK(&host, c->bytes_in_use(c->ctx) == 0);
}

int main(int argc, char **argv) {
    static struct rlhf_test_backend own;
    const rlhf_kernels_open guarded = {.size = sizeof guarded, .guard = 1};
    const rlhf_plugin *p = argc == 2 ? rlhf_test_backend_load(argv[1]) : NULL;
    rlhf_test_init(&host, 1);
    rlhf_compute *reference = rlhf_test_compute(&host, 0);
    if (!p || !reference) return 2;
    if (RLHF_TEST_CHECK(&host, rlhf_test_backend_open(&own, p, &guarded) == RLHF_OK)) {
        does_what_the_reference_does(own.c, reference);
        refuses_what_is_too_short(&own);
    }
    rlhf_test_backend_close(&own);
    rlhf_test_compute_end(reference);
    return rlhf_test_end(&host); // 1 if a check failed
}
