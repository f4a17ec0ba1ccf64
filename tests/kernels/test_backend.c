// test_backend.c: the description of a backend, its memory, and calls that it must refuse.
#include "kit.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rlhf_compute *backend(struct kit *k, int i) { return i == 0 ? k->ref : k->cpu2; }

// Asserts that the call was refused with `want` and that the host got an error text. Backends may
// differ in whether they return "invalid" or "not supported".
static void refused(rlhf_compute *c, rlhf_status got, rlhf_status want, const char *what) {
    const char *text = kit_said(c);
    printf("  %s, %s: %d \"%s\"\n", c->name, what, got, text);
    if (want == RLHF_E_INVALID && got == RLHF_E_UNSUPPORTED) want = got;
    assert_int_equal(got, want);
    assert_true(strlen(text) > 10);
}

static void description(void **state) {
    struct kit *k = *state;
    assert_string_equal(k->kernels_ref->id, "org.rlhf-host.kernels.reference");
    const char *tested = getenv("RLHF_TEST_BACKEND");
    const int cuda = tested && strncmp(tested, "cuda", 4) == 0;
    const char *name = cuda ? "cuda" : "cpu";
    assert_non_null(strstr(k->kernels_cpu->id, name));
    assert_string_equal(k->ref->name, "reference");
    assert_string_equal(k->cpu2->name, name);
    assert_int_equal(k->cpu1->threads, 1);
    assert_int_equal(k->cpu2->threads, cuda ? 1 : 2);
    for (int i = 0; i < 2; i++) {
        const rlhf_compute *c = backend(k, i);
        assert_int_equal(c->size, sizeof *c);
        const int on_gpu = cuda && i == 1;
        assert_int_equal(c->device, on_gpu ? RLHF_DEVICE_CUDA : RLHF_DEVICE_CPU);
        assert_int_equal(c->flags,
                         RLHF_COMPUTE_ROW_EXACT | RLHF_COMPUTE_MIN_P |
                             (on_gpu ? 0 : RLHF_COMPUTE_DIVERGENCE | RLHF_COMPUTE_HOST_MEMORY));
        assert_true(c->dtypes & 1u << RLHF_F32);
        if (!on_gpu) {
            assert_true(c->slots_hint == 0 && c->microbatch_hint == 0);
            assert_true(!c->record && !c->record_end); // repeating calls gains nothing
        }
        assert_true(!c->record == !c->record_end);
        // Every other table entry is set, except that only some backends name their arithmetic.
        const size_t first = offsetof(rlhf_compute, name),
                     end = offsetof(rlhf_compute, arithmetic_f32);
        for (size_t at = first; at + sizeof(void *) <= end; at += sizeof(void *)) {
            void *p;
            if (at == offsetof(rlhf_compute, record) || at == offsetof(rlhf_compute, record_end))
                continue;
            memcpy(&p, (const char *)c + at, sizeof p);
            if (!p) fail_msg("%s: table entry at byte %zu is NULL", c->name, at);
        }
    }
}

static void options_of_a_newer_host(void **state) {
    struct kit *k = *state;
    const rlhf_plugin *kernels[] = {k->kernels_ref, k->kernels_cpu};
    struct {
        rlhf_kernels_open o;
        uint64_t later;
    } opt = {.o = {.size = sizeof opt, .threads = 1}};
    for (int i = 0; i < 2; i++) {
        struct rlhf_test_backend b;
        opt.later = 0;
        assert_int_equal(rlhf_test_backend_open(&b, kernels[i], &opt.o), RLHF_OK);
        rlhf_test_backend_close(&b);
        opt.later = 1; // a field this backend does not know, set
        assert_int_equal(rlhf_test_backend_open(&b, kernels[i], &opt.o), RLHF_E_UNSUPPORTED);
        printf("  %s: %s\n", kernels[i]->id, b.said);
        assert_true(strlen(b.said) > 10);
        assert_null(b.c);
        rlhf_test_backend_close(&b); // a NULL table
    }
}

