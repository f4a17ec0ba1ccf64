// tests/models/test_adapter.c: low-rank adapters. A model with an adapter has the same heads and
// gradients as a model into whose matrices the adapter was merged. With B = 0 it equals its base
// bit for bit. Wherever two results of models without an adapter have the same bits, they also have
// the same bits with an adapter.
#include "adapters.h"
#include "decoders.h"
#include "families.h"
#include "rollout.h"

#include <stdio.h>
#include <string.h>

// ---- merged ----

// One adapted layer: the parameters' names, and the merged model's matrix.
struct pair {
    char a[RLHF_PARAM_NAME_MAX + 1], b[RLHF_PARAM_NAME_MAX + 1], whole[RLHF_PARAM_NAME_MAX + 1];
    uint64_t in, out, rank;
};

// Finds the pair whose A is p. Returns 0 if p is not an A.
static int pair_of(struct model *m, const rlhf_param *p, struct pair *out) {
    const char *end = strstr(p->name, "lora_A.weight");
    if (!end) return 0;
    const int n = (int)(end - p->name);
    snprintf(out->a, sizeof out->a, "%s", p->name);
    snprintf(out->b, sizeof out->b, "%.*slora_B.weight", n, p->name);
    snprintf(out->whole, sizeof out->whole, "%.*sweight", n, p->name);
    const rlhf_param b = adapted_param(m, out->b);
    out->rank = (uint64_t)p->shape[0];
    out->in = (uint64_t)p->shape[1];
    out->out = (uint64_t)b.shape[0];
    assert_int_equal(b.shape[1], p->shape[0]);
    return 1;
}

// Returns the index of element (in i, out o) of a matrix in its storage order.
static uint64_t at(const struct adapted *k, const struct pair *q, uint64_t i, uint64_t o) {
    return k->stored_in_out ? i * q->out + o : o * q->in + i;
}

// Adds scale * B A to the matrix of `merged`.
static void merge(const struct adapted *k, struct model *m, struct model *merged,
                  const struct pair *q) {
    const rlhf_param w = adapted_param(merged, q->whole);
    float *a = device_read(m->c, adapted_param(m, q->a).value, q->rank * q->in);
    float *b = device_read(m->c, adapted_param(m, q->b).value, q->out * q->rank);
    float *x = device_read(m->c, w.value, param_count(&w));
    for (uint64_t o = 0; o < q->out; o++)
        for (uint64_t i = 0; i < q->in; i++) {
            double sum = 0;
            for (uint64_t r = 0; r < q->rank; r++)
                sum += (double)b[o * q->rank + r] * (double)a[r * q->in + i];
            float *to = &x[at(k, q, i, o)];
            *to = (float)((double)*to + ADAPTED_SCALE * sum);
        }
    device_write(m->c, w.value, x, param_count(&w));
    test_free(a);
    test_free(b);
    test_free(x);
}

// Merging gives the gradient of the merged matrix. The gradients of A and B follow from it.
static void check_pair(const struct adapted *k, struct model *m, struct model *merged,
                       const struct pair *q) {
    const rlhf_param w = adapted_param(merged, q->whole), pa = adapted_param(m, q->a);
    const rlhf_param pb = adapted_param(m, q->b);
    float *a = device_read(m->c, pa.value, q->rank * q->in);
    float *b = device_read(m->c, pb.value, q->out * q->rank);
    float *ga = device_read(m->c, pa.grad, q->rank * q->in);
    float *gb = device_read(m->c, pb.grad, q->out * q->rank);
    float *g = device_read(m->c, w.grad, param_count(&w));
    float *want_a = test_calloc(q->rank * q->in, sizeof *want_a);
    float *want_b = test_calloc(q->out * q->rank, sizeof *want_b);
    for (uint64_t o = 0; o < q->out; o++)
        for (uint64_t r = 0; r < q->rank; r++) {
            double sum = 0;
            for (uint64_t i = 0; i < q->in; i++)
                sum += (double)g[at(k, q, i, o)] * (double)a[r * q->in + i];
            want_b[o * q->rank + r] = (float)(ADAPTED_SCALE * sum);
        }
    for (uint64_t r = 0; r < q->rank; r++)
        for (uint64_t i = 0; i < q->in; i++) {
            double sum = 0;
            for (uint64_t o = 0; o < q->out; o++)
                sum += (double)g[at(k, q, i, o)] * (double)b[o * q->rank + r];
            want_a[r * q->in + i] = (float)(ADAPTED_SCALE * sum);
        }
    assert_tensor_close(ga, want_a, q->rank * q->in, VEC_RTOL, 0, q->a);
    assert_tensor_close(gb, want_b, q->out * q->rank, VEC_RTOL, 0, q->b);
    float *all[] = {a, b, ga, gb, g, want_a, want_b};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        test_free(all[i]);
}

