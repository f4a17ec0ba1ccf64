// test_frozen_model.c: a model that the host opens as frozen can be filled and run. Reading its
// weights back fails, with the reason. A model in training follows compute.recompute.
#include "e2e.h"

#include "model/parameters.h"
#include "model/session.h"

#include <rlhf/rng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        struct rlhf__error err = {0, ""};                                                          \
        if ((call) != RLHF_OK) fail_msg("%s: %s", #call, err.text);                                \
    } while (0)

struct fixture {
    struct e2e *files;
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    struct rlhf__session session;
    char file[512], copy[512], dir[512];
};

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    const char *build = getenv("RLHF_BUILD_DIR");
    if (!f || !build || e2e_setup((void **)&f->files) != 0) return -1;
    snprintf(f->dirs.lib, sizeof f->dirs.lib, "%s/lib/rlhf/1", build);
    snprintf(f->dirs.share, sizeof f->dirs.share, "%s/share/rlhf", build);
    snprintf(f->dir, sizeof f->dir, "%s/model", f->files->dir);
    snprintf(f->file, sizeof f->file, "%s/weights.safetensors", f->files->dir);
    snprintf(f->copy, sizeof f->copy, "%s/copy.safetensors", f->files->dir);
    *state = f;
    if (rlhf__plugins_open(&f->dirs, &f->plugins, NULL) != RLHF_OK) return -1;
    // The guard mode, in which buffers are unreadable outside the backend.
    struct rlhf__compute_config compute = {.backend = "reference",
                                           .dtype = RLHF__DTYPE_F32,
                                           .guard = 1,
                                           .recompute = RLHF_RECOMPUTE_LAYER};
    struct rlhf__run_config run = {.seed = 1, .threads = 1};
    return rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run, NULL);
}

static int teardown(void **state) {
    struct fixture *f = *state;
    rlhf__session_finish(&f->session);
    rlhf__plugins_close(f->plugins);
    int failed = e2e_teardown((void **)&f->files);
    free(f);
    return failed;
}

static struct rlhf__model *open_model(struct fixture *f, int32_t start, int32_t frozen) {
    struct rlhf__model *m = NULL;
    struct rlhf__model_spec spec = {
        .dir = f->dir, .role = "reference", .start = start, .frozen = frozen};
    MUST(rlhf__model_open(&f->session.models, &spec, &m, &err));
    return m;
}

#define N 6

static void logp_of(const struct rlhf__model *m, float out[N]) {
    static const int32_t ids[N] = {65, 66, 67, 68, 69, 70}, offset[] = {0, N}, prompt_len[] = {2};
    const rlhf_batch b = {.size = sizeof b,
                          .n = 1,
                          .total = N,
                          .ids = ids,
                          .offset = offset,
                          .prompt_len = prompt_len};
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
    const rlhf_heads h = {.size = sizeof h, .logp = out};
    MUST(rlhf__model_forward(m, &b, &f, &h, &err));
}

static void gone(rlhf_status st, const struct rlhf__error *err) {
    assert_int_equal(st, RLHF_E_INTERNAL);
    assert_non_null(strstr(err->text, "the reference '"));
    assert_non_null(strstr(err->text, "was opened as frozen: the values of transformer.h.0."));
}

static void filled_and_run(void **state) {
    struct fixture *f = *state;
    struct rlhf__model *whole = open_model(f, RLHF__START_RANDOM, 0);
    struct rlhf__model *drawn = open_model(f, RLHF__START_RANDOM, 1);
    struct rlhf__model *copied = open_model(f, RLHF__START_EMPTY, 1);
    float a[N], b[N];
    uint32_t released = 0;
    MUST(rlhf__params_copy(copied, whole, &err));
    logp_of(whole, a);
    assert_true(a[N - 1] < 0);
    logp_of(drawn, b);
    assert_memory_equal(a, b, sizeof a);
    logp_of(copied, b);
    assert_memory_equal(a, b, sizeof a);
    for (uint32_t i = 0; i < whole->n_tensors; i++) {
        assert_non_null(whole->params[i].value);
        assert_true(!drawn->params[i].value == !copied->params[i].value);
        released += !drawn->params[i].value;
    }
    assert_true(released > 0 && released < whole->n_tensors);
    rlhf__model_close(copied);
    rlhf__model_close(drawn);
    rlhf__model_close(whole);
}

static void weights_are_gone(void **state) {
    struct fixture *f = *state;
    struct rlhf__error why = {0, ""};
    struct rlhf__model *whole = open_model(f, RLHF__START_RANDOM, 0);
    struct rlhf__model *frozen = open_model(f, RLHF__START_RANDOM, 1);
    MUST(rlhf__params_write(whole, RLHF__PART_MODEL, RLHF_F32, NULL, f->file, &err));
    gone(rlhf__params_write(frozen, RLHF__PART_MODEL, RLHF_F32, NULL, f->copy, &why), &why);
    gone(rlhf__params_read_file(frozen, f->file, -1, &why), &why);
    gone(rlhf__params_copy(frozen, whole, &why), &why);
    gone(rlhf__params_copy(whole, frozen, &why), &why);
    gone(rlhf__params_draw(frozen, -1, &why), &why);
    assert_true(rlhf__model_refresh(frozen, &why) < 0);
    assert_non_null(strstr(why.text, "refresh()"));
    rlhf__model_close(frozen);
    rlhf__model_close(whole);
}

// Returns the device memory in use after a forward pass in training.
static uint64_t trained_bytes(struct fixture *f) {
    static const int32_t ids[N] = {65, 66, 67, 68, 69, 70}, offset[] = {0, N}, prompt_len[] = {2};
    const rlhf_batch b = {.size = sizeof b,
                          .n = 1,
                          .total = N,
                          .ids = ids,
                          .offset = offset,
                          .prompt_len = prompt_len};
    const rlhf_forward train = {.size = sizeof train, .heads = RLHF_HEAD_LOGP, .train = 1};
    const rlhf_heads none = {.size = sizeof none};
    struct rlhf__model *m = NULL;
    struct rlhf__model_spec spec = {
        .dir = f->dir, .role = "policy", .start = RLHF__START_RANDOM, .trainable = 1};
    MUST(rlhf__model_open(&f->session.models, &spec, &m, &err));
    MUST(rlhf__model_forward(m, &b, &train, &none, &err));
    const uint64_t bytes = m->compute->bytes_in_use(m->compute->ctx);
    rlhf__model_close(m);
    return bytes;
}

static void layers_are_computed_again(void **state) {
    struct fixture *f = *state;
    assert_int_equal(f->session.models.recompute, RLHF_RECOMPUTE_LAYER);
    const uint64_t less = trained_bytes(f);
    f->session.models.recompute = RLHF_RECOMPUTE_NONE;
    assert_true(less < trained_bytes(f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(filled_and_run, setup, teardown),
        cmocka_unit_test_setup_teardown(weights_are_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_are_computed_again, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
