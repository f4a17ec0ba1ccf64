// test_turn_vectors.c: PPO and GRPO over rows of several turns, compared with the float64 reference
// of make_turn_vectors.py, which masks the environment's tokens.
#include "algos/episodes.h"
#include "algos/vector_case.h"

#include <math.h>

static struct batch b;
static struct vector_file file;
static struct episodes s;

// Rounding to float changes a number by up to half a unit in its last place, and a derivative is
// the sum of up to three rounded numbers. A further 1e-9 is allowed.
static void assert_tokens(const struct vector_case *c, const char *what, const float *got,
                          const double *want) {
    const double places = *what == 'd' ? 3 : 1;
    for (int32_t k = 0; k < b.total; k++) {
        const double x = (double)got[s.place[k]], off = fabs(x - want[k]);
        if (off > 1e-9 + fabs(want[k]) * places * 0x1p-24)
            fail_msg("%s %s[%d]: got %.12g, want %.12g", c->name, what, (int)k, x, want[k]);
    }
    if (episodes_given(&s, got))
        fail_msg("%s %s: a token of the environment has a number", c->name, what);
}

// loss() gets the reference's advantages and returns, because the plugin's may differ by one unit
// in the last place.
static void give(float *to, const double *from) {
    for (int32_t k = 0; k < b.total; k++)
        to[s.place[k]] = (float)from[k];
}

static void check(const struct vector_case *c, const char *so, const int32_t *cuts) {
    struct algo a;
    vector_load(&b);
    episodes_init(&s, &b, file.given, file.after, 0);
    algo_open(&a, so, c->options, b.n);
    assert_int_equal(episodes_advantages(&a, &s), RLHF_OK);
    assert_tokens(c, "advantage", s.e.token[RLHF__ADVANTAGE], c->advantage);
    assert_tokens(c, "returns", s.e.token[RLHF__RETURNS], c->returns);
    give(s.e.token[RLHF__ADVANTAGE], c->advantage);
    give(s.e.token[RLHF__RETURNS], c->returns);
    double loss = 0;
    for (; cuts[0] < b.n; cuts++)
        loss += episodes_loss(&a, &s, cuts[0], cuts[1]);
    assert_int_equal(algo_step_end(&a, 0, 0), 0);
    assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
    assert_tokens(c, "d_logp", s.d_logp, c->d_logp);
    assert_tokens(c, "d_entropy", s.d_entropy, c->d_entropy);
    assert_tokens(c, "d_kl", s.d_kl, c->d_kl);
    assert_tokens(c, "d_value", s.d_value, c->d_value);
    assert_near(loss, c->metrics[0].value, 1e-9, c->name);
    for (const struct vector_metric *m = c->metrics; m->name; m++)
        assert_near(metric(&a, m->name), m->value, 1e-9, m->name);
    algo_close(&a);
    episodes_finish(&s);
}

static void all(const char *so) {
    static const int32_t whole[] = {0, V_N}, parts[] = {0, 2, 3, 7, V_N};
    int n = 0;
    for (size_t i = 0; i < file.n; i++) {
        if (strcmp(file.cases[i].so, so) != 0) continue;
        check(&file.cases[i], so, whole);
        check(&file.cases[i], so, parts);
        n++;
    }
    assert_true(n > 10);
}

static void ppo(void **state) {
    (void)state;
    all("ppo.so");
}

static void grpo(void **state) {
    (void)state;
    all("grpo.so");
}

static int setup(void **state) {
    (void)state;
    vector_open(&file, "turn");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    vector_close(&file);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ppo), cmocka_unit_test(grpo)};
    return cmocka_run_group_tests_name("turn_vectors", tests, setup, teardown);
}
