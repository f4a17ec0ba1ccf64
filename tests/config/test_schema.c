// test_schema.c: the host's own tables are valid, and shipped configs load.
#include "support/scratch.h"

#include "config/schema.h"

#include <rlhf/compute.h>
#include <rlhf/model.h>

static void every_table_is_sound(void **state) {
    (void)state;
    size_t n;
    const struct rlhf__section *s = rlhf__sections(&n);
    assert_true(n >= 16);
    for (size_t i = 0; i < n; i++) {
        struct rlhf__error err = {0};
        if (rlhf__opts_check(&s[i].table, s[i].size, &err) < 0)
            fail_msg("%s: %s", s[i].name, err.text);
        assert_true(s[i].offset + s[i].size <= sizeof(struct rlhf__config));
        for (uint32_t k = 0; k < s[i].table.n; k++) {
            assert_non_null(s[i].table.opts[k].help);
            // Strings of host sections are never NULL.
            if (s[i].table.opts[k].type == RLHF_T_STR || s[i].table.opts[k].type == RLHF_T_PATH)
                assert_non_null(s[i].table.opts[k].s_def);
        }
    }
}

// Index of a choice of section.key.
static int64_t choice(const char *section, const char *key, const char *name) {
    size_t n;
    const struct rlhf__section *s = rlhf__sections(&n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(s[i].name, section) != 0) continue;
        rlhf_opt o;
        int32_t at = rlhf__opt_find(&s[i].table, key);
        assert_true(at >= 0);
        rlhf__opt_at(&s[i].table, (uint32_t)at, &o);
        for (int64_t k = 0; o.choices[k]; k++)
            if (strcmp(o.choices[k], name) == 0) return k;
    }
    return -1;
}

// Choices are stored as numbers, which must equal those of the SDK's enums.
static void choices_are_the_sdks_numbers(void **state) {
    (void)state;
    assert_int_equal(choice("value", "kind", "none"), RLHF_VALUE_NONE);
    assert_int_equal(choice("value", "kind", "linear"), RLHF_VALUE_LINEAR);
    assert_int_equal(choice("value", "kind", "mlp"), RLHF_VALUE_MLP);
    assert_int_equal(choice("value", "init", "orthogonal"), RLHF_VALUE_INIT_ORTHOGONAL);
    assert_int_equal(choice("value", "init", "normal"), RLHF_VALUE_INIT_NORMAL);
    assert_int_equal(choice("score", "pooling", "mean"), RLHF_POOL_MEAN);
    assert_int_equal(choice("score", "pooling", "first"), RLHF_POOL_FIRST);
    assert_int_equal(choice("score", "pooling", "last"), RLHF_POOL_LAST);
    assert_int_equal(choice("optim", "epsilon", "torch"), RLHF_ADAM_TORCH);
    assert_int_equal(choice("optim", "epsilon", "tf1"), RLHF_ADAM_TF1);
    assert_int_equal(choice("compute", "dtype", "bf16"), RLHF__DTYPE_BF16);
    assert_int_equal(choice("log", "level", "error"), RLHF_LOG_ERROR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_is_sound),
        cmocka_unit_test(choices_are_the_sdks_numbers),
    };
    return cmocka_run_group_tests_name("config_schema", tests, NULL, NULL);
}
