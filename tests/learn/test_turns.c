// test_turns.c: rows of several turns through model, loss and optimizer. The gradient must equal
// the gradient of a loss that is written by hand for rows of one turn, in which only the policy's
// tokens have a loss. It must also agree with finite differences.
#include "learner_kit.h"

#include "learn/algo_call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- rows ----

// One character for each token after the prompt says who wrote it. A digit from 0 to 2 means the
// policy in that turn, '.' means the environment.
static const char *const who[GROUP] = {"00..11", "0.1.22", "000000", "0...11"};

// Returns the turn of response token k of row i; -1 means a given token.
static int32_t turn_of(int32_t i, int32_t k) {
    const char c = who[i % GROUP][k];
    return c == '.' ? -1 : c - '0';
}

// `shift` makes every turn begin that many tokens too late. If `leak` is set, one token of the
// environment is marked as the policy's.
static void add_turns(struct fixture *f, int32_t shift, int32_t leak) {
    struct rlhf__rows *e = &f->e;
    MUST(rlhf__rows_add_turns(e, &err));
    for (int32_t i = 0; i < ROWS; i++)
        for (int32_t k = 0; k < RESPONSE; k++)
            e->turn[e->offset[i] + PROMPT + k] = turn_of(i, k < shift ? k : k - shift);
    if (leak) e->turn[e->offset[0] + PROMPT + 2] = 0;
}

static void drop_turns(struct fixture *f) {
    free(f->e.turn);
    free(f->e.end);
    f->e.turn = NULL;
    f->e.end = NULL;
}

static double policy_tokens(void) {
    double n = 0;
    for (int32_t i = 0; i < ROWS; i++)
        for (int32_t k = 0; k < RESPONSE; k++)
            n += turn_of(i, k) >= 0;
    return n;
}

// ---- the loss by hand ----

// The loss of learner_kit.c for whole rows, in which given tokens have no loss.
static rlhf_status by_hand(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                           struct rlhf__error *err) {
    const struct fixture *f = self;
    const int32_t base = (int32_t)(in->ids - f->e.ids);
    const double n = policy_tokens();
    const rlhf_head_values *h = in->heads;
    (void)err;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t k = 0; k < RESPONSE; k++) {
            const int32_t t = in->offset[i] + PROMPT + k;
            if (turn_of((base + in->offset[i]) / (PROMPT + RESPONSE), k) < 0) continue;
            const double a = (double)in->advantage[t];
            const double e = (double)h->value[t] - (double)in->returns[t];
            out->loss += (a * (double)h->logp[t] - 0.3 * (double)h->entropy[t] +
                          0.2 * (double)h->kl[t] + 0.5 * e * e) /
                         n;
            out->d_heads->logp[t] = (float)(a / n);
            out->d_heads->entropy[t] = (float)(-0.3 / n);
            out->d_heads->kl[t] = (float)(0.2 / n);
            out->d_heads->value[t] = (float)(e / n);
        }
    return RLHF_OK;
}

