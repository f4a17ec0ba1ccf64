// test_guard.c: the guard mode of the reference backend. SIGSEGV kills a child process that
// accesses device memory directly, but not one that uses the table.
#include "kit.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static rlhf_compute *guarded(int guard) {
    void *so;
    return kit_create(kit_load("reference", &so), 1, guard ? 1 : 0, 0);
}

// Runs body(c) in a child with a buffer of 4096 floats. Returns the signal that killed the child, 0
// if its exit status was 0, and -1 if it was another one.
static int in_child(int guard, int (*body)(rlhf_compute *c, rlhf_dev p)) {
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL); // a sanitizer or CMocka would turn it into an exit
        signal(SIGBUS, SIG_DFL);
        rlhf_compute *c = guarded(guard);
        rlhf_dev p = NULL;
        if (c->alloc(c->ctx, 4096 * sizeof(float), &p) < 0) _exit(3);
        _exit(body(c, p));
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) return WTERMSIG(status);
    return WEXITSTATUS(status) == 0 ? 0 : -1;
}

// Reads device memory directly, which is forbidden.
static int peek(rlhf_compute *c, rlhf_dev p) {
    (void)c;
    return *(volatile float *)(void *)p != 0.0f;
}

static int poke(rlhf_compute *c, rlhf_dev p) {
    (void)c;
    ((volatile float *)(void *)p)[4095] = 1.0f;
    return 0;
}

static int peek_after_a_call(rlhf_compute *c, rlhf_dev p) {
    if (c->zero(c->ctx, p, 64) < 0) return 1;
    return *(volatile float *)(void *)p != 0.0f;
}

static int peek_after_a_refused_call(rlhf_compute *c, rlhf_dev p) {
    if (c->zero(c->ctx, p, 1 << 20) != RLHF_E_INVALID) return 1;
    return *(volatile float *)(void *)p != 0.0f;
}

static int past_the_end(rlhf_compute *c, rlhf_dev p) {
    (void)c;
    return ((volatile float *)(void *)p)[4096] != 0.0f;
}

static int download(rlhf_compute *c, rlhf_dev p) {
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    if (c->upload(c->ctx, rlhf_dev_at(p, 64), x, sizeof x) < 0) return 1;
    if (c->download(c->ctx, y, rlhf_dev_at(p, 64), sizeof y) < 0) return 1;
    return !(y[0] == 1 && y[3] == 4);
}

// Passes the same buffer twice. Then passes an op several buffers, one of which is inside another.
static int several(rlhf_compute *c, rlhf_dev p) {
    rlhf_dev q = NULL;
    double sum = 0.0;
    if (c->alloc(c->ctx, 256, &q) < 0) return 1;
    if (c->act(c->ctx, p, p, RLHF_ACT_RELU, RLHF_F32, 4096) < 0) return 1;
    if (c->add(c->ctx, q, rlhf_dev_at(p, 128), RLHF_F32, 64) < 0) return 1;
    if (c->copy(c->ctx, p, rlhf_dev_at(p, 8192), 8192) < 0) return 1;
    if (c->sumsq(c->ctx, p, 4096, &sum) < 0) return 1;
    c->release(c->ctx, q);
    return sum != 0.0;
}

static void host_access_dies(void **state) {
    (void)state;
    assert_int_equal(in_child(1, peek), SIGSEGV);
    assert_int_equal(in_child(1, poke), SIGSEGV);
    assert_int_equal(in_child(1, peek_after_a_call), SIGSEGV);
    assert_int_equal(in_child(1, peek_after_a_refused_call), SIGSEGV);
    assert_int_equal(in_child(1, past_the_end), SIGSEGV);
}

static void table_access_lives(void **state) {
    (void)state;
    assert_int_equal(in_child(1, download), 0);
    assert_int_equal(in_child(1, several), 0);
    assert_int_equal(in_child(0, download), 0);
    assert_int_equal(in_child(0, peek), 0);
}

