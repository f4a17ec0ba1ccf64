// test_shards.c: minibatches that are divided into shards. The gradients of the shards are added in
// the order of the tree. The loss and the counts are also kept for each shard.
#include "learner_kit.h"

#include "learn/shards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- gradients ----

// Runs the rows [from, to) alone as a minibatch without shards.
static struct result *run_rows(struct fixture *f, uint32_t from, uint32_t to) {
    struct result *r = calloc(1, sizeof *r);
    struct rlhf__rows part = {0};
    uint32_t pick[ROWS];
    assert_non_null(r);
    for (uint32_t i = from; i < to; i++)
        pick[i - from] = i;
    MUST(rlhf__rows_pick(&part, &f->e, pick, to - from, &err));
    memset(&f->seen, 0, sizeof f->seen);
    MUST(rlhf__minibatch(&f->learner, &part, 0, 0, 0, &f->stop, &err));
    rlhf__rows_finish(&part);
    r->loss = f->learner.last_loss;
    learner_collect(r, f, f->optim);
    if (f->critic_optim) learner_collect(r, f, f->critic_optim);
    return r;
}

// Adds n shards in the order of the tree. n must be a power of two.
static float tree_sum(struct result *const *part, uint32_t n, size_t i) {
    if (n == 1) return part[0]->grad[i];
    return tree_sum(part, n / 2, i) + tree_sum(part + n / 2, n / 2, i);
}

// All rows have the same length. So a shard's gradient is the gradient of a minibatch with only its
// rows, divided by the number of shards. This number is a power of two, so the division is exact.
// With `whole` 0, each microbatch has one row.
static void check_sums(struct fixture *f, const char *backend, uint32_t shards, int critic,
                       int whole) {
    const int64_t tokens = whole ? 0 : 1;
    struct result *part[ROWS];
    f->share = (struct rlhf__share){0};
    learner_open(f, backend, RLHF__DTYPE_F32, 2, critic);
    f->learner.microbatch_tokens = tokens;
    for (uint32_t s = 0; s < shards; s++)
        part[s] = run_rows(f, s * ROWS / shards, (s + 1) * ROWS / shards);
    f->share.shards = shards;
    learner_open(f, backend, RLHF__DTYPE_F32, 2, critic);
    struct result *got = learner_run(f, 0, tokens, whole ? (int)shards : ROWS);
    const float scale = 1 / (float)shards;
    double loss = 0;
    for (uint32_t s = 0; s < shards; s++)
        loss += part[s]->loss / shards;
    assert_true(fabs(loss - got->loss) <= 1e-14 * fabs(loss));
    assert_int_equal(got->n, part[0]->n);
    for (size_t i = 0; i < got->n; i++) {
        double exact = 0, size = 0;
        for (uint32_t s = 0; s < shards; s++) {
            exact += (double)part[s]->grad[i] / shards;
            size += fabs((double)part[s]->grad[i]) / shards;
        }
        if (got->grad[i] != scale * tree_sum(part, shards, i))
            fail_msg("%u shards: element %zu is %.9g, not %.9g", shards, i, (double)got->grad[i],
                     (double)(scale * tree_sum(part, shards, i)));
        assert_true(fabs((double)got->grad[i] - exact) <= 3 * 6e-8 * size); // 3 levels
    }
    learner_result_free(got);
    for (uint32_t s = 0; s < shards; s++)
        learner_result_free(part[s]);
    f->share.shards = 0;
}

static void gradients_are_added_in_the_tree(void **state) {
    struct fixture *f = *state;
    for (uint32_t shards = 2; shards <= ROWS; shards *= 2)
        for (int critic = 0; critic < 2; critic++)
            check_sums(f, "cpu", shards, critic, 1);
    check_sums(f, "cpu", 2, 0, 0);
    check_sums(f, "cpu", 4, 0, 0);
    check_sums(f, "reference", 4, 0, 1);
}

// The results equal those of the whole minibatch up to rounding, with and without shared prompts.
static void any_number_is_near_one(void **state) {
    struct fixture *f = *state;
    learner_open(f, "cpu", RLHF__DTYPE_F32, 2, 0);
    struct result *one = learner_run(f, 1, 0, 1);
    static const struct {
        uint32_t shards;
        int share, calls;
    } cases[] = {{2, 1, 2}, {3, 0, 3}, {4, 1, 4}, {8, 0, 8}, {12, 0, 8}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        f->share.shards = cases[k].shards;
        learner_open(f, "cpu", RLHF__DTYPE_F32, 2, 0);
        struct result *r = learner_run(f, cases[k].share, 0, cases[k].calls);
        learner_same_heads(&one->seen, &r->seen);
        assert_true(fabs(one->loss - r->loss) <= 1e-12 * fabs(one->loss));
        learner_close_gradients(one, r, 1e-6);
        learner_result_free(r);
    }
    f->share.shards = 0;
    learner_result_free(one);
}

