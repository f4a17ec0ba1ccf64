// test_head_values.c: values of the entropy, kl, value and score heads, compared with sums over the
// vocabulary of log-probs and with products in double.
#include "on_backends.h"
#include "trial.h"

#include <math.h>
#include <string.h>

enum { VOCAB = 61 };

// Computes log p(v | ids[0 .. t-1] of row) for all v, from a batch with one row for each v.
static void full_logp(struct model *m, uint32_t row, int32_t t, const rlhf_dist *dist,
                      float out[VOCAB]) {
    int32_t *ids = test_calloc((uint64_t)VOCAB * (uint64_t)(t + 1), sizeof *ids);
    int32_t offset[VOCAB + 1], prompt_len[VOCAB];
    float *logp = test_calloc((uint64_t)VOCAB * (uint64_t)(t + 1), sizeof *logp);
    offset[0] = 0;
    for (int32_t v = 0; v < VOCAB; v++) {
        memcpy(ids + offset[v], vec_ids + vec_offset[row], (uint64_t)t * 4);
        offset[v + 1] = offset[v] + t + 1;
        ids[offset[v + 1] - 1] = v;
        prompt_len[v] = t;
    }
    const rlhf_batch b = {
        sizeof(rlhf_batch), VOCAB, (uint32_t)offset[VOCAB], 0, ids, offset, prompt_len, NULL, NULL};
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .dist = dist};
    const rlhf_heads h = {.size = sizeof h, .logp = logp};
    must(m, m->ops->forward(m->self, &b, &f, &h));
    for (int32_t v = 0; v < VOCAB; v++)
        out[v] = logp[offset[v + 1] - 1];
    test_free(ids);
    test_free(logp);
}

static void test_values(void **state) {
    (void)state;
    static const rlhf_dist warm = RLHF_DIST(1 / 0.7, 1, 0, 0);
    struct trial t;
    struct outputs o;
    trial_open(&t, &backend, RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL,
               (rlhf_model_open){0});
    t.f.dist = &warm;
    trial_loss(&t, &o);
    for (uint32_t row = 0; row < VEC_ROWS; row++)
        for (int32_t k = vec_prompt_len[row]; k < vec_offset[row + 1] - vec_offset[row]; k++) {
            float p[VOCAB], q[VOCAB];
            double mass = 0, entropy = 0, kl = 0;
            const int32_t at = vec_offset[row] + k;
            full_logp(&t.m, row, k, &warm, p);
            full_logp(&t.ref, row, k, &warm, q);
            for (int32_t v = 0; v < VOCAB; v++) {
                mass += exp((double)p[v]);
                entropy -= exp((double)p[v]) * (double)p[v];
                kl += exp((double)p[v]) * ((double)p[v] - (double)q[v]);
            }
            assert_true(fabs(mass - 1) < 1e-5);
            assert_true(fabs(entropy - (double)o.entropy[at]) < 1e-5 * (1 + entropy));
            assert_true(fabs(kl - (double)o.kl[at]) < 1e-5 * (1 + kl));
            assert_true(kl > 1e-4);
        }
    trial_close(&t);
}

static float *param_read(struct model *m, const char *name) {
    rlhf_param p = {.size = sizeof p};
    must(m, m->ops->param(m->self, model_find(m, name), &p));
    return device_read(m->c, p.value, param_count(&p));
}

// The value head, d -> 4d -> ReLU -> 1, on the hidden state before the token, in double.
static void test_value_values(void **state) {
    (void)state;
    struct trial t;
    struct outputs o;
    float hidden[VEC_TOTAL * D];
    trial_open(&t, &backend, RLHF_HEAD_VALUE, (rlhf_model_open){.value_kind = RLHF_VALUE_MLP});
    trial_loss(&t, &o);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .hidden = hidden};
    must(&t.m, t.m.ops->forward(t.m.self, &vec_batch, &f, &out));
    float *w1 = param_read(&t.m, "v_head.fc.weight"), *b1 = param_read(&t.m, "v_head.fc.bias");
    float *w2 = param_read(&t.m, "v_head.out.weight"), *b2 = param_read(&t.m, "v_head.out.bias");
    for (uint32_t row = 0; row < VEC_ROWS; row++)
        for (int32_t i = vec_offset[row] + vec_prompt_len[row]; i < vec_offset[row + 1]; i++) {
            double v = (double)b2[0];
            for (int32_t j = 0; j < 4 * D; j++) {
                double x = (double)b1[j];
                for (int32_t k = 0; k < D; k++)
                    x += (double)w1[j * D + k] * (double)hidden[(i - 1) * D + k];
                if (x > 0) v += x * (double)w2[j];
            }
            assert_true(fabs(v - (double)o.value[i]) < 1e-5 * (1 + fabs(v)));
        }
    test_free(w1);
    test_free(b1);
    test_free(w2);
    test_free(b2);
    trial_close(&t);
}

// A token's score is the score matrix times the token's hidden state, which the test computes in
// double. Prompt tokens have score 0. The score of the last token equals the score that last-token
// pooling gives, bit for bit.
static void test_token_score_values(void **state) {
    (void)state;
    struct trial t;
    struct outputs o;
    float hidden[VEC_TOTAL * D];
    trial_open(&t, &backend, RLHF_HEAD_SCORE | RLHF_HEAD_TOKEN_SCORE,
               (rlhf_model_open){.n_labels = 1, .pooling = RLHF_POOL_LAST});
    trial_loss(&t, &o);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .hidden = hidden};
    must(&t.m, t.m.ops->forward(t.m.self, &vec_batch, &f, &out));
    float *w = param_read(&t.m, "score.weight");
    for (uint32_t row = 0; row < VEC_ROWS; row++) {
        const int32_t end = vec_offset[row + 1], first = vec_offset[row] + vec_prompt_len[row];
        for (int32_t i = vec_offset[row]; i < end; i++) {
            double s = 0;
            for (int32_t k = 0; i >= first && k < D; k++)
                s += (double)w[k] * (double)hidden[i * D + k];
            assert_true(fabs(s - (double)o.token_score[i]) <=
                        (i < first ? 0 : 1e-5 * (1 + fabs(s))));
        }
        if (first < end) assert_memory_equal(&o.score[row], &o.token_score[end - 1], sizeof(float));
    }
    test_free(w);
    trial_close(&t);
}

// The divergence of a model from itself is zero up to rounding, and prompt entries are 0.
static void test_kl_self(void **state) {
    (void)state;
    struct trial t;
    struct outputs o;
    trial_open(&t, &backend, RLHF_HEAD_KL, (rlhf_model_open){0});
    model_fill(&t.ref, 0.3);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .hidden = t.hidden};
    must(&t.ref, t.ref.ops->forward(t.ref.self, &vec_batch, &f, &out));
    trial_loss(&t, &o);
    for (uint32_t i = 0; i < VEC_TOTAL; i++)
        assert_true(fabs((double)o.kl[i]) < 1e-6);
    trial_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_kl_self),
        cmocka_unit_test(test_value_values), cmocka_unit_test(test_token_score_values)};
    return on_backends("head_values", ON_REFERENCE | ON_CPU, 1, tests,
                       sizeof tests / sizeof *tests);
}