// With guard, every op gives the same bits as without guard. So ops access only the buffers that
// they were given.
static void whole_head(struct call *k, const void *shape, struct outputs *out) {
    (void)shape;
    enum { N = 6, D = 32, V = 50 };
    rlhf_dist dist = RLHF_DIST(1.3, 0.95, 20, 0);
    snprintf(out->label, sizeof out->label, "guarded ops");
    rlhf_lm_head a = {
        .size = sizeof a, .rows = N, .d = D, .vocab = V, .dtype = RLHF_BF16, .dist = &dist};
    int32_t target[N] = {1, 2, 3, 4, 5, 6}, offset[3] = {0, 2, N}, start[2] = {0, 0};
    a.weight = call_weight(k, call_normal(k, 1, D * V, 0.3), D, V, RLHF_BF16,
                           RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD);
    a.ref_weight = call_weight(k, call_normal(k, 2, D * V, 0.3), D, V, RLHF_BF16, 0);
    a.hidden = call_floats(k, call_normal(k, 3, N * D, 1.0), N * D, RLHF_BF16);
    a.ref_hidden = call_floats(k, call_normal(k, 4, N * D, 1.0), N * D, RLHF_BF16);
    a.target = call_ints(k, target, N);
    a.logp = call_zeros(k, N, RLHF_F32);
    a.entropy = call_zeros(k, N, RLHF_F32);
    a.kl = call_zeros(k, N, RLHF_F32);
    a.d_logp = call_floats(k, call_normal(k, 5, N, 1.0), N, RLHF_F32);
    a.d_entropy = a.d_kl = a.d_logp;
    a.d_hidden = call_zeros(k, N * D, RLHF_BF16);
    a.d_weight = call_zeros(k, D * V, RLHF_F32);
    KIT_OK(k->c, k->c->lm_head(k->c->ctx, &a));
    KIT_OK(k->c, k->c->lm_head_bwd(k->c->ctx, &a));
    outputs_add(out, k, "kl", a.kl, RLHF_F32, N, 1, NULL);
    outputs_add(out, k, "d_weight", a.d_weight, RLHF_F32, V, D, NULL);
    const rlhf_attn attn = {sizeof(rlhf_attn), 2, 0, D / 2, 1, RLHF_BF16, D, D, D, .scale = 0.25};
    rlhf_ragged r = {.size = sizeof r, .n = 2, .total = N, .max_q = 4, .max_k = 4};
    r.offset = r.kv_base = call_ints(k, offset, 3);
    r.start = call_ints(k, start, 2);
    rlhf_dev y = call_zeros(k, N * D, RLHF_BF16), lse = call_zeros(k, N * 2, RLHF_F32);
    KIT_OK(k->c, k->c->attention(k->c->ctx, &attn, &r, y, lse, a.hidden, a.ref_hidden, a.d_hidden));
    outputs_add(out, k, "attention", y, RLHF_BF16, N, D, NULL);
    KIT_OK(k->c, k->c->gather(k->c->ctx, a.d_hidden, y, r.start, 2, D, RLHF_BF16));
    outputs_add(out, k, "gather", a.d_hidden, RLHF_BF16, N, D, NULL);
}

static void guarded_ops_give_the_same_bits(void **state) {
    (void)state;
    void *so;
    const rlhf_plugin *ref = kit_load("reference", &so);
    struct kit k = {.cpu1 = kit_create(ref, 1, 0, 0), .cpu2 = kit_create(ref, 1, 1, 0)};
    check_threads(&k, whole_head, NULL, 0);
    assert_true(k.cpu2->bytes_in_use(k.cpu2->ctx) == 0);
    kit_destroy(k.cpu1);
    kit_destroy(k.cpu2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(host_access_dies),
                                       cmocka_unit_test(table_access_lives),
                                       cmocka_unit_test(guarded_ops_give_the_same_bits)};
    return cmocka_run_group_tests_name("kernels: guard", tests, NULL, NULL);
}