// A table names its arithmetic. One that is asked for by name is kept, and another one refused.
static void arithmetic(void **state) {
    struct kit *k = *state;
    const int exact = (k->cpu2->flags & RLHF_COMPUTE_ROW_EXACT) != 0;
    struct rlhf_test_backend b;
    rlhf_kernels_open opt = {.size = sizeof opt, .threads = 1, .arithmetic = "v1"};
    if (k->cpu2->device == RLHF_DEVICE_CUDA) {
        // A GPU's bits are its own. Its backend names no arithmetic, and refuses to keep to one.
        assert_null(k->cpu2->arithmetic_f32);
        assert_null(k->cpu2->arithmetic_bf16);
        assert_int_equal(rlhf_test_backend_open(&b, k->kernels_cpu, &opt), RLHF_E_UNSUPPORTED);
        rlhf_test_backend_close(&b);
        return;
    }
    if (exact) assert_string_equal(k->cpu2->arithmetic_f32, "v1");
    if (!exact) assert_null(k->cpu2->arithmetic_f32);
    const rlhf_status st = rlhf_test_backend_open(&b, k->kernels_cpu, &opt);
    assert_int_equal(st, exact ? RLHF_OK : RLHF_E_UNSUPPORTED);
    if (exact) assert_string_equal(b.c->arithmetic_f32, "v1");
    if (exact) assert_string_equal(b.c->arithmetic_bf16, "v1");
    if (!exact) assert_non_null(strstr(b.said, "oneDNN cannot keep to the arithmetic v1"));
    rlhf_test_backend_close(&b);
    opt.arithmetic = "v2";
    assert_int_equal(rlhf_test_backend_open(&b, k->kernels_cpu, &opt), RLHF_E_UNSUPPORTED);
    assert_non_null(strstr(b.said, "cannot keep to the arithmetic v2"));
    rlhf_test_backend_close(&b);
}

static void memory(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = backend(*state, i);
        const uint64_t before = c->bytes_in_use(c->ctx);
        rlhf_dev p[3] = {NULL, NULL, NULL};
        const uint64_t bytes[] = {0, 1, 100000};
        for (int j = 0; j < 3; j++) {
            KIT_OK(c, c->alloc(c->ctx, bytes[j], &p[j]));
            assert_non_null(p[j]);
            assert_true((uintptr_t)p[j] % 64 == 0);
        }
        assert_true(c->bytes_in_use(c->ctx) >= before + 100001);
        unsigned char x[100] = {9}, y[100];
        KIT_OK(c, c->download(c->ctx, x, rlhf_dev_at(p[2], 99900), 100));
        for (int j = 0; j < 100; j++)
            assert_int_equal(x[j], 0);
        for (int j = 0; j < 100; j++)
            x[j] = (unsigned char)(j + 1);
        KIT_OK(c, c->upload(c->ctx, rlhf_dev_at(p[2], 7), x, 100));
        KIT_OK(c, c->copy(c->ctx, rlhf_dev_at(p[2], 5000), rlhf_dev_at(p[2], 7), 100));
        KIT_OK(c, c->zero(c->ctx, rlhf_dev_at(p[2], 5050), 10));
        KIT_OK(c, c->sync(c->ctx));
        KIT_OK(c, c->download(c->ctx, y, rlhf_dev_at(p[2], 5000), 100));
        for (int j = 0; j < 100; j++)
            assert_int_equal(y[j], j >= 50 && j < 60 ? 0 : j + 1);
        KIT_OK(c, c->upload(c->ctx, p[0], NULL, 0));
        for (int j = 0; j < 3; j++)
            c->release(c->ctx, p[j]);
        c->release(c->ctx, NULL);
        assert_int_equal(c->bytes_in_use(c->ctx), before);
    }
}

