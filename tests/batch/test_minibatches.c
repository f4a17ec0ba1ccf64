// test_minibatches.c: divides a batch into minibatches. Every epoch uses every row once, groups
// stay whole if required, and the order depends only on seed, phase and epoch.
#include "support/scratch.h"

#include "batch/minibatches.h"

// Makes rows of one token in the listed groups; -1 ends the list.
static void make_rows(struct rlhf__rows *e, const int32_t *groups) {
    struct rlhf__error err = {0};
    uint32_t n = 0;
    while (groups[n] >= 0)
        n++;
    check_ok(rlhf__rows_init(e, n, n, &err), &err);
    for (uint32_t i = 0; i < n; i++) {
        e->offset[i + 1] = (int32_t)i + 1;
        e->group[i] = groups[i];
    }
}

// Checks that each row is in one minibatch; returns the size of the largest.
static uint32_t check_partition(struct rlhf__minibatches *m, const struct rlhf__rows *e) {
    uint32_t seen[32] = {0}, most = 0;
    for (uint32_t k = 0; k < m->parts; k++) {
        uint32_t n = rlhf__minibatches_pick(m, k);
        for (uint32_t i = 0; i < n; i++)
            seen[m->pick[i]]++;
        if (n > most) most = n;
    }
    for (uint32_t i = 0; i < e->n; i++)
        assert_int_equal(seen[i], 1);
    return most;
}

static void every_row_is_used_once(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    struct rlhf__rows e;
    struct rlhf__minibatches m;
    make_rows(&e, (int32_t[]){0, 1, 2, 3, 4, 5, 6, -1});
    check_ok(rlhf__minibatches_init(&m, &e, 3, 0, 0, &err), &err);
    assert_int_equal(m.parts, 3);
    for (uint32_t epoch = 0; epoch < 4; epoch++) {
        rlhf__minibatches_shuffle(&m, 7, 2, epoch);
        assert_int_equal(check_partition(&m, &e), 3); // 2, 2 and 3 rows
    }
    rlhf__minibatches_finish(&m);
    rlhf__rows_finish(&e);
}

static void groups_stay_whole(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    struct rlhf__rows e;
    struct rlhf__minibatches m;
    make_rows(&e, (int32_t[]){5, 5, 5, 8, 8, 2, 2, 2, 2, -1});
    check_ok(rlhf__minibatches_init(&m, &e, 3, 0, 1, &err), &err);
    assert_int_equal(m.units, 3);
    rlhf__minibatches_shuffle(&m, 1, 0, 0);
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t n = rlhf__minibatches_pick(&m, k);
        for (uint32_t i = 1; i < n; i++) {
            assert_int_equal(e.group[m.pick[i]], e.group[m.pick[0]]);
            assert_int_equal(m.pick[i], m.pick[i - 1] + 1);
        }
    }
    check_partition(&m, &e);
    rlhf__minibatches_finish(&m);
    // If there are fewer groups than minibatches, single rows are distributed. But if groups must
    // be whole, there are fewer minibatches.
    check_ok(rlhf__minibatches_init(&m, &e, 4, 1, 1, &err), &err);
    assert_int_equal(m.parts, 3);
    rlhf__minibatches_finish(&m);
    check_ok(rlhf__minibatches_init(&m, &e, 4, 0, 1, &err), &err);
    assert_int_equal(m.parts, 4);
    assert_int_equal(m.units, 9);
    rlhf__minibatches_shuffle(&m, 1, 0, 0);
    check_partition(&m, &e);
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t n = rlhf__minibatches_pick(&m, k), i = 1; i < n; i++)
            assert_true(m.pick[i - 1] < m.pick[i]); // ascending
    rlhf__minibatches_finish(&m);
    rlhf__rows_finish(&e);
}

static void the_order_has_a_key(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    struct rlhf__rows e;
    struct rlhf__minibatches m;
    uint32_t first[16];
    make_rows(&e, (int32_t[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1});
    check_ok(rlhf__minibatches_init(&m, &e, 1, 0, 0, &err), &err);
    assert_int_equal(rlhf__minibatches_pick(&m, 0), 12);
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(m.pick[i], i); // not shuffled yet
    const struct {
        uint64_t seed;
        int64_t phase;
        uint32_t epoch;
        int same;
    } key[] = {{3, 1, 2, 1}, {4, 1, 2, 0}, {3, 2, 2, 0}, {3, 1, 3, 0}, {3, 1, 2, 1}};
    rlhf__minibatches_shuffle(&m, 3, 1, 2);
    rlhf__minibatches_pick(&m, 0);
    memcpy(first, m.pick, sizeof(uint32_t) * 12);
    for (size_t i = 0; i < CHECK_COUNT(key); i++) {
        rlhf__minibatches_shuffle(&m, key[i].seed, key[i].phase, key[i].epoch);
        rlhf__minibatches_pick(&m, 0);
        assert_int_equal(memcmp(first, m.pick, sizeof(uint32_t) * 12) == 0, key[i].same);
    }
    rlhf__minibatches_finish(&m);
    rlhf__rows_finish(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_used_once),
        cmocka_unit_test(groups_stay_whole),
        cmocka_unit_test(the_order_has_a_key),
    };
    return cmocka_run_group_tests_name("batch/minibatches", tests, NULL, NULL);
}