static void check_merged(const struct adapted *k) {
    struct model m = adapted_open(k, (struct adapted_how){.dtype = RLHF_F32, .trainable = 1});
    struct model merged =
        adapted_open(k, (struct adapted_how){.dtype = RLHF_F32, .trainable = 1, .plain = 1});
    rlhf_param p = {.size = sizeof p};
    struct pair q;
    uint32_t pairs = 0;
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++)
        if (pair_of(&m, &p, &q)) merge(k, &m, &merged, &q);
    must(&merged, merged.ops->refresh(merged.self));
    float *got = adapted_heads(&m, k, &vec_batch, 1, 0),
          *want = adapted_heads(&merged, k, &vec_batch, 1, 0);
    assert_tensor_close(got, want, ADAPTED_HEADS * adapted_per_head(&vec_batch), 2e-5, 0,
                        k->plugin);
    adapted_backward(&m, k, &vec_batch);
    adapted_backward(&merged, k, &vec_batch);
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++) {
        const uint64_t n = param_count(&p);
        if (pair_of(&m, &p, &q)) {
            pairs++;
            check_pair(k, &m, &merged, &q);
        }
        if (p.group == RLHF_PARAM_ADAPTER) continue;
        assert_int_equal(p.grad == NULL, p.group == RLHF_PARAM_TRUNK);
        if (!p.grad) continue; // heads are trained in full
        float *x = device_read(m.c, p.grad, n);
        float *y = device_read(m.c, adapted_param(&merged, p.name).grad, n);
        assert_tensor_close(x, y, n, VEC_RTOL, 0, p.name);
        test_free(x);
        test_free(y);
    }
    assert_true(pairs > 0);
    test_free(got);
    test_free(want);
    model_close(&merged);
    model_close(&m);
}

static void is_the_merged_model(void **state) {
    (void)state;
    for (int32_t i = 0; i < N_ADAPTED; i++)
        if (plugin_fits(backend.compute, adapted_kinds[i].plugin)) check_merged(&adapted_kinds[i]);
}

// ---- full rank ----

