// tests/models/test_turns.c: rows with tokens that an environment wrote (rlhf_batch.turn). Heads
// are computed only for the policy's tokens, and have the same bits as without turns. Gradients
// equal the gradients of a batch in which the environment's tokens carry no loss. Also tests
// divergences of the kl head from a reference of another width.
#include "on_backends.h"
#include "vectors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VOCAB = 61, D = 32, WIDE = 48, WORDS = (VOCAB + 31) / 32 };
enum {
    HEADS =
        RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL | RLHF_HEAD_VALUE | RLHF_HEAD_TOKEN_SCORE
};

static const struct setting wide_gpt2[] = {
    {"vocab_size", "61"}, {"n_positions", "24"}, {"n_embd", "48"}, {"n_layer", "2"},
    {"n_head", "2"},      {"n_inner", "64"},     {NULL, NULL}};

// ---- who wrote what ----

// After the prompt, all tokens have turn 0. If `mixed` is set, tokens of the policy and of an
// environment alternate in pieces.
static void write_turns(int32_t turn[VEC_TOTAL], int32_t mixed) {
    for (uint32_t i = 0; i < VEC_ROWS; i++) {
        int32_t at = 0, given = 0;
        for (int32_t t = vec_offset[i]; t < vec_offset[i + 1]; t++) {
            const int32_t behind = t - vec_offset[i] - vec_prompt_len[i];
            const int32_t policy = behind >= 0 && (!mixed || behind % 3 != 2);
            if (policy && given) at++;
            given = behind >= 0 && !policy;
            turn[t] = policy ? at : -1;
        }
    }
}

struct results {
    float logp[VEC_TOTAL], entropy[VEC_TOTAL], kl[VEC_TOTAL], value[VEC_TOTAL];
    float token_score[VEC_TOTAL];
};

static rlhf_heads heads_of(struct results *r) {
    return (rlhf_heads){.size = sizeof(rlhf_heads),
                        .logp = r->logp,
                        .entropy = r->entropy,
                        .kl = r->kl,
                        .value = r->value,
                        .token_score = r->token_score};
}

struct pair {
    struct model m, ref;
    float *hidden; // hidden states of the reference
    int32_t width; // width of the reference
};

static void pair_open(struct pair *p, int32_t dtype, const struct setting *ref, int32_t width) {
    rlhf_model_open o = open_args(&backend, dtype, 1);
    o.value_kind = RLHF_VALUE_LINEAR;
    o.value_init = RLHF_VALUE_INIT_NORMAL;
    o.n_labels = 1;
    p->m = model_open("gpt2", tiny_gpt2, &o);
    model_fill(&p->m, 0.3);
    o = open_args(&backend, dtype, 0);
    p->ref = model_open("gpt2", ref, &o);
    model_fill(&p->ref, 0.25);
    p->width = width;
    p->hidden = test_malloc(VEC_TOTAL * (uint64_t)width * sizeof *p->hidden);
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .hidden = p->hidden};
    must(&p->ref, p->ref.ops->forward(p->ref.self, &vec_batch, &f, &out));
}

static void pair_close(struct pair *p) {
    test_free(p->hidden);
    model_close(&p->ref);
    model_close(&p->m);
}

static rlhf_forward plan_of(const struct pair *p, int32_t train) {
    return (rlhf_forward){.size = sizeof(rlhf_forward),
                          .heads = HEADS,
                          .train = train,
                          .kl_self = p->ref.self,
                          .kl_hidden = p->hidden};
}

static void ask(struct pair *p, const int32_t *turn, struct results *r) {
    rlhf_batch b = vec_batch;
    const rlhf_forward f = plan_of(p, 0);
    const rlhf_heads out = heads_of(r);
    b.turn = turn;
    memset(r, 0x55, sizeof *r);
    must(&p->m, p->m.ops->forward(p->m.self, &b, &f, &out));
}

// Asserts that `got` equals `want` at the policy's tokens and is 0 elsewhere.
static void same_where_written(const float *got, const float *want, const int32_t *turn,
                               const char *what) {
    for (int32_t t = 0; t < VEC_TOTAL; t++) {
        const float expected = turn[t] >= 0 ? want[t] : 0.0f;
        if (memcmp(&got[t], &expected, sizeof expected) != 0)
            fail_msg("%s of token %d (turn %d): %.9g instead of %.9g", what, (int)t, (int)turn[t],
                     (double)got[t], (double)expected);
    }
}

static void bits_of_the_policys_tokens(void **state) {
    (void)state;
    for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
        struct pair p;
        int32_t turn[VEC_TOTAL], one[VEC_TOTAL];
        struct results plain, whole, got;
        pair_open(&p, dtype, tiny_gpt2, D);
        assert_true(p.m.info.caps & RLHF_CAP_TURNS);
        write_turns(one, 0);
        write_turns(turn, 1);
        ask(&p, NULL, &plain);
        ask(&p, one, &whole);
        assert_memory_equal(&plain, &whole, sizeof plain);
        ask(&p, turn, &got);
        same_where_written(got.logp, plain.logp, turn, "logp");
        same_where_written(got.entropy, plain.entropy, turn, "entropy");
        same_where_written(got.kl, plain.kl, turn, "kl");
        same_where_written(got.value, plain.value, turn, "value");
        same_where_written(got.token_score, plain.token_score, turn, "token_score");
        pair_close(&p);
    }
}