// If `hand` is 1, computes the loss by hand, for rows without turns.
static struct result *run(struct fixture *f, int hand, int share, int64_t microbatch_tokens) {
    struct result *r = calloc(1, sizeof *r);
    assert_non_null(r);
    memset(&f->seen, 0, sizeof f->seen);
    f->e.flags = share ? RLHF__SHARE_PROMPTS : 0;
    f->learner.objective = hand ? (struct rlhf__objective){.loss = by_hand, .self = f}
                                : rlhf__algo_objective(&f->algo);
    f->learner.microbatch_tokens = microbatch_tokens;
    f->learner.loss_sum = 0;
    MUST(rlhf__minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
    r->seen = f->seen;
    r->loss = f->learner.loss_sum;
    learner_collect(r, f, f->optim);
    if (f->critic_optim) learner_collect(r, f, f->critic_optim);
    return r;
}

// Returns the largest difference between the gradients, relative to the largest element of its
// tensor.
static double apart(const struct result *a, const struct result *b) {
    double worst = 0;
    assert_int_equal(a->n, b->n);
    for (size_t k = 0, at = 0; k < a->tensors; at = a->end[k++]) {
        double max = 0, diff = 0;
        for (size_t i = at; i < a->end[k]; i++) {
            max = fmax(max, fabs((double)a->grad[i]));
            diff = fmax(diff, fabs((double)a->grad[i] - (double)b->grad[i]));
        }
        assert_true(max > 0);
        worst = fmax(worst, diff / max);
    }
    return worst;
}

// ---- cases ----

static void the_gradient_is_that_of_the_loss_by_hand(void **state) {
    struct fixture *f = *state;
    static const struct {
        int critic, share;
        int64_t tokens;
    } cases[] = {{0, 0, 0}, {0, 1, 0}, {0, 1, 36}, {0, 0, 15}, {1, 1, 0}, {1, 0, 40}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        learner_open(f, k % 2 ? "reference" : "cpu", RLHF__DTYPE_F32, 1, cases[k].critic);
        struct result *hand = run(f, 1, 0, 0);
        add_turns(f, 0, 0);
        struct result *turns = run(f, 0, cases[k].share, cases[k].tokens);
        assert_int_equal(turns->seen.at, ROWS * PROMPT + (int)policy_tokens());
        assert_int_equal(f->learner.batch_tokens, (int)policy_tokens());
        assert_true(fabs(turns->loss - hand->loss) <= 1e-12 * fabs(hand->loss));
        const double d = apart(hand, turns);
        if (!(d <= 2e-6)) fail_msg("case %zu: gradients differ by %g", k, d);
        learner_result_free(hand);
        learner_result_free(turns);
    }
}

// These mistakes change the gradient by far more than rounding does.
static void mistakes_are_seen(void **state) {
    struct fixture *f = *state;
    static const int32_t mistakes[][2] = {{1, 0}, {0, 1}};
    for (size_t k = 0; k < 2; k++) {
        learner_open(f, "cpu", RLHF__DTYPE_F32, 1, 0);
        struct result *hand = run(f, 1, 0, 0);
        add_turns(f, mistakes[k][0], mistakes[k][1]);
        struct result *turns = run(f, 0, 1, 0);
        assert_true(apart(hand, turns) > 0.05);
        assert_true(fabs(turns->loss - hand->loss) > 1e-4);
        learner_result_free(hand);
        learner_result_free(turns);
    }
}

// On the device, the states of the reference have an entry for each of the policy's tokens.
static void the_reference_on_the_device(void **state) {
    struct fixture *f = *state;
    learner_open(f, "cpu", RLHF__DTYPE_F32, 1, 0);
    struct result *hand = run(f, 1, 0, 0);
    add_turns(f, 0, 0);
    const rlhf_compute *c = f->session.compute->table;
    const uint64_t tokens = (uint64_t)rlhf__rows_response_tokens(&f->e, 0, ROWS);
    rlhf_dev states = NULL;
    assert_int_equal(c->alloc(c->ctx, tokens * rlhf__state_bytes(f->reference), &states), RLHF_OK);
    free(f->e.ref_hidden);
    f->e.ref_hidden = NULL;
    MUST(rlhf__rows_refer(&f->e, states, &err));
    struct rlhf__pass_out out = {.dev_hidden = states};
    MUST(rlhf__pass(f->reference, &f->e, &f->learner.dist, 23, &out, &err));
    struct result *turns = run(f, 0, 1, 36);
    assert_true(fabs(turns->loss - hand->loss) <= 1e-12 * fabs(hand->loss));
    assert_true(apart(hand, turns) <= 2e-6);
    c->release(c->ctx, states);
    learner_result_free(hand);
    learner_result_free(turns);
}

// Adds `step` times the direction, which is laid out as a gradient, to the policy's weights.
static void move(struct fixture *f, const struct result *along, double step) {
    const rlhf_compute *c = f->session.compute->table;
    char name[256];
    rlhf_dev dev;
    const rlhf_param *p;
    size_t at = 0, k = 0;
    for (uint32_t i = 0; rlhf__optim_tensor(f->optim, i, name, sizeof name, &dev, &p) == RLHF_OK;
         i++) {
        if (strncmp(name, "m.", 2) != 0) continue;
        const size_t n = along->end[k++] - at;
        float *x = malloc(n * sizeof *x);
        assert_non_null(x);
        assert_int_equal(c->download(c->ctx, x, p->value, n * sizeof *x), RLHF_OK);
        for (size_t j = 0; j < n; j++)
            x[j] += (float)(step * (double)along->grad[at + j]);
        assert_int_equal(c->upload(c->ctx, p->value, x, n * sizeof *x), RLHF_OK);
        assert_int_equal(c->sync(c->ctx), RLHF_OK);
        free(x);
        at += n;
    }
    MUST(rlhf__model_refresh(f->policy, &err));
}

// A small step along the gradient changes the hand-written loss by the gradient's norm times the
// step.
static void the_gradient_is_that_of_differences(void **state) {
    struct fixture *f = *state;
    learner_open(f, "reference", RLHF__DTYPE_F32, 1, 0);
    add_turns(f, 0, 0);
    struct result *turns = run(f, 0, 1, 0);
    double norm = 0;
    for (size_t i = 0; i < turns->n; i++)
        norm += (double)turns->grad[i] * (double)turns->grad[i];
    norm = sqrt(norm);
    const double h = 1e-4 / norm;
    drop_turns(f);
    move(f, turns, h);
    struct result *up = run(f, 1, 0, 0);
    move(f, turns, -2 * h);
    struct result *down = run(f, 1, 0, 0);
    const double slope = (up->loss - down->loss) / (2 * h * norm);
    if (!(fabs(slope - norm) <= 2e-3 * norm)) fail_msg("slope %.9g, norm %.9g", slope, norm);
    learner_result_free(up);
    learner_result_free(down);
    learner_result_free(turns);
}

// ---- what the algorithm sees ----

// Checks ids, turns and marks of the policy's tokens, and the rows' own numbers.
static rlhf_status look(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                        struct rlhf__error *err) {
    struct fixture *f = self;
    const struct rlhf__rows *e = &f->e;
    uint32_t k = 0;
    (void)err;
    (void)out;
    assert_non_null(in->turn);
    assert_non_null(in->left_out);
    for (uint32_t i = 0; i < in->n; i++, f->seen.rows++) {
        assert_int_equal(in->offset[i], k);
        assert_int_equal(in->prompt_len[i], PROMPT);
        assert_int_equal(in->group[i], e->group[f->seen.rows]);
        for (int32_t t = e->offset[f->seen.rows]; t < e->offset[f->seen.rows + 1]; t++) {
            const int prompt = t - e->offset[f->seen.rows] < PROMPT;
            if (!prompt && e->turn[t] < 0) continue;
            assert_int_equal(in->ids[k], e->ids[t]);
            assert_int_equal(in->turn[k], prompt ? -1 : e->turn[t]);
            assert_int_equal(in->left_out[k], e->left_out[t]);
            k++;
        }
    }
    assert_int_equal(in->total, k);
    f->seen.at += k;
    return RLHF_OK;
}

static void what_the_algorithm_sees(void **state) {
    struct fixture *f = *state;
    learner_open(f, "reference", RLHF__DTYPE_F32, 1, 0);
    add_turns(f, 0, 0);
    MUST(RLHF__ROWS_ADD(&f->e, left_out, &err));
    for (int32_t t = 0; t < TOTAL; t += 5)
        f->e.left_out[t] = 1;
    memset(&f->seen, 0, sizeof f->seen);
    f->e.flags = RLHF__SHARE_PROMPTS;
    f->learner.objective = (struct rlhf__objective){.loss = look, .self = f};
    f->learner.microbatch_tokens = 30;
    MUST(rlhf__minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err));
    assert_int_equal(f->seen.rows, ROWS);
    assert_int_equal(f->seen.at, ROWS * PROMPT + (int)policy_tokens());
}