// Asynchronous copies are complete after a wait for a later mark, or after sync.
static void memory_of_the_host(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = backend(*state, i);
        const uint64_t before = c->bytes_in_use(c->ctx);
        void *p[2] = {NULL, NULL}, *none = NULL;
        rlhf_dev d = NULL;
        uint64_t first = 0, ticket = 0;
        KIT_OK(c, c->alloc(c->ctx, 4096, &d));
        KIT_OK(c, c->alloc_host(c->ctx, 0, &none));
        assert_non_null(none);
        for (int j = 0; j < 2; j++) {
            KIT_OK(c, c->alloc_host(c->ctx, 4096, &p[j]));
            assert_true((uintptr_t)p[j] % 64 == 0);
        }
        unsigned char *from = p[0], *to = p[1];
        for (int j = 0; j < 4096; j++)
            assert_true(from[j] == 0 && to[j] == 0);
        KIT_OK(c, c->mark(c->ctx, &first));
        assert_true(first > 0);
        for (int j = 0; j < 4096; j++)
            from[j] = (unsigned char)(j % 251);
        KIT_OK(c, c->upload_async(c->ctx, d, from, 4096));
        KIT_OK(c, c->download_async(c->ctx, to + 8, rlhf_dev_at(d, 16), 1000));
        KIT_OK(c, c->mark(c->ctx, &ticket));
        assert_true(ticket > first);
        KIT_OK(c, c->wait(c->ctx, first));
        KIT_OK(c, c->wait(c->ctx, ticket));
        KIT_OK(c, c->wait(c->ctx, ticket)); // waiting twice is harmless
        KIT_OK(c, c->wait(c->ctx, 0));
        for (int j = 0; j < 1000; j++)
            assert_int_equal(to[8 + j], (16 + j) % 251);
        assert_true(to[7] == 0 && to[1008] == 0);
        memset(from, 7, 4096); // ours to change again
        KIT_OK(c, c->upload(c->ctx, d, from, 100));
        KIT_OK(c, c->download_async(c->ctx, to, d, 200));
        KIT_OK(c, c->sync(c->ctx));
        assert_true(to[99] == 7 && to[100] == 100);
        refused(c, c->wait(c->ctx, ticket + 1000), RLHF_E_INVALID, "a ticket nobody gave");
        for (int j = 0; j < 2; j++)
            c->release_host(c->ctx, p[j]);
        c->release_host(c->ctx, none);
        c->release_host(c->ctx, NULL);
        c->release(c->ctx, d);
        assert_int_equal(c->bytes_in_use(c->ctx), before);
    }
}

static void a_card_that_is_not_there(void **state) {
    struct kit *k = *state;
    const rlhf_plugin *kernels[] = {k->kernels_ref, k->kernels_cpu};
    const rlhf_kernels_open opt = {.size = sizeof opt, .threads = 1, .gpu = 7};
    for (int i = 0; i < 2; i++) {
        struct rlhf_test_backend b;
        assert_true(rlhf_test_backend_open(&b, kernels[i], &opt) < 0);
        printf("  %s: %s\n", kernels[i]->id, b.said);
        assert_non_null(strstr(b.said, "7"));
        rlhf_test_backend_close(&b);
    }
}

static void too_large(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = backend(*state, i);
        const uint64_t before = c->bytes_in_use(c->ctx);
        const uint64_t sizes[] = {1ull << 46, 1ull << 63, ~0ull, ~0ull - 63};
        for (size_t j = 0; j < CHECK_COUNT(sizes); j++) {
            rlhf_dev p = NULL;
            char digits[32];
            refused(c, c->alloc(c->ctx, sizes[j], &p), RLHF_E_NOMEM, "alloc");
            snprintf(digits, sizeof digits, "%llu", (unsigned long long)sizes[j]);
            assert_non_null(strstr(kit_said(c), digits));
            assert_null(p);
        }
        rlhf_weight *w = NULL;
        refused(c, c->weight_create(c->ctx, 16777216, 16777216, RLHF_F32, 0, &w), RLHF_E_NOMEM,
                "weight_create");
        assert_null(w);
        assert_int_equal(c->bytes_in_use(c->ctx), before);
    }
}

static void weights(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = backend(*state, i);
        const uint64_t before = c->bytes_in_use(c->ctx);
        rlhf_weight *w = NULL;
        refused(c, c->weight_create(c->ctx, 0, 16, RLHF_F32, 0, &w), RLHF_E_INVALID, "k = 0");
        refused(c, c->weight_create(c->ctx, 16, -1, RLHF_F32, 0, &w), RLHF_E_INVALID, "n = -1");
        refused(c, c->weight_create(c->ctx, 16, 16, RLHF_I32, 0, &w), RLHF_E_INVALID, "i32");
        struct call k = {.c = c};
        rlhf_dev x = call_zeros(&k, 256, RLHF_F32), y = call_zeros(&k, 256, RLHF_F32);
        KIT_OK(c, c->weight_create(c->ctx, 16, 16, RLHF_F32, 0, &w));
        refused(c, c->linear(c->ctx, y, RLHF_F32, 0, x, w, NULL, 2), RLHF_E_INVALID, "not packed");
        KIT_OK(c, c->weight_pack(c->ctx, w, x));
        refused(c, c->linear_dx(c->ctx, y, RLHF_F32, 0, x, w, 2), RLHF_E_INVALID, "no backward");
        refused(c, c->linear(c->ctx, y, RLHF_I32, 0, x, w, NULL, 2), RLHF_E_INVALID, "to i32");
        refused(c, c->linear(c->ctx, y, RLHF_BF16, 1, x, w, NULL, 2), RLHF_E_INVALID,
                "accumulate in bf16");
        c->weight_destroy(c->ctx, w);
        c->weight_destroy(c->ctx, NULL);
        call_finish(&k);
        assert_int_equal(c->bytes_in_use(c->ctx), before);
    }
}

