// test_ppo_vectors.c: ppo.so against the float64 reference of make_vectors.py, every option value,
// and the same numbers whatever the split into microbatches.
#include "algos/fixture.h"

struct vector_metric {
    const char *name; // NULL ends the list
    double value;
};
struct vector_case {
    const char *name, *options;
    const double *advantage, *returns, *d_logp, *d_entropy, *d_kl, *d_value;
    const struct vector_metric *metrics;
};
#include "vectors.h"

enum { N_CASES = sizeof vector_cases / sizeof *vector_cases };
static struct batch b;

static void to_float(float *to, const double *from) {
    for (int i = 0; i < V_TOTAL; i++)
        to[i] = (float)from[i];
}

static void load_batch(void) {
    memset(&b, 0, sizeof b);
    b.n = V_N;
    b.total = V_TOTAL;
    b.max_len = V_MAX_LEN;
    memcpy(b.offset, v_offset, sizeof v_offset);
    memcpy(b.prompt_len, v_prompt_len, sizeof v_prompt_len);
    memcpy(b.group, v_group, sizeof v_group);
    for (int i = 0; i < V_N; i++)
        b.score[i] = (float)v_score[i];
    to_float(b.token_reward, v_token_reward);
    to_float(b.old, v_old);
    to_float(b.ref, v_ref);
    to_float(b.value_old, v_value_old);
    to_float(b.logp, v_logp);
    to_float(b.entropy, v_entropy);
    to_float(b.kl, v_kl);
    to_float(b.value, v_value);
}

// tol is absolute and relative: floats carry 6e-8, the reference's derivatives 1e-9.
static void assert_rows(const struct vector_case *c, const char *what, const float *got,
                        const double *want, double tol) {
    char label[128];
    for (int t = 0; t < V_TOTAL; t++) {
        snprintf(label, sizeof label, "%s %s[%d]", c->name, what, t);
        assert_near((double)got[t], want[t], tol, label);
    }
}

static void check_case(const struct vector_case *c, const int32_t *cuts) {
    struct algo a;
    load_batch();
    algo_open(&a, "ppo.so", c->options, V_N);
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    assert_rows(c, "advantage", b.advantage, c->advantage, 1e-6);
    assert_rows(c, "returns", b.returns, c->returns, 1e-6);
    double loss = 0;
    int32_t stop;
    for (; cuts[0] < V_N; cuts++)
        loss += batch_loss(&a, &b, cuts[0], cuts[1], 0);
    assert_int_equal(a.ops->minibatch_end(a.self, &stop), RLHF_OK);
    assert_int_equal(stop, 0);
    assert_int_equal(a.ops->phase_end(a.self, 0), RLHF_OK);
    assert_rows(c, "d_logp", b.d_logp, c->d_logp, 2e-7);
    assert_rows(c, "d_entropy", b.d_entropy, c->d_entropy, 2e-7);
    assert_rows(c, "d_kl", b.d_kl, c->d_kl, 2e-7);
    assert_rows(c, "d_value", b.d_value, c->d_value, 2e-7);
    char label[128];
    uint32_t n = 0;
    for (const struct vector_metric *m = c->metrics; m->name; m++, n++) {
        snprintf(label, sizeof label, "%s %s", c->name, m->name);
        assert_near(metric(&a, m->name), m->value, 1e-6, label);
    }
    assert_int_equal(a.host->n_metrics, n); // nothing is reported that the reference does not know
    assert_near(loss, metric(&a, "loss/total"), 1e-12, c->name);
    algo_close(&a);
}

static void whole_minibatch(void **state) {
    (void)state;
    static const int32_t cuts[] = {0, 6};
    for (int i = 0; i < N_CASES; i++)
        check_case(vector_cases + i, cuts);
}

static void row_by_row(void **state) {
    (void)state;
    static const int32_t cuts[] = {0, 1, 2, 3, 4, 5, 6};
    for (int i = 0; i < N_CASES; i++)
        check_case(vector_cases + i, cuts);
}

static void uneven_microbatches(void **state) {
    (void)state;
    static const int32_t cuts[] = {0, 2, 5, 6};
    for (int i = 0; i < N_CASES; i++)
        check_case(vector_cases + i, cuts);
}

// Every choice of every enumeration of ppo.so occurs in a case, here or in test_ppo_plan.c.
static void every_choice_has_a_case(void **state) {
    (void)state;
    static const char *const elsewhere[] = {
        "kl_controller=", "kl_unit=", "old_logp=", "logprob_temp", "logprob_supp"};
    struct algo a;
    assert_int_equal(algo_try(&a, "ppo.so", ""), RLHF_OK);
    for (uint32_t i = 0; i < a.plugin->n_opts; i++) {
        const rlhf_opt *o = a.plugin->opts + i;
        for (int k = 0; o->type == RLHF_T_ENUM && o->choices[k]; k++) {
            char want[128];
            snprintf(want, sizeof want, "%s=%s", o->key, o->choices[k]);
            int found = k == o->i_def;
            for (int j = 0; j < N_CASES; j++)
                found |= strstr(vector_cases[j].options, want) != NULL;
            for (size_t j = 0; j < sizeof elsewhere / sizeof *elsewhere; j++)
                found |= strncmp(want, elsewhere[j], strlen(elsewhere[j])) == 0;
            if (!found) fail_msg("no case has %s", want);
        }
    }
    algo_close(&a);
}

// docs/metrics.md defines every name that some case reports.
static void every_metric_is_documented(void **state) {
    (void)state;
    static char page[65536];
    char path[4096], quoted[160];
    const char *root = getenv("RLHF_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/docs/metrics.md", root ? root : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    page[fread(page, 1, sizeof page - 1, f)] = 0;
    fclose(f);
    for (int i = 0; i < N_CASES; i++)
        for (const struct vector_metric *m = vector_cases[i].metrics; m->name; m++) {
            snprintf(quoted, sizeof quoted, "`%s`", m->name);
            if (!strstr(page, quoted)) fail_msg("%s is not in docs/metrics.md", m->name);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_minibatch), cmocka_unit_test(row_by_row),
        cmocka_unit_test(uneven_microbatches), cmocka_unit_test(every_choice_has_a_case),
        cmocka_unit_test(every_metric_is_documented)};
    return cmocka_run_group_tests_name("algos/ppo_vectors", tests, NULL, NULL);
}