// Gradients in separate buffers, as in a model without one range for all gradients.
static void without_a_range(void **state) {
    struct fixture *f = *state;
    struct result *r[2];
    f->share.shards = 4;
    for (int k = 0; k < 2; k++) {
        f->no_range = k;
        learner_open(f, "cpu", RLHF__DTYPE_F32, 2, 0);
        r[k] = learner_run(f, 0, 0, 4);
    }
    f->no_range = 0;
    f->share.shards = 0;
    assert_memory_equal(r[0]->grad, r[1]->grad, r[0]->n * sizeof *r[0]->grad);
    learner_result_free(r[0]);
    learner_result_free(r[1]);
}

// Backends without add_all: the host calls add, copy and zero, with the same bits.
static void without_add_all(void **state) {
    struct fixture *f = *state;
    struct result *r[2];
    f->share.shards = 7;
    for (int k = 0; k < 2; k++) {
        learner_open(f, "cpu", RLHF__DTYPE_F32, 2, 0);
        const rlhf_compute *whole = f->learner.model->compute;
        rlhf_compute without = *whole;
        without.add_all = NULL;
        if (k) f->learner.shards->sums.compute = &without;
        r[k] = learner_run(f, 0, 0, 7);
        f->learner.shards->sums.compute = whole;
    }
    f->share.shards = 0;
    assert_memory_equal(r[0]->grad, r[1]->grad, r[0]->n * sizeof *r[0]->grad);
    learner_result_free(r[0]);
    learner_result_free(r[1]);
}

// ---- numbers ----

static rlhf_status shard_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    uint32_t *rows = self;
    rows[in->shard] += in->n;
    out->loss = in->shard == 0 ? 1e17 : in->shard == 3 ? -1e17 : 1;
    return RLHF_OK;
}

// Rows that do not train belong to shards, too. Each counts in the numbers of its own shard.
static void numbers_are_kept_for_each_shard(void **state) {
    struct fixture *f = *state;
    uint32_t rows[4] = {0};
    f->share.shards = 4;
    learner_open(f, "cpu", RLHF__DTYPE_F32, 2, 0);
    f->plugin.ops.algo.loss = shard_loss;
    f->algo.self = rows;
    f->plugin.ops.algo.minibatch_end = NULL;
    for (int i = 0; i < 4; i++)
        f->e.use[2 * i + 1] = RLHF_USE_NO_GRADIENT;
    rlhf__learner_begin(&f->learner);
    rlhf__learner_expect(&f->learner, 1, ROWS, 1);
    MUST(rlhf__minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
    for (int i = 0; i < 4; i++)
        assert_int_equal(rows[i], 2);
    // ((1e17 + 1e17) + (1 + 1)) + (1 + 1) + (-2e17); the four are lost against 2e17
    assert_true(f->learner.last_loss == ((2e17 + 2) + 2) - 2e17);
    assert_int_equal(f->learner.tokens, TOTAL);
    assert_int_equal(f->learner.compared, ROWS * RESPONSE);
    assert_int_equal(f->learner.rows, ROWS);
    f->algo.self = &f->seen;
    f->share.shards = 0;
}

// If all rows of a minibatch are excluded, it is only compared. The step then has a gradient of 0.
static void excluded_rows(void **state) {
    struct fixture *f = *state;
    f->share.shards = 4;
    learner_open(f, "cpu", RLHF__DTYPE_F32, 2, 0);
    memset(f->e.use, RLHF_USE_EXCLUDED, ROWS);
    rlhf__learner_begin(&f->learner);
    rlhf__learner_expect(&f->learner, 1, ROWS, 1);
    MUST(rlhf__minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
    assert_int_equal(f->learner.compared, ROWS * RESPONSE);
    assert_true(f->learner.last.grad_norm == 0);
    assert_int_equal(f->learner.asked, 0);
    f->share.shards = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_added_in_the_tree),
                                       cmocka_unit_test(any_number_is_near_one),
                                       cmocka_unit_test(without_a_range),
                                       cmocka_unit_test(without_add_all),
                                       cmocka_unit_test(numbers_are_kept_for_each_shard),
                                       cmocka_unit_test(excluded_rows)};
    return cmocka_run_group_tests_name("learn/shards", tests, learner_setup, learner_teardown);
}