// Packing a weight increases bytes_in_use by its predicted size.
static void weights_foretold(void **state) {
    static const struct {
        int32_t k, n;
    } sizes[] = {{1, 1}, {16, 16}, {97, 33}, {64, 300}, {896, 128}};
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = backend(*state, i);
        for (size_t j = 0; j < 8 * CHECK_COUNT(sizes); j++) {
            const int32_t k = sizes[j / 8].k, n = sizes[j / 8].n;
            const int32_t dtype = j & 4 ? RLHF_F32 : RLHF_BF16;
            const uint32_t flags = (uint32_t)j & 3;
            const uint64_t before = c->bytes_in_use(c->ctx);
            const uint64_t bytes = c->weight_bytes(c->ctx, k, n, dtype, flags);
            rlhf_weight *w = NULL;
            assert_true(bytes >= (uint64_t)k * (uint64_t)n * rlhf_dtype_size(dtype));
            assert_int_equal(c->bytes_in_use(c->ctx), before);
            KIT_OK(c, c->weight_create(c->ctx, k, n, dtype, flags, &w));
            assert_int_equal(c->bytes_in_use(c->ctx) - before, bytes);
            c->weight_destroy(c->ctx, w);
        }
        assert_int_equal(c->weight_bytes(c->ctx, 0, 16, RLHF_F32, 0), 0);
        assert_int_equal(c->weight_bytes(c->ctx, 16, -1, RLHF_F32, 0), 0);
        assert_int_equal(c->weight_bytes(c->ctx, 16, 16, RLHF_I32, 0), 0);
        assert_int_equal(c->weight_bytes(c->ctx, 16, 16, RLHF_F32, 1u << 30), 0);
    }
}

// The CPU stores a weight once for both directions: the backward pass converts the packed panels.
static void way_back_is_free(void **state) {
    const rlhf_compute *c = backend(*state, 1);
    static const int32_t dtypes[] = {RLHF_F32, RLHF_BF16};
    if (c->device != RLHF_DEVICE_CPU) return;
    for (size_t i = 0; i < CHECK_COUNT(dtypes); i++)
        assert_int_equal(c->weight_bytes(c->ctx, 97, 300, dtypes[i], RLHF_WEIGHT_BACKWARD),
                         c->weight_bytes(c->ctx, 97, 300, dtypes[i], 0));
}

struct turned {
    uint32_t rows;
    int32_t k, n, dtype, out_dtype, accumulate;
};

