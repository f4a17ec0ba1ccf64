// test_trim.c: trim() frees memory that a model holds only for speed, and does not change any bits.
#include "on_backends.h"
#include "vectors.h"

#include <string.h>

enum { MANY = 32, LENGTH = 32 };

// Returns the gradients of every parameter after one step over MANY rows. logp receives the
// log-probs.
static float *long_step(struct model *m, const rlhf_batch *b, float *logp) {
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1};
    const rlhf_heads out = {.size = sizeof out, .logp = logp};
    float *all = test_malloc((uint64_t)m->info.n_params * sizeof *all), *to = all;
    rlhf_param p = {.size = sizeof p};
    model_zero_grad(m);
    must(m, m->ops->forward(m->self, b, &f, &out));
    must(m, m->ops->backward(m->self, b, &f, &out));
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        float *x = device_read(m->c, p.grad, param_count(&p));
        memcpy(to, x, param_count(&p) * sizeof *x);
        to += param_count(&p);
        test_free(x);
    }
    return all;
}

static void test_trim(void **state) {
    (void)state;
    static const struct setting deep[] = {{"vocab_size", "61"}, {"n_positions", "32"},
                                          {"n_embd", "8"},      {"n_layer", "24"},
                                          {"n_head", "1"},      {NULL, NULL}};
    static int32_t ids[MANY * LENGTH], offset[MANY + 1], prompt_len[MANY];
    static float logp[2][MANY * LENGTH];
    const rlhf_batch b = {sizeof b, MANY, MANY * LENGTH, 0, ids, offset, prompt_len, NULL, NULL};
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1};
    const rlhf_forward plain = {.size = sizeof plain, .heads = RLHF_HEAD_LOGP};
    const rlhf_heads h = {.size = sizeof h};
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 1);
    rlhf_batch fewer = b;
    float *all[2];
    for (int32_t i = 0; i < MANY * LENGTH; i++)
        ids[i] = i * 7 % 61;
    for (int32_t i = 0; i < MANY; i++) {
        offset[i + 1] = (i + 1) * LENGTH;
        prompt_len[i] = 1;
    }
    struct model m = model_open("gpt2", deep, &o), tiny = model_open("gpt2", tiny_gpt2, &o);
    model_fill(&m, 0.3);
    const uint64_t before = m.c->bytes_in_use(m.c->ctx);
    fewer.n = MANY * 3 / 4;
    fewer.total = fewer.n * LENGTH;
    test_free(long_step(&m, &fewer, logp[0]));
    m.ops->trim(m.self);
    const uint64_t least = m.c->bytes_in_use(m.c->ctx);
    all[0] = long_step(&m, &b, logp[0]);
    const uint64_t held = m.c->bytes_in_use(m.c->ctx);
    m.ops->trim(m.self);
    const uint64_t left = m.c->bytes_in_use(m.c->ctx);
    assert_true(held > left + ((uint64_t)8 << 20) && left >= before);
    // Memory that grows with the batch is freed. The cpu backend is not compared, because its own
    // workspaces may grow with the number of rows.
    if (strcmp(backend_name(), "reference") == 0) assert_int_equal(left, least);
    assert_refused(m.ops->backward(m.self, &b, &f, &h), RLHF_E_INVALID, "no forward");
    all[1] = long_step(&m, &b, logp[1]);
    assert_memory_equal(all[0], all[1], (uint64_t)m.info.n_params * sizeof *all[0]);
    assert_memory_equal(logp[0], logp[1], sizeof logp[0]);
    assert_true(m.c->bytes_in_use(m.c->ctx) == held);
    // Buffers of a model without training are freed, too.
    must(&m, m.ops->forward(m.self, &b, &plain, &(rlhf_heads){.size = sizeof h, .logp = logp[1]}));
    m.ops->trim(m.self);
    assert_int_equal(m.c->bytes_in_use(m.c->ctx), left);
    // Small buffers are kept.
    model_fill(&tiny, 0.3);
    must(&tiny, tiny.ops->forward(tiny.self, &vec_batch, &f, &h));
    const uint64_t little = m.c->bytes_in_use(m.c->ctx);
    tiny.ops->trim(tiny.self);
    assert_true(m.c->bytes_in_use(m.c->ctx) == little);
    must(&tiny, tiny.ops->backward(tiny.self, &vec_batch, &f, &h));
    test_free(all[0]);
    test_free(all[1]);
    model_close(&tiny);
    model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trim)};
    return on_backends("trim", ON_REFERENCE | ON_CPU, 1, tests, sizeof tests / sizeof *tests);
}