// ---- arrays by response token ----

static uint32_t count(const int32_t *turn) {
    uint32_t n = 0;
    for (int32_t t = 0; t < VEC_TOTAL; t++)
        n += turn[t] >= 0;
    return n;
}

// On the device, the reference's states and the supports have entries only for the policy's tokens.
static void arrays_by_response_token(void **state) {
    (void)state;
    const rlhf_compute *c = backend.compute;
    struct pair p;
    int32_t turn[VEC_TOTAL];
    struct results want, got;
    uint32_t support[VEC_TOTAL * WORDS];
    rlhf_dev states = NULL;
    pair_open(&p, RLHF_F32, tiny_gpt2, D);
    write_turns(turn, 1);
    rlhf_batch b = vec_batch;
    rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    rlhf_heads out = {.size = sizeof out};
    b.turn = turn;
    const uint32_t n = count(turn);
    must(&p.m, c->alloc(c->ctx, n * (uint64_t)D * sizeof(float), &states));
    out.dev_hidden = states;
    must(&p.ref, p.ref.ops->forward(p.ref.self, &b, &f, &out));
    ask(&p, turn, &want);
    f = plan_of(&p, 0);
    f.kl_hidden = NULL;
    f.kl_dev_hidden = states;
    memset(support, 0xff, sizeof support);
    for (uint32_t i = 0; i < n; i++) // all ids are in the support, as without a support
        support[i * WORDS + WORDS - 1] &= (1u << VOCAB % 32) - 1;
    f.support = support;
    out = heads_of(&got);
    must(&p.m, p.m.ops->forward(p.m.self, &b, &f, &out));
    same_where_written(got.kl, want.kl, turn, "kl");
    same_where_written(got.logp, want.logp, turn, "logp");
    c->release(c->ctx, states);
    pair_close(&p);
}

// ---- backward ----

// Returns the gradient of every parameter, one after the other.
static float *gradients(struct model *m, const rlhf_batch *b, const rlhf_forward *f,
                        struct results *d, uint64_t *n) {
    const rlhf_heads out = {.size = sizeof out}, grad = heads_of(d);
    rlhf_param q = {.size = sizeof q};
    *n = 0;
    model_zero_grad(m);
    must(m, m->ops->forward(m->self, b, f, &out));
    must(m, m->ops->backward(m->self, b, f, &grad));
    float *all = test_malloc((uint64_t)m->info.n_params * sizeof *all);
    for (uint32_t i = 0; m->ops->param(m->self, i, &q) == RLHF_OK; i++) {
        float *one = device_read(m->c, q.grad, param_count(&q));
        memcpy(all + *n, one, param_count(&q) * sizeof *one);
        *n += param_count(&q);
        test_free(one);
    }
    return all;
}

static void gradients_of_the_policys_tokens(void **state) {
    (void)state;
    struct pair p;
    int32_t turn[VEC_TOTAL];
    struct results d, masked;
    uint64_t n;
    pair_open(&p, RLHF_F32, tiny_gpt2, D);
    write_turns(turn, 1);
    for (int32_t t = 0; t < VEC_TOTAL; t++)
        d.logp[t] = d.entropy[t] = d.kl[t] = d.value[t] = d.token_score[t] =
            vec_weight((uint64_t)t);
    masked = d;
    for (int32_t t = 0; t < VEC_TOTAL; t++)
        if (turn[t] < 0)
            masked.logp[t] = masked.entropy[t] = masked.kl[t] = masked.value[t] =
                masked.token_score[t] = 0;
    const rlhf_forward f = plan_of(&p, 1);
    rlhf_batch b = vec_batch;
    float *want = gradients(&p.m, &b, &f, &masked, &n);
    b.turn = turn;
    // numbers that the caller sets at given tokens are not read
    float *got = gradients(&p.m, &b, &f, &d, &n);
    assert_tensor_close(got, want, n, 1e-5, 1e-6, "gradient");
    test_free(got);
    test_free(want);
    pair_close(&p);
}

// ---- refused ----