// linear_dx, which converts the weight's panels, equals x times the weight's transpose, packed
// directly.
static void dx_is_by_the_transpose(void **state) {
    static const struct turned all[] = {
        {5, 1, 1, RLHF_F32, RLHF_F32, 0},        {37, 97, 33, RLHF_F32, RLHF_F32, 0},
        {70, 33, 1100, RLHF_F32, RLHF_F32, 1},   {3, 40, 2100, RLHF_F32, RLHF_F32, 0},
        {5, 1, 1, RLHF_BF16, RLHF_F32, 0},       {37, 97, 33, RLHF_BF16, RLHF_BF16, 0},
        {70, 31, 4200, RLHF_BF16, RLHF_BF16, 0}, {64, 300, 47, RLHF_BF16, RLHF_F32, 1},
        {33, 64, 64, RLHF_BF16, RLHF_BF16, 0}};
    struct kit *kit = *state;
    rlhf_compute *backends[] = {kit->ref, kit->cpu1, kit->cpu2};
    for (size_t i = 0; i < CHECK_COUNT(backends) * CHECK_COUNT(all) * 2; i++) {
        const struct turned *s = &all[i / 2 % CHECK_COUNT(all)];
        struct call k = {.c = backends[i / 2 / CHECK_COUNT(all)]};
        const uint32_t other = i & 1 ? RLHF_WEIGHT_OUT_IN : 0; // the other layout
        const uint64_t kk = (uint64_t)s->k, n = (uint64_t)s->n, out = s->rows * kk;
        const float *numbers = call_normal(&k, 1, kk * n, 1.0);
        rlhf_weight *w = call_weight(&k, numbers, s->k, s->n, s->dtype,
                                     (other ^ RLHF_WEIGHT_OUT_IN) | RLHF_WEIGHT_BACKWARD);
        rlhf_weight *t = call_weight(&k, numbers, s->n, s->k, s->dtype, other);
        rlhf_dev dy = call_floats(&k, call_normal(&k, 2, s->rows * n, 1.0), s->rows * n, s->dtype);
        const float *at = call_normal(&k, 3, out, 1.0);
        rlhf_dev dx = call_floats(&k, at, out, s->out_dtype);
        rlhf_dev y = call_floats(&k, at, out, s->out_dtype);
        float *got = call_host(&k, out * sizeof *got), *want = call_host(&k, out * sizeof *want);
        KIT_OK(k.c, k.c->linear_dx(k.c->ctx, dx, s->out_dtype, s->accumulate, dy, w, s->rows));
        KIT_OK(k.c, k.c->linear(k.c->ctx, y, s->out_dtype, s->accumulate, dy, t, NULL, s->rows));
        kit_read(k.c, got, dx, out, s->out_dtype);
        kit_read(k.c, want, y, out, s->out_dtype);
        if (memcmp(got, want, out * sizeof *got) != 0)
            printf("  %s: %u rows by %d x %d turned differ\n", k.c->name, s->rows, s->k, s->n);
        assert_memory_equal(got, want, out * sizeof *got);
        call_finish(&k);
    }
}

static void unknown_flags(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = backend(*state, i);
        const uint64_t before = c->bytes_in_use(c->ctx);
        rlhf_weight *w = NULL;
        refused(c, c->weight_create(c->ctx, 16, 16, RLHF_F32, RLHF_WEIGHT_KNOWN | 1u << 30, &w),
                RLHF_E_UNSUPPORTED, "flags");
        assert_non_null(strstr(kit_said(c), "0x40000003"));
        assert_null(w);
        assert_int_equal(c->bytes_in_use(c->ctx), before);
    }
}

static void shapes(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = backend(*state, i);
        struct call k = {.c = c};
        rlhf_dev x = call_zeros(&k, 4096, RLHF_F32), y = call_zeros(&k, 4096, RLHF_F32);
        int32_t offset[] = {0, 4};
        rlhf_dev o = call_ints(&k, offset, 2);
        refused(c, c->act(c->ctx, y, x, 9, RLHF_F32, 16), RLHF_E_UNSUPPORTED, "activation 9");
        refused(c, c->act(c->ctx, y, x, RLHF_ACT_RELU, RLHF_I32, 16), RLHF_E_INVALID, "act of i32");
        refused(c, c->pool(c->ctx, y, x, o, 1, 16, 7), RLHF_E_UNSUPPORTED, "pooling 7");
        refused(c, c->convert(c->ctx, y, RLHF_I32, x, RLHF_F32, 16), RLHF_E_INVALID,
                "convert to i32");
        rlhf_ragged r = {.size = sizeof r, .n = 1, .total = 4, .max_q = 4, .max_k = 4, .offset = o};
        r.start = r.kv_base = call_zeros(&k, 1, RLHF_I32);
        rlhf_attn a = {sizeof(rlhf_attn), 0, 0, 16, 1, RLHF_F32, 16, 16, 16, 0.25};
        refused(c, c->attention(c->ctx, &a, &r, y, NULL, x, x, x), RLHF_E_INVALID, "no heads");
        a.heads = 1;
        a.dtype = RLHF_I32;
        refused(c, c->attention(c->ctx, &a, &r, y, NULL, x, x, x), RLHF_E_INVALID, "i32 heads");
        a.dtype = RLHF_F32;
        a.kv_heads = 2;
        refused(c, c->attention(c->ctx, &a, &r, y, NULL, x, x, x), RLHF_E_INVALID, "2 heads of 1");
        a.kv_heads = -1;
        refused(c, c->attention(c->ctx, &a, &r, y, NULL, x, x, x), RLHF_E_INVALID, "-1 heads");
        const rlhf_adamw adam = {sizeof(rlhf_adamw), 0, 1e-3, 0.9, 0.999, 1e-8, 0.0, 1.0, 0};
        refused(c, c->adamw(c->ctx, x, y, x, y, 16, &adam), RLHF_E_INVALID, "adamw step 0");
        call_finish(&k);
    }
}

