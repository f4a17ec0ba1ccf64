// test_learner.c: a minibatch through model, loss and optimizer gives the same numbers with and
// without shared prompts, and for every split into microbatches.
#include "learner_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A group of 4 costs 9 + 6 + 3 * 7 = 36 tokens with a shared prompt, and 60 without.
static void sharing_gives_the_same(void **state) {
    struct fixture *f = *state;
    for (int critic = 0; critic < 2; critic++) {
        learner_open(f, "cpu", RLHF__DTYPE_F32, 2, critic);
        struct result *off = learner_run(f, 0, 0, 1), *on = learner_run(f, 1, 0, 1);
        assert_int_equal(off->tokens, TOTAL);
        assert_int_equal(on->tokens, 72);
        learner_same_heads(&off->seen, &on->seen);
        assert_true(off->loss == on->loss);
        learner_close_gradients(off, on, 1e-6);
        learner_result_free(off);
        learner_result_free(on);
    }
}

static void heads_have_the_same_bits(void **state) {
    struct fixture *f = *state;
    static const char *const backends[] = {"cpu", "reference"};
    for (int k = 0; k < 4; k++) {
        learner_open(f, backends[k / 2], k % 2 ? RLHF__DTYPE_BF16 : RLHF__DTYPE_F32, 1 + k % 2, 0);
        struct result *off = learner_run(f, 0, 0, 1), *on = learner_run(f, 1, 0, 1),
                      *two = learner_run(f, 1, 36, 2);
        learner_same_heads(&off->seen, &on->seen);
        learner_same_heads(&off->seen, &two->seen);
        learner_result_free(off);
        learner_result_free(on);
        learner_result_free(two);
    }
}

static void microbatches_do_not_matter(void **state) {
    struct fixture *f = *state;
    static const struct {
        int share, calls;
        int64_t tokens;
    } cases[] = {{1, 2, 36}, {1, 8, 15}, {1, 4, 22}, {1, 3, 30}, {0, 1, 0}, {0, 2, 60}, {0, 8, 15}};
    learner_open(f, "cpu", RLHF__DTYPE_F32, 2, 0);
    struct result *whole = learner_run(f, 1, 72, 1);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct result *r = learner_run(f, cases[k].share, cases[k].tokens, cases[k].calls);
        learner_same_heads(&whole->seen, &r->seen);
        assert_true(fabs(whole->loss - r->loss) <= 1e-12 * fabs(whole->loss));
        learner_close_gradients(whole, r, 1e-6);
        learner_result_free(r);
    }
    learner_result_free(whole);
}

static void threads_do_not_matter(void **state) {
    struct fixture *f = *state;
    static const int32_t dtypes[] = {RLHF__DTYPE_F32, RLHF__DTYPE_BF16};
    for (int k = 0; k < 2; k++) {
        learner_open(f, "cpu", dtypes[k], 1, 0);
        struct result *one = learner_run(f, 1, 36, 2);
        learner_open(f, "cpu", dtypes[k], 2, 0);
        struct result *two = learner_run(f, 1, 36, 2);
        assert_int_equal(one->n, two->n);
        assert_memory_equal(one->grad, two->grad, one->n * sizeof *one->grad);
        learner_result_free(one);
        learner_result_free(two);
    }
}

// Values and hidden states of prompt tokens are compared, too, because the full KL needs the hidden
// states of the reference.
static void passes_have_the_same_bits(void **state) {
    struct fixture *f = *state;
    static const int32_t dtypes[] = {RLHF__DTYPE_F32, RLHF__DTYPE_BF16};
    for (int k = 0; k < 2; k++) {
        learner_open(f, "cpu", dtypes[k], 2, 0);
        size_t d = (size_t)f->policy->info.d_model, cells = TOTAL * (2 + d);
        float *x[3];
        for (int i = 0; i < 3; i++) {
            x[i] = calloc(cells, sizeof **x);
            assert_non_null(x[i]);
            struct rlhf__pass_out out = {
                .logp = x[i], .value = x[i] + TOTAL, .hidden = x[i] + 2 * TOTAL};
            f->e.flags = i > 0 ? RLHF__SHARE_PROMPTS : 0;
            MUST(rlhf__pass(f->policy, &f->e, &f->learner.dist, i == 2 ? 23 : 0, &out, &err));
        }
        assert_memory_equal(x[0], x[1], cells * sizeof **x);
        assert_memory_equal(x[0], x[2], cells * sizeof **x);
        for (int i = 0; i < 3; i++)
            free(x[i]);
    }
}

