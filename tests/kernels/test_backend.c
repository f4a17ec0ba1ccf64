// test_backend.c: how a backend describes itself, how it is opened, and its memory.
#include "kit.h"
#include "support/floats.h"
#include <fenv.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        const rlhf_compute *c = kit_backend(k, i);
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
        opt.later = 1; // a field that this backend does not know
        assert_int_equal(rlhf_test_backend_open(&b, kernels[i], &opt.o), RLHF_E_UNSUPPORTED);
        printf("  %s: %s\n", kernels[i]->id, b.said);
        assert_true(strlen(b.said) > 10);
        assert_null(b.c);
        rlhf_test_backend_close(&b); // a NULL table
    }
}

// A table names its arithmetic. If a caller requests this name, open succeeds. Other names are
// refused.
static void arithmetic(void **state) {
    struct kit *k = *state;
    struct rlhf_test_backend b;
    rlhf_kernels_open opt = {.size = sizeof opt, .threads = 1, .arithmetic = "v1"};
    if (k->cpu2->device == RLHF_DEVICE_CUDA) {
        // A GPU's bits follow none of the named arithmetics, so its backend refuses every name.
        assert_null(k->cpu2->arithmetic_f32);
        assert_null(k->cpu2->arithmetic_bf16);
        assert_int_equal(rlhf_test_backend_open(&b, k->kernels_cpu, &opt), RLHF_E_UNSUPPORTED);
        rlhf_test_backend_close(&b);
        return;
    }
    assert_string_equal(k->cpu2->arithmetic_f32, "v1");
    assert_int_equal(rlhf_test_backend_open(&b, k->kernels_cpu, &opt), RLHF_OK);
    assert_string_equal(b.c->arithmetic_f32, "v1");
    assert_string_equal(b.c->arithmetic_bf16, "v1");
    rlhf_test_backend_close(&b);
    opt.arithmetic = "v2";
    assert_int_equal(rlhf_test_backend_open(&b, k->kernels_cpu, &opt), RLHF_E_UNSUPPORTED);
    assert_non_null(strstr(b.said, "cannot keep to the arithmetic v2"));
    rlhf_test_backend_close(&b);
}

static void memory(void **state) {
    for (int i = 0; i < 2; i++) {
        rlhf_compute *c = kit_backend(*state, i);
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
        rlhf_compute *c = kit_backend(*state, i);
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
        memset(from, 7, 4096); // the memory may be changed again
        KIT_OK(c, c->upload(c->ctx, d, from, 100));
        KIT_OK(c, c->download_async(c->ctx, to, d, 200));
        KIT_OK(c, c->sync(c->ctx));
        assert_true(to[99] == 7 && to[100] == 100);
        kit_refused(c, c->wait(c->ctx, ticket + 1000), RLHF_E_INVALID, "a ticket nobody gave");
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

static const char *text_of(const json_t *object, const char *key) {
    const json_t *v = json_object_get(object, key);
    return json_is_string(v) ? json_string_value(v) : "";
}
static int is_set(const json_t *object, const char *key) {
    return json_is_true(json_object_get(object, key));
}

// Returns the JSON object that describe() returns for device `gpu`.
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

// Checks the table of instruction sets. The table marks one level as used, which must not be above
// the level that the environment allows. For every higher level, the table gives the reason why it
// is not used.
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
    int above = 0; // 1: this CPU does not have the level of a row before
    for (size_t i = 0; i < n; i++) {
        const json_t *l = json_array_get(all, i);
        const char *why = text_of(l, "why_unused");
        const int has = is_set(l, "supported");
        printf("  %s, has %d, used %d, %s\n", text_of(l, "name"), has, is_set(l, "used"), why);
        assert_true(has || (i > 0 && why[0]));
        assert_true(text_of(l, "loops")[0] && text_of(l, "f32")[0] && text_of(l, "bf16")[0]);
        assert_false(has && above);
        above |= !has && !strstr(why, "this build leaves it out");
        if (is_set(l, "used")) assert_int_equal(used, n); // the first one
        if (is_set(l, "used")) used = i;
        if (used < i) assert_true(strlen(why) > 10);
        if (used >= i && has) assert_string_equal(why, "");
        if (cap && strcmp(cap, text_of(l, "name")) == 0) allowed = i;
    }
    assert_true(used <= allowed);
    if (used < allowed && is_set(json_array_get(all, used + 1), "supported")) { // it is slow
        const char *why = text_of(json_array_get(all, used + 1), "why_unused");
        assert_true(!cap && strstr(why, "f32 instructions are faster"));
    }
    const char *name = text_of(json_array_get(all, used), "name");
    const size_t len = strlen(name);
    if (strncmp(k->cpu2->detail, name, len) != 0 || k->cpu2->detail[len] != ',')
        fail_msg("\"%s\" is not of level %s", k->cpu2->detail, name);
    const char *bf16 = text_of(json_array_get(all, used), "bf16");
    assert_int_equal((k->cpu2->dtypes & 1u << RLHF_BF16) != 0, strncmp(bf16, "own", 3) == 0);
    json_decref(d);
}

enum { PRODUCT_ROWS = 8192, PRODUCT = PRODUCT_ROWS * 64 }; // takes longer than waking a thread

static void product(rlhf_compute *c, float *out) {
    struct call k = {.c = c};
    rlhf_weight *w = call_weight(&k, call_normal(&k, 1, 64 * 64, 1.0), 64, 64, RLHF_F32, 0);
    rlhf_dev x = call_floats(&k, call_normal(&k, 2, PRODUCT, 1.0), PRODUCT, RLHF_F32);
    rlhf_dev y = call_zeros(&k, PRODUCT, RLHF_F32);
    KIT_OK(c, c->linear(c->ctx, y, RLHF_F32, 0, x, w, NULL, PRODUCT_ROWS));
    kit_read(c, out, y, PRODUCT, RLHF_F32);
    call_finish(&k);
}

static void product_with_changed_floats(rlhf_compute *c, float *out) {
    fenv_t before;
    fegetenv(&before);
    change_floats();
    product(c, out);
    fesetenv(&before);
}

// Foreign code may have changed the floating-point modes of the calling thread. All threads compute
// in these modes.
static void floats_of_threads(void **state) {
    const struct kit *k = *state;
    if (k->cpu2->device != RLHF_DEVICE_CPU) skip();
    static float want[PRODUCT], one[PRODUCT], two[PRODUCT];
    product(k->cpu2, want);
    product_with_changed_floats(k->cpu1, one);
    product_with_changed_floats(k->cpu2, two);
    assert_memory_equal(two, one, sizeof one);
    assert_true(memcmp(two + PRODUCT / 2, want + PRODUCT / 2, sizeof want / 2) != 0);
    product(k->cpu2, two);
    assert_memory_equal(two, want, sizeof want);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(description),
                                       cmocka_unit_test(options_of_a_newer_host),
                                       cmocka_unit_test(arithmetic),
                                       cmocka_unit_test(memory),
                                       cmocka_unit_test(memory_of_the_host),
                                       cmocka_unit_test(a_card_that_is_not_there),
                                       cmocka_unit_test(devices),
                                       cmocka_unit_test(levels),
                                       cmocka_unit_test(floats_of_threads)};
    return cmocka_run_group_tests_name("kernels: backend", tests, kit_setup, kit_teardown);
}