static void heads(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = backend(*state, i);
        struct call k = {.c = c};
        rlhf_dist dist = RLHF_DIST_WHOLE;
        int32_t target[] = {1, 2};
        float w[16 * 20] = {0};
        rlhf_lm_head a = {
            .size = sizeof a, .rows = 2, .d = 16, .vocab = 20, .dtype = RLHF_F32, .dist = &dist};
        a.hidden = call_zeros(&k, 32, RLHF_F32);
        a.target = call_ints(&k, target, 2);
        a.logp = call_zeros(&k, 2, RLHF_F32);
        a.weight = call_weight(&k, w, 16, 20, RLHF_F32, 0);
        KIT_OK(c, c->lm_head(c->ctx, &a));
        rlhf_lm_head bad = a;
        bad.vocab = 21;
        refused(c, c->lm_head(c->ctx, &bad), RLHF_E_INVALID, "vocab is not the weight's n");
        bad = a;
        bad.dtype = RLHF_BF16;
        refused(c, c->lm_head(c->ctx, &bad), RLHF_E_INVALID, "dtype is not the weight's");
        bad = a;
        bad.d_hidden = call_zeros(&k, 32, RLHF_F32);
        refused(c, c->lm_head_bwd(c->ctx, &bad), RLHF_E_INVALID, "no backward weight");
        const rlhf_dist bad_dist[] = {RLHF_DIST(0.0, 1.0, 0, 0), RLHF_DIST(1.0, 0.0, 0, 0),
                                      RLHF_DIST(1.0, 1.5, 0, 0), RLHF_DIST(1.0, 1.0, -1, 0)};
        for (size_t j = 0; j < CHECK_COUNT(bad_dist); j++) {
            bad = a;
            bad.dist = &bad_dist[j];
            refused(c, c->lm_head(c->ctx, &bad), RLHF_E_INVALID, "distribution");
        }
        call_finish(&k);
    }
}

// ---- argument structs of other versions ----

// Arguments of every op that takes a sized struct.
struct sized_args {
    rlhf_dev x, y;
    rlhf_ragged rows;
    rlhf_attn attn;
    rlhf_lm_head head;
};

static rlhf_status call_attn(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->attention(c->ctx, s, &a->rows, a->y, NULL, a->x, a->x, a->x);
}

static rlhf_status call_rows(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->attention(c->ctx, &a->attn, s, a->y, NULL, a->x, a->x, a->x);
}

static rlhf_status call_kv_rows(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->kv_store(c->ctx, a->y, a->y, a->x, a->x, 16, s, 16, RLHF_F32);
}

static rlhf_status call_dist(rlhf_compute *c, const struct sized_args *a, const void *s) {
    rlhf_lm_head h = a->head;
    h.dist = s;
    return c->lm_head(c->ctx, &h);
}

static rlhf_status call_adamw(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->adamw(c->ctx, a->x, a->y, a->x, a->y, 16, s);
}

static rlhf_status call_muon(rlhf_compute *c, const struct sized_args *a, const void *s) {
    return c->muon(c->ctx, a->x, a->y, a->x, 4, 4, s);
}

static rlhf_status call_blocks(rlhf_compute *c, const struct sized_args *a, const void *s) {
    rlhf_weight *w = NULL;
    (void)a;
    const rlhf_status st = c->weight_create_blocks(c->ctx, s, &w);
    c->weight_destroy(c->ctx, w);
    return st;
}

static rlhf_status call_linear_sum(rlhf_compute *c, const struct sized_args *a, const void *s) {
    (void)a;
    return c->linear_sum(c->ctx, s);
}

