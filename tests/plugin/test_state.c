// test_state.c: a plugin's state is saved to a block and loaded from it. Damaged blocks are
// refused.
#include "plugin/modules.h"

#include "plugin/services.h"

struct fixture {
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    struct rlhf__services services;
    struct rlhf__instance *sample, *algo;
    struct rlhf__buf block;
};

static const struct rlhf__origin from = {"test", "", NULL, 0, 0};

static struct rlhf__instance *make(struct fixture *f, const char *module, int32_t kind) {
    const struct rlhf__plugin *p;
    struct rlhf__instance *i;
    struct rlhf__error err = {0};
    char path[1024];
    json_t *o = kind == RLHF_KIND_ALGO ? json_pack("{sf}", "rate", 0.5) : NULL;
    check_ok(rlhf__plugin_open(f->plugins, module_path(module, path), kind, RLHF__NAME_TYPED,
                               "test", &p, &err),
             &err);
    check_ok(rlhf__instance_open(p, &f->services, "rewards/sample", o, &from, &i, &err), &err);
    json_decref(o);
    return i;
}

static int64_t *calls(struct rlhf__instance *i) {
    return (int64_t *)((char *)i->self + 2 * sizeof(void *)); // struct self of sample.c
}

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    struct rlhf__error err = {0};
    if (!f) return -1;
    f->services.phase = -1;
    f->plugins = loader(&f->dirs, "/nowhere");
    f->sample = make(f, "sample.so", RLHF_KIND_REWARD);
    f->algo = make(f, "algo.so", RLHF_KIND_ALGO);
    *calls(f->sample) = 41;
    *state = f;
    return rlhf__instance_save(f->sample, &f->block, &err);
}

static int teardown(void **state) {
    struct fixture *f = *state;
    rlhf__instance_close(f->sample);
    rlhf__instance_close(f->algo);
    rlhf__plugins_close(f->plugins);
    rlhf__buf_finish(&f->block);
    free(f);
    return 0;
}

static void it_comes_back_and_saves_the_same(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__buf again = RLHF__BUF_INIT;
    *calls(f->sample) = 0;
    check_ok(rlhf__instance_load(f->sample, f->block.data, f->block.len, &err), &err);
    assert_int_equal(*calls(f->sample), 41);
    check_ok(rlhf__instance_save(f->sample, &again, &err), &err);
    assert_int_equal(again.len, f->block.len);
    assert_memory_equal(again.data, f->block.data, again.len);
    rlhf__buf_finish(&again);
}

static void every_damaged_byte_is_seen(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    for (size_t i = 0; i < f->block.len; i++) {
        f->block.data[i] = (char)(f->block.data[i] ^ 4);
        assert_int_equal(rlhf__instance_load(f->sample, f->block.data, f->block.len, &err),
                         RLHF_E_INVALID);
        f->block.data[i] = (char)(f->block.data[i] ^ 4);
    }
    for (size_t n = 0; n < f->block.len; n++) {
        char *cut = malloc(n ? n : 1);
        memcpy(cut, f->block.data, n);
        rlhf_status st = rlhf__instance_load(f->sample, cut, n, &err);
        free(cut);
        assert_int_equal(st, RLHF_E_INVALID);
    }
}

static void plugins_without_state_have_none(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__buf b = RLHF__BUF_INIT;
    check_ok(rlhf__instance_save(f->algo, &b, &err), &err);
    assert_int_equal(b.len, 0);
    check_ok(rlhf__instance_load(f->algo, NULL, 0, &err), &err);
    check_error(rlhf__instance_load(f->algo, f->block.data, f->block.len, &err), RLHF_E_INVALID,
                &err, "algo.so keeps none");
    assert_ptr_equal(f->algo->self, f->algo->config); // without create()
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(it_comes_back_and_saves_the_same),
        T(every_damaged_byte_is_seen),
        T(plugins_without_state_have_none),
    };
    return cmocka_run_group_tests_name("plugin_state", tests, NULL, NULL);
}