// If A is the identity, B = 0 and the rank is the layer's width, B's gradient equals the full
// gradient of the layer's matrix. So a step on B is a step on the matrix.
static void full_rank(void **state) {
    (void)state;
    enum { WIDTH = 16, OUT = 8 }; // v_proj of tiny_qwen2
    static const char name[] = "model.layers.1.self_attn.v_proj.";
    const struct adapted k = {"qwen2",         tiny_qwen2, {"1.self_attn.v_proj"}, WIDTH, 0,
                              RLHF_VALUE_NONE, 0,          RLHF_HEAD_LOGP};
    rlhf_adapter a = adapter_of(&k);
    a.scale = 1;
    rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    o.adapter = &a;
    struct model m = model_open(k.plugin, k.settings, &o);
    struct model full =
        adapted_open(&k, (struct adapted_how){.dtype = RLHF_F32, .trainable = 1, .plain = 1});
    model_fill(&m, 0.3);
    char text[3][RLHF_PARAM_NAME_MAX + 1];
    const char *const end[] = {"lora_A.weight", "lora_B.weight", "weight"};
    for (int i = 0; i < 3; i++)
        snprintf(text[i], sizeof text[i], "%s%s", name, end[i]);
    const rlhf_param pa = adapted_param(&m, text[0]), pb = adapted_param(&m, text[1]);
    const rlhf_param w = adapted_param(&full, text[2]);
    assert_int_equal(param_count(&pb), OUT * WIDTH);
    float one[WIDTH * WIDTH] = {0};
    for (int i = 0; i < WIDTH; i++)
        one[i * WIDTH + i] = 1;
    device_write(m.c, pa.value, one, WIDTH * WIDTH);
    adapted_zero_ups(&m);
    struct model *both[] = {&m, &full};
    for (int i = 0; i < 2; i++) {
        float *heads = adapted_heads(both[i], &k, &vec_batch, 1, 0);
        test_free(heads);
        adapted_backward(both[i], &k, &vec_batch);
    }
    float *g = device_read(m.c, pb.grad, OUT * WIDTH),
          *want = device_read(m.c, w.grad, OUT * WIDTH);
    assert_tensor_close(g, want, OUT * WIDTH, 1e-6, 0, "gradient of full rank");
    float *x = device_read(m.c, w.value, OUT * WIDTH);
    for (int i = 0; i < OUT * WIDTH; i++) {
        x[i] -= 0.01f * want[i];
        g[i] *= -0.01f;
    }
    device_write(m.c, pb.value, g, OUT * WIDTH);
    device_write(m.c, w.value, x, OUT * WIDTH);
    must(&m, m.ops->refresh(m.self));
    must(&full, full.ops->refresh(full.self));
    float *got = adapted_heads(&m, &k, &vec_batch, 0, 0),
          *after = adapted_heads(&full, &k, &vec_batch, 0, 0);
    assert_tensor_close(got, after, ADAPTED_HEADS * adapted_per_head(&vec_batch), 1e-5, 0,
                        "after a step");
    float *all[] = {g, want, x, got, after};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        test_free(all[i]);
    model_close(&full);
    model_close(&m);
}

// ---- the base ----

// A model has the same bits as its base if B = 0, or if the flag switches the adapter off.
static void is_its_base(void **state) {
    (void)state;
    for (int32_t i = 0; i < N_ADAPTED; i++)
        if (plugin_fits(backend.compute, adapted_kinds[i].plugin))
            for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
                const struct adapted *k = &adapted_kinds[i];
                const uint64_t n = ADAPTED_HEADS * adapted_per_head(&vec_batch);
                struct model base =
                    adapted_open(k, (struct adapted_how){.dtype = dtype, .plain = 1});
                struct model zero =
                    adapted_open(k, (struct adapted_how){.dtype = dtype, .zero = 1});
                struct model m = adapted_open(k, (struct adapted_how){.dtype = dtype});
                float *want = adapted_heads(&base, k, &vec_batch, 0, 0);
                float *of_zero = adapted_heads(&zero, k, &vec_batch, 0, 0);
                float *flagged = adapted_heads(&m, k, &vec_batch, 0, RLHF_FORWARD_BASE);
                float *moved = adapted_heads(&m, k, &vec_batch, 0, 0);
                adapted_same(of_zero, want, n, "B = 0");
                adapted_same(flagged, want, n, "RLHF_FORWARD_BASE");
                assert_memory_not_equal(moved, want, n * sizeof *want);
                test_free(want);
                test_free(of_zero);
                test_free(flagged);
                test_free(moved);
                model_close(&m);
                model_close(&zero);
                model_close(&base);
            }
}

// ---- bits ----

static void recomputed(void **state) {
    (void)state;
    struct families rows = families_make(tiny_families, N_FAMILIES, TINY_VOCAB);
    for (int32_t i = 0; i < N_ADAPTED; i++)
        if (plugin_fits(backend.compute, adapted_kinds[i].plugin))
            for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
                const struct adapted_how keep = {.dtype = dtype, .trainable = 1};
                struct adapted_how again = keep;
                again.recompute = RLHF_RECOMPUTE_LAYER;
                struct model x = adapted_open(&adapted_kinds[i], keep),
                             y = adapted_open(&adapted_kinds[i], again);
                adapted_same_step(&adapted_kinds[i], &x, &y,
                                  adapted_kinds[i].heads & RLHF_HEAD_SCORE ? &vec_batch
                                                                           : &rows.compact);
                model_close(&y);
                model_close(&x);
            }
    families_free(&rows);
}