static void wrong_turns(void **state) {
    (void)state;
    rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    static const struct {
        int32_t turn[6];
        const char *says;
    } cases[] = {{{-1, -1, 0, 0, -1, 1}, NULL},
                 {{-1, -1, 0, 0, 1, 1}, NULL},
                 {{-1, 0, 0, 0, -1, 1}, "token 1 has turn 0"},
                 {{-1, -1, -1, 0, 0, 1}, "token 2 has turn -1"},
                 {{-1, -1, 1, 1, 1, 1}, "token 2 has turn 1"},
                 {{-1, -1, 0, -1, 2, 2}, "token 4 has turn 2"},
                 {{-1, -1, 0, 1, 0, 0}, "token 4 has turn 0"},
                 {{-1, -1, 0, 0, 0, -2}, "token 5 has turn -2"}};
    static const int32_t ids[6] = {1, 2, 3, 4, 5, 6}, offset[] = {0, 6}, prompt[] = {2};
    float logp[6];
    model_fill(&m, 0.3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rlhf_batch b = {sizeof b, 1, 6, 0, ids, offset, prompt, NULL, cases[i].turn};
        const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
        const rlhf_heads out = {.size = sizeof out, .logp = logp};
        host_failure_clear();
        const rlhf_status st = m.ops->forward(m.self, &b, &f, &out);
        if (!cases[i].says) assert_int_equal(st, RLHF_OK);
        if (!cases[i].says) continue;
        assert_int_equal(st, RLHF_E_INVALID);
        if (!strstr(host_failure(), cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", host_failure(), cases[i].says);
    }
    model_close(&m);
}

// ---- divergences ----

static void kl_of(struct model *m, struct model *other, const float *hidden, int32_t kind,
                  double beta, float *kl) {
    rlhf_forward f = {.size = sizeof f,
                      .heads = RLHF_HEAD_KL,
                      .kl_self = other->self,
                      .kl_hidden = hidden,
                      .divergence = kind,
                      .divergence_beta = beta};
    const rlhf_heads out = {.size = sizeof out, .kl = kl};
    must(m, m->ops->forward(m->self, &vec_batch, &f, &out));
}

static void close_kl(const float *a, const float *b, const char *what) {
    for (int32_t t = 0; t < VEC_TOTAL; t++)
        if (!(fabs((double)a[t] - (double)b[t]) < 1e-5 * fmax(1.0, fabs((double)a[t]))))
            fail_msg("%s of token %d: %.9g and %.9g", what, (int)t, (double)a[t], (double)b[t]);
}

// If the two models are exchanged, KL(q || p) becomes KL(p || q), and Jensen-Shannon with beta
// becomes Jensen-Shannon with 1 - beta. The models have different widths.
static void models_exchanged(void **state) {
    (void)state;
    const rlhf_compute *c = backend.compute;
    struct pair p;
    pair_open(&p, RLHF_F32, wide_gpt2, WIDE);
    float *own = test_malloc(VEC_TOTAL * D * sizeof *own), a[VEC_TOTAL], b[VEC_TOTAL];
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_HIDDEN};
    const rlhf_heads out = {.size = sizeof out, .hidden = own};
    must(&p.m, p.m.ops->forward(p.m.self, &vec_batch, &f, &out));
    const int has = (c->flags & RLHF_COMPUTE_DIVERGENCE) != 0;
    assert_int_equal((p.m.info.caps & RLHF_CAP_DIVERGENCE) != 0, has);
    if (has) {
        kl_of(&p.m, &p.ref, p.hidden, RLHF_DIVERGENCE_FORWARD, 0, a);
        kl_of(&p.ref, &p.m, own, RLHF_DIVERGENCE_REVERSE, 0, b);
        assert_true(a[VEC_TOTAL - 1] > 1e-3f);
        close_kl(a, b, "forward and reverse");
        kl_of(&p.m, &p.ref, p.hidden, RLHF_DIVERGENCE_JS, 0.3, a);
        kl_of(&p.ref, &p.m, own, RLHF_DIVERGENCE_JS, 0.7, b);
        assert_true(a[VEC_TOTAL - 1] > 1e-4f);
        close_kl(a, b, "Jensen-Shannon");
    }
    static const struct {
        int32_t kind;
        double beta;
        const char *says;
    } cases[] = {{3, 0, "divergence 3 is unknown"},
                 {RLHF_DIVERGENCE_JS, 1.5, "divergence_beta is 1.5"},
                 {RLHF_DIVERGENCE_FORWARD, 0, "has only the reverse divergence"}};
    for (size_t i = 0; i < (has ? 2 : 3); i++) {
        const rlhf_forward g = {.size = sizeof g,
                                .heads = RLHF_HEAD_KL,
                                .kl_self = p.ref.self,
                                .kl_hidden = p.hidden,
                                .divergence = cases[i].kind,
                                .divergence_beta = cases[i].beta};
        const rlhf_heads h = {.size = sizeof h, .kl = a};
        assert_true(p.m.ops->forward(p.m.self, &vec_batch, &g, &h) < 0);
        if (!strstr(host_failure(), cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", host_failure(), cases[i].says);
    }
    test_free(own);
    pair_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_of_the_policys_tokens), cmocka_unit_test(arrays_by_response_token),
        cmocka_unit_test(gradients_of_the_policys_tokens), cmocka_unit_test(wrong_turns),
        cmocka_unit_test(models_exchanged)};
    return on_backends("turns", ON_REFERENCE | ON_CPU, 1, tests, sizeof tests / sizeof *tests);
}
