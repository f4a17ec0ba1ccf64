// test_order.c: permutations by pass, and the cursor that a checkpoint keeps.
#include "support/scratch.h"

#include "data/order.h"

enum { N = 97 };

static struct rlhf__order make(uint64_t seed, const char *stream, int shuffle) {
    struct rlhf__order o;
    struct rlhf__error err = {0};
    check_ok(rlhf__order_init(&o, N, seed, stream, shuffle, &err), &err);
    return o;
}

static void take_pass(struct rlhf__order *o, int64_t out[N]) {
    for (int i = 0; i < N; i++)
        out[i] = rlhf__order_next(o);
}

static void every_pass_is_another_permutation(void **state) {
    (void)state;
    struct rlhf__order o = make(1, "data", 1);
    int64_t pass[3][N];
    for (int p = 0; p < 3; p++) {
        int seen[N] = {0}, moved = 0;
        take_pass(&o, pass[p]);
        for (int i = 0; i < N; i++) {
            assert_in_range(pass[p][i], 0, N - 1);
            assert_int_equal(seen[pass[p][i]]++, 0);
            moved += pass[p][i] != i;
        }
        assert_true(moved > N / 2);
    }
    assert_memory_not_equal(pass[0], pass[1], sizeof pass[0]);
    assert_memory_not_equal(pass[1], pass[2], sizeof pass[0]);
    assert_true(rlhf__order_epoch(&o) == 3.0);
    rlhf__order_finish(&o);
}

static void seed_and_stream_matter(void **state) {
    (void)state;
    int64_t a[N], b[N], c[N], d[N];
    struct rlhf__order o[4] = {make(1, "data", 1), make(1, "data", 1), make(2, "data", 1),
                               make(1, "prompts", 1)};
    take_pass(&o[0], a);
    take_pass(&o[1], b);
    take_pass(&o[2], c);
    take_pass(&o[3], d);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    assert_memory_not_equal(a, d, sizeof a);
    for (int i = 0; i < 4; i++)
        rlhf__order_finish(&o[i]);
}

static void a_cursor_resumes(void **state) {
    (void)state;
    for (int stop = 0; stop < 3 * N; stop += 13) {
        struct rlhf__order a = make(5, "data", 1), b = make(5, "data", 1);
        struct rlhf__error err = {0};
        for (int i = 0; i < stop; i++)
            rlhf__order_next(&a);
        check_ok(rlhf__order_seek(&b, a.pass, a.pos, &err), &err);
        for (int i = 0; i < N; i++)
            assert_int_equal(rlhf__order_next(&a), rlhf__order_next(&b));
        rlhf__order_finish(&a);
        rlhf__order_finish(&b);
    }
}

static void file_order(void **state) {
    (void)state;
    struct rlhf__order o = make(1, "data", 0);
    for (int i = 0; i < 2 * N; i++)
        assert_int_equal(rlhf__order_next(&o), i % N);
    rlhf__order_finish(&o);
}

static void bad_arguments(void **state) {
    (void)state;
    struct rlhf__order o;
    struct rlhf__error err = {0};
    check_error(rlhf__order_init(&o, 0, 1, "data", 1, &err), RLHF_E_INVALID, &err, "0 rows");
    o = make(1, "data", 1);
    check_error(rlhf__order_seek(&o, 0, N, &err), RLHF_E_INVALID, &err, "the data has changed");
    check_error(rlhf__order_seek(&o, 0, -1, &err), RLHF_E_INVALID, &err, "row -1");
    rlhf__order_finish(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_is_another_permutation),
        cmocka_unit_test(seed_and_stream_matter),
        cmocka_unit_test(a_cursor_resumes),
        cmocka_unit_test(file_order),
        cmocka_unit_test(bad_arguments),
    };
    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