static void threads(void **state) {
    (void)state;
    if (backend_is_slow()) return; // an emulation, without threads
    struct backend one = backend_again(1);
    for (int32_t i = 0; i < N_ADAPTED; i++)
        if (plugin_fits(backend.compute, adapted_kinds[i].plugin))
            for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
                const struct adapted_how h = {.dtype = dtype, .trainable = 1};
                struct model x = adapted_open(&adapted_kinds[i], h),
                             y = adapted_open_on(&one, &adapted_kinds[i], h);
                adapted_same_step(&adapted_kinds[i], &x, &y, &vec_batch);
                model_close(&y);
                model_close(&x);
            }
    backend_close(&one);
}

// If rows share a prompt, their log-probs equal the log-probs of separate rows, and the gradient is
// the sum over the separate rows.
static void shared_prompts(void **state) {
    (void)state;
    struct families rows = families_make(tiny_families, N_FAMILIES, TINY_VOCAB);
    for (int32_t i = 0; i < N_ADAPTED; i++) {
        if (!plugin_fits(backend.compute, adapted_kinds[i].plugin)) continue;
        if (adapted_kinds[i].heads & RLHF_HEAD_SCORE) continue;
        for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
            struct model m = adapted_open(&adapted_kinds[i], (struct adapted_how){.dtype = dtype});
            float *full = adapted_heads(&m, &adapted_kinds[i], &rows.full, 0, 0);
            float *compact = adapted_heads(&m, &adapted_kinds[i], &rows.compact, 0, 0);
            int32_t compared = 0;
            for (uint32_t r = 0; r < rows.compact.n; r++)
                for (int32_t t = rows.c_offset[r] + rows.c_prompt_len[r]; t < rows.c_offset[r + 1];
                     t++, compared++)
                    adapted_same(compact + t, full + rows.at[t], 1, adapted_kinds[i].plugin);
            if (compared < 30) fail_msg("%d tokens", compared);
            test_free(full);
            test_free(compact);
            model_close(&m);
        }
    }
    families_free(&rows);
}

// Sampling and training give exactly the same log-probs, for any number of rows in flight.
static void sampled_is_trained(void **state) {
    (void)state;
    const rlhf_dist dist = RLHF_DIST(1 / 0.7, 1, 0, 0);
    struct rollout *r = test_malloc(2 * sizeof *r);
    for (int32_t i = 0; i < N_ADAPTED; i++) {
        if (!plugin_fits(backend.compute, adapted_kinds[i].plugin)) continue;
        if (!(adapted_kinds[i].heads & RLHF_HEAD_LOGP)) continue;
        for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
            struct model m = adapted_open(&adapted_kinds[i],
                                          (struct adapted_how){.dtype = dtype, .trainable = 1});
            rollout_init(r, 61, 7, 12);
            rollout_run(r, &m, 4, 100, &dist, &dist, 0);
            rollout_init(r + 1, 61, 7, 12);
            rollout_run(r + 1, &m, ROLL_ROWS, 7, &dist, &dist, 0);
            assert_memory_equal(r, r + 1, sizeof *r);
            struct rollout_batch b = rollout_batch(r, 0, ROLL_ROWS, 61);
            float *logp = test_malloc(b.b.total * sizeof *logp);
            const rlhf_forward f = {
                .size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1, .dist = &dist};
            const rlhf_heads out = {.size = sizeof out, .logp = logp};
            must(&m, m.ops->forward(m.self, &b.b, &f, &out));
            adapted_same(logp, b.logp, b.b.total, "sampled = trained");
            test_free(logp);
            rollout_batch_free(&b);
            model_close(&m);
        }
    }
    test_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_the_merged_model),
                                       cmocka_unit_test(full_rank),
                                       cmocka_unit_test(is_its_base),
                                       cmocka_unit_test(recomputed),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(shared_prompts),
                                       cmocka_unit_test(sampled_is_trained)};
    return on_backends("adapter", ON_ALL, 2, tests, sizeof tests / sizeof *tests);
}