// Only the policy's tokens count when sampled and recomputed log-probs are compared.
static void compared_tokens(void **state) {
    struct fixture *f = *state;
    float sampled[TOTAL] = {0}, again[TOTAL];
    learner_open(f, "cpu", RLHF__DTYPE_F32, 1, 0);
    add_turns(f, 0, 0);
    for (int32_t t = 0; t < TOTAL; t++)
        again[t] = f->e.turn[t] < 0 ? 5 : 0.5f;
    rlhf__learner_begin(&f->learner);
    rlhf__learner_compare(&f->learner, &f->e, 0, ROWS, sampled, again);
    assert_int_equal(f->learner.compared, (int)policy_tokens());
    assert_true(f->learner.difference_max < 0.6);
}

static void a_model_without_turns_is_refused(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0, ""};
    learner_open(f, "cpu", RLHF__DTYPE_F32, 1, 0);
    add_turns(f, 0, 0);
    f->policy->info.caps &= ~(uint32_t)RLHF_CAP_TURNS;
    assert_int_equal(rlhf__minibatch(&f->learner, &f->e, 0, 0, 0, &f->stop, &err),
                     RLHF_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "the policy '"));
    assert_non_null(strstr(err.text, "RLHF_CAP_TURNS"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_gradient_is_that_of_the_loss_by_hand),
                                       cmocka_unit_test(mistakes_are_seen),
                                       cmocka_unit_test(the_reference_on_the_device),
                                       cmocka_unit_test(the_gradient_is_that_of_differences),
                                       cmocka_unit_test(what_the_algorithm_sees),
                                       cmocka_unit_test(compared_tokens),
                                       cmocka_unit_test(a_model_without_turns_is_refused)};
    return cmocka_run_group_tests_name("turns", tests, learner_setup, learner_teardown);
}
