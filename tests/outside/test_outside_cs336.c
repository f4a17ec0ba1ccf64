// test_outside_cs336.c: checks against constants from Stanford CS336's alignment assignment (its
// tests/_snapshots). They are the group advantages of 2 x 4 rewards, with the unbiased standard
// deviation and eps 1e-6.
#include "outside/outside.h"

#include "common/advantage.h"

static const double reward[8] = {0.2, 0.5, 0, 0.4, 0.9, 0.7, 0.2, 0};
static const int32_t group[8] = {0, 0, 0, 0, 1, 1, 1, 1};

static void scaled(void **state) {
    (void)state;
    static const double want[8] = {-0.3382392, 1.0147176, -1.2402104, 0.563732,
                                   1.0706171,  0.5947873, -0.5947872, -1.0706171};
    int64_t order[8];
    double adv[8];
    struct rlhf__group_stats s = rlhf__group_normalize(reward, group, 8, 1e-6, 1, 1, order, adv);
    published_row(adv, want, 8, 4e-7); // the published numbers are f32
    assert_int_equal(s.groups, 2);
    assert_int_equal(s.zero, 0);
}

static void not_scaled(void **state) {
    (void)state;
    static const double want[8] = {-0.075, 0.225, -0.275, 0.125, 0.45, 0.25, -0.25, -0.45};
    int64_t order[8];
    double adv[8];
    rlhf__group_normalize(reward, group, 8, 1e-6, 1, 0, order, adv);
    published_row(adv, want, 8, 1e-9);
}

// The rows of a group need not be adjacent.
static void dealt_in_turn(void **state) {
    (void)state;
    double mixed[8], adv[8], want[8];
    int32_t turn[8];
    int64_t order[8];
    for (int i = 0; i < 8; i++) {
        mixed[i] = reward[i % 2 * 4 + i / 2];
        turn[i] = i % 2;
    }
    rlhf__group_normalize(reward, group, 8, 1e-6, 1, 1, order, want);
    rlhf__group_normalize(mixed, turn, 8, 1e-6, 1, 1, order, adv);
    for (int i = 0; i < 8; i++)
        assert_true(adv[i] == want[i % 2 * 4 + i / 2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaled),
        cmocka_unit_test(not_scaled),
        cmocka_unit_test(dealt_in_turn),
    };
    return cmocka_run_group_tests_name("outside_cs336", tests, NULL, NULL);
}