typedef rlhf_status sized_call(rlhf_compute *c, const struct sized_args *a, const void *s);

// Passes the struct twice as a newer caller does: longer, with its last field 0 and then set. Also
// passes a struct that is too short for any caller.
static void other_size(rlhf_compute *c, const struct sized_args *a, sized_call *call, const void *s,
                       uint32_t size, const char *what) {
    unsigned char longer[128] = {0};
    uint32_t said = size + 8;
    assert_true(said <= sizeof longer);
    memcpy(longer, s, size);
    memcpy(longer, &said, sizeof said);
    KIT_OK(c, call(c, a, longer));
    longer[size + 7] = 1;
    refused(c, call(c, a, longer), RLHF_E_UNSUPPORTED, what);
    said = size / 2;
    memcpy(longer, &said, sizeof said);
    refused(c, call(c, a, longer), RLHF_E_INVALID, what);
}

static void structs_of_other_sizes(void **state) {
    const rlhf_adamw adamw = {sizeof(rlhf_adamw), 0, 1e-3, 0.9, 0.999, 1e-8, 0.0, 1.0, 1};
    const rlhf_muon muon = {sizeof(rlhf_muon), 1, 5, 0, 0.02, 0.95, 0.0, 1.0};
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = backend(*state, i);
        struct call k = {.c = c};
        const int32_t offset[] = {0, 4}, target[] = {1, 2};
        float w[16 * 20] = {0};
        struct sized_args a = {.x = call_zeros(&k, 4 * 16, RLHF_F32),
                               .y = call_zeros(&k, 4 * 16, RLHF_F32)};
        a.rows = (rlhf_ragged){.size = sizeof a.rows, .n = 1, .total = 4, .max_q = 4, .max_k = 4};
        a.rows.offset = call_ints(&k, offset, 2);
        a.rows.start = a.rows.kv_base = call_zeros(&k, 1, RLHF_I32);
        a.attn = (rlhf_attn){sizeof(rlhf_attn), 2, 0, 8, 1, RLHF_F32, 16, 16, 16, 0.25};
        a.head = (rlhf_lm_head){
            .size = sizeof a.head, .rows = 2, .d = 16, .vocab = 20, .dtype = RLHF_F32};
        a.head.hidden = a.x;
        a.head.target = call_ints(&k, target, 2);
        a.head.logp = call_zeros(&k, 2, RLHF_F32);
        a.head.weight = call_weight(&k, w, 16, 20, RLHF_F32, 0);
        other_size(c, &a, call_attn, &a.attn, sizeof a.attn, "attention geometry");
        other_size(c, &a, call_rows, &a.rows, sizeof a.rows, "rows of attention");
        other_size(c, &a, call_kv_rows, &a.rows, sizeof a.rows, "rows of kv_store");
        other_size(c, &a, call_dist, &dist, sizeof dist, "a dist");
        other_size(c, &a, call_adamw, &adamw, sizeof adamw, "adamw");
        other_size(c, &a, call_muon, &muon, sizeof muon, "muon");
        const int32_t from[] = {0, 8}, count[] = {8, 8};
        const rlhf_blocks blocks = {sizeof blocks, 16, 4, RLHF_F32, 0, 2, from, count, 1.0};
        const rlhf_weight *square = call_weight(&k, w, 16, 16, RLHF_F32, 0);
        const rlhf_linear_sum sum = {.size = sizeof sum,
                                     .rows = 4,
                                     .out_dtype = RLHF_F32,
                                     .out = a.y,
                                     .x = a.x,
                                     .x2 = a.x,
                                     .w = square,
                                     .w2 = square};
        other_size(c, &a, call_blocks, &blocks, sizeof blocks, "blocks");
        other_size(c, &a, call_linear_sum, &sum, sizeof sum, "linear_sum");
        call_finish(&k);
    }
}

static const char *text_of(const json_t *object, const char *key) {
    const json_t *v = json_object_get(object, key);
    return json_is_string(v) ? json_string_value(v) : "";
}
static int is_set(const json_t *object, const char *key) {
    return json_is_true(json_object_get(object, key));
}

