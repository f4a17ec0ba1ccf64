// test_layout_json.c: layout.json, which is installed with the SDK, has the offsets and constants
// of the headers.
#include "support/check.h"

#include <rlhf/algo.h>
#include <rlhf/environment.h>
#include <rlhf/reward.h>
#include <rlhf/service.h>
#include <rlhf/sink.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static json_t *layout;

static int setup(void **state) {
    char path[1024];
    (void)state;
    snprintf(path, sizeof path, "%s/sdk/layout.json", getenv("RLHF_BUILD_DIR"));
    layout = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    return layout ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    json_decref(layout);
    return 0;
}

static const json_t *struct_of(const char *name) {
    const json_t *s = json_object_get(json_object_get(layout, "structs"), name);
    if (!s) fail_msg("no struct %s", name);
    return s;
}

static void member_is(const char *of, const char *name, size_t offset, size_t bytes) {
    size_t i;
    json_t *m;
    json_array_foreach(json_object_get(struct_of(of), "members"), i, m) {
        if (strcmp(json_string_value(json_object_get(m, "name")), name) != 0) continue;
        assert_int_equal(json_integer_value(json_object_get(m, "offset")), offset);
        assert_int_equal(json_integer_value(json_object_get(m, "bytes")), bytes);
        return;
    }
    fail_msg("%s has no member %s", of, name);
}

#define MEMBER(T, f) member_is(#T, #f, offsetof(T, f), sizeof(((T *)0)->f))

static void members(void **state) {
    (void)state;
    MEMBER(rlhf_plugin, ops);
    MEMBER(rlhf_plugin, state_version);
    MEMBER(rlhf_bundle, built_with);
    MEMBER(rlhf_opt, key);
    MEMBER(rlhf_host, metric);
    MEMBER(rlhf_reward_in, response);
    MEMBER(rlhf_reward_out, failed);
    MEMBER(rlhf_reward_ops, score);
    MEMBER(rlhf_plan, divergence_beta);
    MEMBER(rlhf_loss_in, advantage);
    MEMBER(rlhf_algo_ops, loss);
    MEMBER(rlhf_sink_phase, value);
    MEMBER(rlhf_environment_ops, step);
    MEMBER(rlhf_str, len);
}

#define BYTES(T)                                                                                   \
    assert_int_equal(json_integer_value(json_object_get(struct_of(#T), "bytes")), sizeof(T))

static void sizes(void **state) {
    (void)state;
    BYTES(rlhf_plugin);
    BYTES(rlhf_bundle);
    BYTES(rlhf_host);
    BYTES(rlhf_opt);
    BYTES(rlhf_reward_in);
    BYTES(rlhf_loss_in);
    assert_true(json_is_true(json_object_get(struct_of("rlhf_plugin"), "frozen")));
    assert_true(json_is_false(json_object_get(struct_of("rlhf_compute"), "frozen")));
}

static void constants(void **state) {
    (void)state;
    const json_t *c = json_object_get(layout, "constants");
#define NUMBER(name) assert_int_equal(json_integer_value(json_object_get(c, #name)), name)
    NUMBER(RLHF_ABI_MAJOR);
    NUMBER(RLHF_KIND_SINK);
    NUMBER(RLHF_E_CANCELLED);
    NUMBER(RLHF_SOURCE_COMPLETIONS);
    NUMBER(RLHF_VERDICT_WRONG);
    NUMBER(RLHF_REWARD_FUNCTION);
    NUMBER(RLHF_METRIC_NAME_MAX);
    assert_string_equal(json_string_value(json_object_get(c, "RLHF_SVC_ROW")), RLHF_SVC_ROW);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(members), cmocka_unit_test(sizes),
                                       cmocka_unit_test(constants)};
    return cmocka_run_group_tests_name("layout.json", tests, setup, teardown);
}
