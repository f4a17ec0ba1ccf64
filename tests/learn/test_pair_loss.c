// test_pair_loss.c: compares the host's loss of pairs with its formula and with finite differences.
// The loss of a minibatch must equal the sum over its microbatches.
#include "support/scratch.h"

#include "keep/reward_round.h"
#include <rlhf/test.h>

#include <math.h>

#define PAIRS 3

static const float rewards[2 * PAIRS] = {0.5f, -0.25f, -1.f, 2.f, 40.f, -60.f};

// Computes the loss of the pairs [from, to) as one microbatch of a minibatch of PAIRS. Stores the
// derivatives in `d`.
static double loss_of(struct rlhf__pair_loss *p, float *r, uint32_t from, uint32_t to, float *d) {
    struct rlhf__error err = {0};
    struct rlhf__objective o = rlhf__pair_objective(p);
    rlhf_head_values heads = {.size = sizeof heads, .score = r + 2 * from};
    rlhf_head_gradients grads = {.size = sizeof grads, .score = d + 2 * from};
    const rlhf_loss_in in = {
        .size = sizeof in, .n = 2 * (to - from), .batch_sequences = 2 * PAIRS, .heads = &heads};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &grads};
    check_ok(o.loss(o.self, &in, &out, &err), &err);
    return out.loss;
}

static double formula(void *rewards_of_pairs) {
    const float *r = rewards_of_pairs;
    double sum = 0;
    for (int i = 0; i < PAIRS; i++)
        sum += log1p(exp((double)r[2 * i + 1] - (double)r[2 * i]));
    return sum / PAIRS;
}

static void the_formula(void **state) {
    (void)state;
    struct rlhf__pair_loss p = {0};
    float r[2 * PAIRS], d[2 * PAIRS];
    memcpy(r, rewards, sizeof r);
    double loss = loss_of(&p, r, 0, PAIRS, d);
    assert_true(fabs(loss - formula(r)) < 1e-14);
    assert_true(p.loss == loss);
    assert_int_equal(p.pairs, PAIRS);
    assert_int_equal(p.right, 2); // the second pair is reversed
    assert_true(fabs(p.margin - (0.75 - 3 + 100)) < 1e-12);
    assert_true(rlhf_test_derivative(formula, r, r, d, 2 * PAIRS, 1.0 / 1024, NULL) < 1e-6);
}

static void even_rewards_are_ln_2(void **state) {
    (void)state;
    struct rlhf__pair_loss p = {0};
    float r[2 * PAIRS] = {3, 3, 3, 3, 3, 3}, d[2 * PAIRS];
    assert_true(fabs(loss_of(&p, r, 0, PAIRS, d) - 0.69314718055994531) < 1e-15);
    assert_int_equal(p.right, 0); // a tie is not right
    for (int i = 0; i < PAIRS; i++) {
        assert_true(fabs((double)d[2 * i] + 0.5 / PAIRS) < 1e-8);
        assert_true(d[2 * i] == -d[2 * i + 1]);
    }
}

static void microbatches_add_up(void **state) {
    (void)state;
    struct rlhf__pair_loss whole = {0}, parts = {0};
    float r[2 * PAIRS], a[2 * PAIRS], b[2 * PAIRS];
    memcpy(r, rewards, sizeof r);
    double all = loss_of(&whole, r, 0, PAIRS, a);
    double sum = loss_of(&parts, r, 0, 1, b) + loss_of(&parts, r, 1, PAIRS, b);
    assert_true(fabs(all - sum) < 1e-15);
    assert_int_equal(parts.pairs, PAIRS);
    assert_int_equal(parts.right, whole.right);
    assert_memory_equal(a, b, sizeof a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_formula),
        cmocka_unit_test(even_rewards_are_ln_2),
        cmocka_unit_test(microbatches_add_up),
    };
    return cmocka_run_group_tests_name("learn/pair_loss", tests, NULL, NULL);
}