static void a_model_that_cannot_share_gets_full_rows(void **state) {
    struct fixture *f = *state;
    learner_open(f, "cpu", RLHF__DTYPE_F32, 1, 1);
    f->critic->info.caps &= ~(uint32_t)RLHF_CAP_PREFIX;
    learner_result_free(learner_run(f, 1, 60, 2));
    assert_int_equal(f->learner.tokens, TOTAL);
    f->critic->info.caps |= RLHF_CAP_PREFIX;
    f->policy->info.caps &= ~(uint32_t)RLHF_CAP_PREFIX;
    learner_result_free(learner_run(f, 1, 60, 2));
    assert_int_equal(f->learner.tokens, TOTAL);
}

// ---- the algorithm's inputs ----

// Besides the log-probs for the ratio, the algorithm gets the sampler's log-probs and the version
// of the sampler's weights. Rows of a file have neither.
static void who_drew_the_rows(void **state) {
    struct fixture *f = *state;
    learner_open(f, "cpu", RLHF__DTYPE_F32, 1, 0);
    f->e.flags = RLHF__DRAWN;
    f->learner.microbatch_tokens = 60;
    f->optim->count.step = 7;
    for (int32_t t = 0; t < TOTAL; t++) {
        f->e.token[RLHF__LOGP_OLD][t] = (float)-t;
        f->e.token[RLHF__LOGP_SAMPLED][t] = (float)(-t - 1000);
    }
    for (int32_t i = 0; i < ROWS; i++)
        f->e.version[i] = i / 2;
    memset(&f->seen, 0, sizeof f->seen);
    MUST(rlhf__minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
    assert_memory_equal(f->seen.old, f->e.token[RLHF__LOGP_OLD], sizeof f->seen.old);
    assert_memory_equal(f->seen.sampled, f->e.token[RLHF__LOGP_SAMPLED], sizeof f->seen.sampled);
    assert_memory_equal(f->seen.version, f->e.version, sizeof f->seen.version);
    assert_int_equal(f->seen.steps, 7);
    uint32_t pick[] = {5, 2};
    struct rlhf__rows part = {0};
    MUST(rlhf__rows_pick(&part, &f->e, pick, 2, &err));
    assert_true(part.flags & RLHF__DRAWN);
    assert_int_equal(part.version[0], 2);
    assert_int_equal(part.version[1], 1);
    rlhf__rows_finish(&part);
    f->e.flags = 0;
    memset(&f->seen, 0, sizeof f->seen);
    MUST(rlhf__minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
    assert_int_equal(f->seen.steps, 8);
    assert_true(f->seen.sampled[TOTAL - 1] == 0);
}

// The algorithm gets the reference's log-probs if the plan asks for them. It also gets them with
// the exact KL, which needs the reference.
static void what_the_reference_says(void **state) {
    struct fixture *f = *state;
    static const struct {
        uint32_t without, flags; // heads that are not planned
        int there;
    } cases[] = {{0, 0, 1},
                 {RLHF_HEAD_KL, 0, 0},
                 {RLHF_HEAD_KL, RLHF_PLAN_REFERENCE, 1},
                 {0, RLHF_PLAN_REFERENCE, 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        learner_open(f, "cpu", RLHF__DTYPE_F32, 1, 0);
        f->learner.plan.heads &= ~cases[k].without;
        f->learner.plan.flags = cases[k].flags;
        for (int32_t t = 0; t < TOTAL; t++)
            f->e.token[RLHF__LOGP_REF][t] = (float)(-t - 1);
        memset(&f->seen, 0, sizeof f->seen);
        MUST(rlhf__minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
        assert_int_equal(f->seen.at, TOTAL);
        assert_true(f->seen.ref[TOTAL - 1] == (float)(cases[k].there ? -TOTAL : 0));
    }
}

static void the_step_is_told(void **state) {
    struct fixture *f = *state;
    learner_open(f, "cpu", RLHF__DTYPE_F32, 1, 0);
    f->optim->config.lr = 0.5;
    f->optim->config.max_grad_norm = 1e-3;
    memset(&f->seen, 0, sizeof f->seen);
    MUST(rlhf__minibatch(&f->learner, &f->e, 3, 4, 0.25, &f->stop, &err));
    const rlhf_step_info *s = &f->seen.step;
    assert_int_equal(s->size, sizeof *s);
    assert_true(s->epoch == 3 && s->minibatch == 4 && s->steps == 1 && !s->skipped && !f->stop);
    assert_true(s->loss == f->learner.last_loss && s->loss != 0);
    assert_true(s->grad_norm > 1e-3 && fabs(s->grad_norm_clipped - 1e-3) < 1e-9);
    assert_true(s->lr == 0.125 && s->lr_factor == 0.25);
    f->optim->config.max_skipped = 0;
    f->seen.bad = NAN;
    f->seen.at = f->seen.rows = 0;
    MUST(rlhf__minibatch(&f->learner, &f->e, 3, 5, 0.25, &f->stop, &err));
    assert_true(s->minibatch == 5 && s->steps == 1 && s->skipped && f->stop);
    assert_true(isnan(s->loss) && s->grad_norm_clipped == 0);
}

// ---- the work of a minibatch ----

// Counts the operations of these matrix products: the layers forward and backward (here 12 d^2 per
// layer and token), the LM head forward and backward (response tokens), the LM head forward for the
// reference, and the critic's layers.
static void counts_the_products(void **state) {
    struct fixture *f = *state;
    const double d = 32, layers = 2 * 2 * 12 * d * d, head = 2 * d * 260;
    for (int critic = 0; critic < 2; critic++) {
        learner_open(f, "cpu", RLHF__DTYPE_F32, 1, critic);
        double flops = 0;
        memset(&f->seen, 0, sizeof f->seen);
        MUST(rlhf__minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
        double want = 3 * (layers * TOTAL + head * ROWS * RESPONSE) + head * ROWS * RESPONSE;
        if (critic) want += 3 * layers * TOTAL;
        assert_true(fabs(f->learner.flops - want) < 0.5);
        // With a shared prompt, the prompt's last token is in each row, and its other tokens are in
        // one row of the group.
        f->e.flags |= RLHF__SHARE_PROMPTS;
        f->learner.flops = 0;
        memset(&f->seen, 0, sizeof f->seen);
        MUST(rlhf__minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
        const int copies = ROWS - ROWS / GROUP;
        double saved = (double)copies * (PROMPT - 1);
        want -= (critic ? 6 : 3) * layers * saved;
        assert_true(fabs(f->learner.flops - want) < 0.5);
        // Values alone need no LM head.
        float value[TOTAL];
        struct rlhf__pass_out out = {.value = value, .flops = &flops};
        f->e.flags &= ~(uint32_t)RLHF__SHARE_PROMPTS;
        MUST(rlhf__pass(critic ? f->critic : f->policy, &f->e, &f->learner.dist, 0, &out, &err));
        assert_true(fabs(flops - layers * TOTAL) < 0.5);
    }
}

// The time saved by rows without a backward pass, as defined in docs/metrics.md.
static void saved_seconds(void **state) {
    (void)state;
    struct rlhf__row_tally b = {.timed = 0};
    assert_true(rlhf__row_tally_saved(&b) < 0); // no measurement exists
    b.tokens[RLHF_USE_EXCLUDED] = 5;
    assert_true(rlhf__row_tally_saved(&b) < 0);
    // In rows with both passes, the forward pass takes a third of the time.
    b.timed = 30;
    b.seconds[RLHF_USE_TRAINS] = 9;
    assert_true(fabs(rlhf__row_tally_saved(&b) - (0.1 * 3 * 5)) < 1e-12);
    // The estimate is more precise if rows have only a forward pass.
    b.tokens[RLHF_USE_NO_GRADIENT] = 10;
    b.seconds[RLHF_USE_NO_GRADIENT] = 2;
    assert_true(fabs(rlhf__row_tally_saved(&b) - (0.2 * (2 * 10 + 3 * 5))) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sharing_gives_the_same, learner_setup, learner_teardown),
        cmocka_unit_test_setup_teardown(heads_have_the_same_bits, learner_setup, learner_teardown),
        cmocka_unit_test_setup_teardown(microbatches_do_not_matter, learner_setup,
                                        learner_teardown),
        cmocka_unit_test_setup_teardown(threads_do_not_matter, learner_setup, learner_teardown),
        cmocka_unit_test_setup_teardown(passes_have_the_same_bits, learner_setup, learner_teardown),
        cmocka_unit_test_setup_teardown(a_model_that_cannot_share_gets_full_rows, learner_setup,
                                        learner_teardown),
        cmocka_unit_test_setup_teardown(who_drew_the_rows, learner_setup, learner_teardown),
        cmocka_unit_test_setup_teardown(what_the_reference_says, learner_setup, learner_teardown),
        cmocka_unit_test_setup_teardown(the_step_is_told, learner_setup, learner_teardown),
        cmocka_unit_test_setup_teardown(counts_the_products, learner_setup, learner_teardown),
        cmocka_unit_test(saved_seconds),
    };
    return cmocka_run_group_tests_name("learner", tests, NULL, NULL);
}