// The JSON object that describe() returns for device `gpu`.
static json_t *described(const rlhf_plugin *p, uint32_t gpu) {
    struct rlhf_test_backend b;
    const char *json = NULL;
    assert_int_equal(rlhf_test_backend_open(&b, p, NULL), RLHF_OK);
    assert_int_equal(b.ops->describe(b.self, gpu, &json), RLHF_OK);
    assert_string_equal(b.said, "");
    json_error_t e;
    json_t *d = json_loads(json, 0, &e);
    if (!d) fail_msg("%s: %s in %s", p->id, e.text, json);
    rlhf_test_backend_close(&b);
    return d;
}

static void devices(void **state) {
    struct kit *k = *state;
    const rlhf_plugin *kernels[] = {k->kernels_ref, k->kernels_cpu};
    for (int i = 0; i < 2; i++) {
        json_t *d = described(kernels[i], 0), *other = described(kernels[i], 7);
        assert_true(json_integer_value(json_object_get(d, "devices")) >= 1);
        assert_true(json_integer_value(json_object_get(d, "memory")) > 1 << 20);
        assert_true(text_of(d, "name")[0]);
        assert_string_equal(text_of(d, "missing"), "");
        assert_true(strlen(text_of(other, "missing")) > 10);
        json_decref(d);
        json_decref(other);
    }
}

// Checks the table of instruction sets. It marks one level as used, which must not be above the
// level that the environment allows. For every higher level, it gives the reason why it is not
// used.
static void levels(void **state) {
    struct kit *k = *state;
    const char *cap = getenv("RLHF_CPU_ISA");
    if (strcmp(k->cpu2->name, "cpu") != 0) skip();
    json_t *d = described(k->kernels_cpu, 0);
    const json_t *all = json_object_get(d, "levels");
    const size_t n = json_array_size(all);
#ifdef __aarch64__
    assert_int_equal(n, 1);
#else
    assert_int_equal(n, 5);
#endif
    size_t used = n, allowed = n - 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *l = json_array_get(all, i);
        const char *why = text_of(l, "why_unused");
        const int has = is_set(l, "supported");
        printf("  %s, has %d, used %d, %s\n", text_of(l, "name"), has, is_set(l, "used"), why);
        assert_true(has || (i > 0 && why[0]));
        assert_true(text_of(l, "loops")[0] && text_of(l, "f32")[0] && text_of(l, "bf16")[0]);
        if (i > 0 && has) assert_true(is_set(json_array_get(all, i - 1), "supported"));
        if (is_set(l, "used")) assert_int_equal(used, n); // the first one
        if (is_set(l, "used")) used = i;
        if (used < i) assert_true(strlen(why) > 10);
        if (used >= i && has) assert_string_equal(why, "");
        if (cap && strcmp(cap, text_of(l, "name")) == 0) allowed = i;
    }
    assert_true(used <= allowed);
    assert_true(used == allowed || !is_set(json_array_get(all, used + 1), "supported"));
    const char *name = text_of(json_array_get(all, used), "name");
    const size_t len = strlen(name);
    if (strncmp(k->cpu2->detail, name, len) != 0 || k->cpu2->detail[len] != ',')
        fail_msg("\"%s\" is not of level %s", k->cpu2->detail, name);
    const char *bf16 = text_of(json_array_get(all, used), "bf16");
    assert_int_equal((k->cpu2->dtypes & 1u << RLHF_BF16) != 0, strncmp(bf16, "own", 3) == 0);
    json_decref(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(description),
                                       cmocka_unit_test(options_of_a_newer_host),
                                       cmocka_unit_test(arithmetic),
                                       cmocka_unit_test(memory),
                                       cmocka_unit_test(memory_of_the_host),
                                       cmocka_unit_test(a_card_that_is_not_there),
                                       cmocka_unit_test(too_large),
                                       cmocka_unit_test(weights),
                                       cmocka_unit_test(way_back_is_free),
                                       cmocka_unit_test(dx_is_by_the_transpose),
                                       cmocka_unit_test(weights_foretold),
                                       cmocka_unit_test(unknown_flags),
                                       cmocka_unit_test(devices),
                                       cmocka_unit_test(levels),
                                       cmocka_unit_test(shapes),
                                       cmocka_unit_test(heads),
                                       cmocka_unit_test(structs_of_other_sizes)};
    return cmocka_run_group_tests_name("kernels: backend", tests, kit_setup, kit_teardown);
}
