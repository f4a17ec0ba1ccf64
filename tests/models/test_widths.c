// tests/models/test_widths.c: heads wider than d / n_head, names for unequal pieces of a matrix,
// and cases that the core refuses. Uses architectures that no shipped plugin has.
#include "support.h"

#include "transformer/internal.h"

#include <string.h>

enum { D = 12, HEADS = 3, DIM = 8, WIDE = 16, VOCAB = 31, LAYERS = 2, TOTAL = 13 };

static const struct rlhf_tf_name globals[] = {{RLHF_TF_WTE, RLHF_TF_ALL, "wte.weight"},
                                              {RLHF_TF_WPE, RLHF_TF_ALL, "wpe.weight"},
                                              {RLHF_TF_FINAL_G, RLHF_TF_ALL, "ln_f.weight"},
                                              {RLHF_TF_FINAL_B, RLHF_TF_ALL, "ln_f.bias"},
                                              {0, RLHF_TF_ALL, NULL}};
static const struct rlhf_tf_name layers[] = {{RLHF_TF_N1_G, RLHF_TF_ALL, "ln_1.weight"},
                                             {RLHF_TF_N1_B, RLHF_TF_ALL, "ln_1.bias"},
                                             {RLHF_TF_QKV_W, RLHF_TF_QUERIES, "q.weight"},
                                             {RLHF_TF_QKV_W, RLHF_TF_KEYS, "k.weight"},
                                             {RLHF_TF_QKV_W, RLHF_TF_VALUES, "v.weight"},
                                             {RLHF_TF_PROJ_W, RLHF_TF_ALL, "proj.weight"},
                                             {RLHF_TF_N2_G, RLHF_TF_ALL, "ln_2.weight"},
                                             {RLHF_TF_N2_B, RLHF_TF_ALL, "ln_2.bias"},
                                             {RLHF_TF_FC_W, RLHF_TF_ALL, "fc.weight"},
                                             {RLHF_TF_OUT_W, RLHF_TF_ALL, "out.weight"},
                                             {0, RLHF_TF_ALL, NULL}};

static struct rlhf_tf_arch arch_of(int32_t head_dim) {
    return (struct rlhf_tf_arch){.n_vocab = VOCAB,
                                 .n_ctx = 16,
                                 .d = D,
                                 .n_layer = LAYERS,
                                 .d_inner = 20,
                                 .n_head = HEADS,
                                 .n_kv_head = HEADS,
                                 .head_dim = head_dim,
                                 .causal = 1,
                                 .act = RLHF_ACT_GELU_TANH,
                                 .out_in = 1,
                                 .tied = 1,
                                 .attn_scale = 0.3, // scale of both widths: the added part is zero
                                 .norm_eps = 1e-5,
                                 .init_std = 0.02,
                                 .layer_prefix = "h.%d.",
                                 .base_prefix = "",
                                 .globals = globals,
                                 .layers = layers};
}

static const rlhf_plugin descriptor = {.ops = &rlhf_tf_ops, .destroy = rlhf_tf_destroy};

static struct model open_arch(const struct backend *b, const struct rlhf_tf_arch *a) {
    struct model m = {.plugin = &descriptor, .ops = &rlhf_tf_ops, .c = b->compute};
    const rlhf_model_open o = open_args(b, RLHF_F32, 1);
    must(&m, rlhf_tf_create(fake_host(), a, &m.self));
    must(&m, m.ops->open(m.self, &o));
    return m;
}

// Maps element (r, c) of the narrow matrix to the wide matrix, and returns its index there. The
// heads of queries, keys and values follow each other along the rows. The heads of the projection
// follow each other along the columns.
static uint64_t wide_at(const char *name, uint64_t r, uint64_t c, uint64_t cols) {
    const int32_t heads_down = strstr(name, ".q.") || strstr(name, ".k.") || strstr(name, ".v.");
    const int32_t heads_across = strstr(name, ".proj.") != NULL;
    if (heads_down) r = r / DIM * WIDE + r % DIM;
    if (heads_across) c = c / DIM * WIDE + c % DIM;
    return r * (heads_across ? HEADS * WIDE : cols) + c;
}

// Tensor i of both models, either its value or its gradient.
struct pair {
    float *narrow, *wide;
    uint64_t n, n_wide, cols;
    char name[32];
};

static int32_t pair_read(struct model *narrow, struct model *wide, uint32_t i, int32_t grad,
                         struct pair *out, rlhf_dev *wide_value) {
    rlhf_param p = {.size = sizeof p}, q = {.size = sizeof q};
    if (narrow->ops->param(narrow->self, i, &p) != RLHF_OK) return 0;
    must(wide, wide->ops->param(wide->self, i, &q));
    assert_string_equal(p.name, q.name);
    snprintf(out->name, sizeof out->name, "%s", p.name);
    out->n = param_count(&p);
    out->n_wide = param_count(&q);
    out->cols = p.ndim == 2 ? (uint64_t)p.shape[1] : 1;
    out->narrow = device_read(narrow->c, grad ? p.grad : p.value, out->n);
    out->wide = device_read(wide->c, grad ? q.grad : q.value, out->n_wide);
    *wide_value = q.value;
    return 1;
}

static void pair_free(struct pair *p) {
    test_free(p->narrow);
    test_free(p->wide);
}

static void widen(struct model *narrow, struct model *wide) {
    struct pair p;
    rlhf_dev to;
    for (uint32_t i = 0; pair_read(narrow, wide, i, 0, &p, &to); i++) {
        memset(p.wide, 0, p.n_wide * sizeof *p.wide);
        for (uint64_t k = 0; k < p.n; k++)
            p.wide[wide_at(p.name, k / p.cols, k % p.cols, p.cols)] = p.narrow[k];
        device_write(wide->c, to, p.wide, p.n_wide);
        pair_free(&p);
    }
    must(wide, wide->ops->refresh(wide->self));
}

static const int32_t ids[TOTAL] = {3, 14, 15, 9, 26, 5, 30, 8, 9, 7, 9, 3, 2};

static void run(struct model *m, float *logp) {
    static const int32_t offset[] = {0, 6, TOTAL}, prompt[] = {2, 1};
    rlhf_batch b = {.size = sizeof b,
                    .n = 2,
                    .total = TOTAL,
                    .ids = ids,
                    .offset = offset,
                    .prompt_len = prompt};
    rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .train = 1};
    rlhf_heads h = {.size = sizeof h, .logp = logp}, g = {.size = sizeof g};
    float d[TOTAL];
    for (int32_t t = 0; t < TOTAL; t++)
        d[t] = 0.1f * (float)(t % 5 - 2);
    g.logp = d;
    must(m, m->ops->forward(m->self, &b, &f, &h));
    must(m, m->ops->backward(m->self, &b, &f, &g));
}

// In every wide head, half of the numbers are zero. So both models compute the same results.
static void wide_heads_on(const char *name) {
    struct backend b = backend_open(name, 2, 0);
    if (!b.compute) skip();
    const struct rlhf_tf_arch a = arch_of(DIM), w = arch_of(WIDE);
    struct model narrow = open_arch(&b, &a), wide = open_arch(&b, &w);
    float want[TOTAL], got[TOTAL];
    struct pair p;
    rlhf_dev to;
    model_fill(&narrow, 0.3);
    widen(&narrow, &wide);
    run(&narrow, want);
    run(&wide, got);
    assert_tensor_close(got, want, TOTAL, 1e-5, 1e-6, "logp");
    assert_true(want[3] < -0.1f);
    for (uint32_t i = 0; pair_read(&narrow, &wide, i, 1, &p, &to); i++) {
        float *picked = test_malloc(p.n * sizeof *picked);
        for (uint64_t k = 0; k < p.n; k++)
            picked[k] = p.wide[wide_at(p.name, k / p.cols, k % p.cols, p.cols)];
        assert_tensor_close(picked, p.narrow, p.n, 1e-4, 1e-6, p.name);
        test_free(picked);
        pair_free(&p);
    }
    model_close(&wide);
    model_close(&narrow);
    backend_close(&b);
}

static void test_wide_heads_reference(void **state) {
    (void)state;
    wide_heads_on("reference");
}

static void test_wide_heads_cpu(void **state) {
    (void)state;
    wide_heads_on("cpu");
}

// A token that was sampled with the cache has the log-prob that forward() gives.
static void test_wide_heads_decode(void **state) {
    (void)state;
    struct backend b = backend_open("cpu", 2, 0);
    if (!b.compute) skip();
    const struct rlhf_tf_arch a = arch_of(WIDE);
    struct model m = open_arch(&b, &a);
    rlhf_gen *g = NULL;
    int32_t row[10] = {3, 14, 15}, slot = 1, start = 0, len = 3;
    float drawn[10], scored[10];
    model_fill(&m, 0.3);
    must(&m, m.ops->gen_open(m.self, 2, 10, &g));
    while (len < 10) {
        const int32_t offset[] = {0, len - start};
        const uint64_t counter = (uint64_t)len;
        rlhf_gen_step s = {.size = sizeof s, .n = 1, .slot = &slot, .start = &start, .seed = 5};
        s.ids = row + start;
        s.offset = offset;
        s.counter = &counter;
        s.next = row + len;
        s.logp = drawn + len;
        must(&m, m.ops->gen_step(m.self, g, &s));
        start = len++;
    }
    m.ops->gen_close(m.self, g);
    const int32_t offset[] = {0, 10}, prompt = 3;
    rlhf_batch batch = {.size = sizeof batch,
                        .n = 1,
                        .total = 10,
                        .ids = row,
                        .offset = offset,
                        .prompt_len = &prompt};
    rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
    rlhf_heads h = {.size = sizeof h, .logp = scored};
    must(&m, m.ops->forward(m.self, &batch, &f, &h));
    assert_memory_equal(drawn + 3, scored + 3, 7 * sizeof *drawn);
    model_close(&m);
    backend_close(&b);
}

static void test_unequal_pieces(void **state) {
    (void)state;
    struct rlhf__tf m = {.arch = arch_of(DIM)};
    m.arch.n_head = 6;
    m.arch.n_kv_head = 2;
    const struct rlhf_tf_name names[] = {{RLHF_TF_QKV_W, RLHF_TF_QUERIES, "q"},
                                         {RLHF_TF_QKV_W, RLHF_TF_KEYS, "k"},
                                         {RLHF_TF_QKV_W, RLHF_TF_VALUES, "v"},
                                         {RLHF_TF_QKV_W, RLHF_TF_ALL, "qkv"}};
    const int32_t want[][2] = {{0, 48}, {48, 16}, {64, 16}, {0, 80}};
    for (int32_t i = 0; i < 4; i++) {
        const struct rlhf__tf_span s = rlhf__tf_piece_rows(&m, 0, &names[i]);
        assert_int_equal(s.from, want[i][0]);
        assert_int_equal(s.count, want[i][1]);
    }
}

// The halves of a gated product, and optional parts of an architecture.
static void test_gated_pieces(void **state) {
    (void)state;
    struct rlhf__tf m = {.arch = arch_of(DIM)};
    m.arch.gated = 1;
    m.arch.norm = RLHF_TF_NORM_RMS;
    m.arch.bias = RLHF_TF_BIAS_PROJ;
    const struct rlhf_tf_name gate = {RLHF_TF_FC_W, RLHF_TF_GATE, "gate"},
                              up = {RLHF_TF_FC_W, RLHF_TF_UP, "up"};
    assert_int_equal(rlhf__tf_piece_rows(&m, 0, &gate).from, 0);
    assert_int_equal(rlhf__tf_piece_rows(&m, 0, &up).from, 20);
    assert_int_equal(rlhf__tf_piece_rows(&m, 0, &up).count, 20);
    assert_int_equal(rlhf__tf_slot_shape(&m, 0, RLHF_TF_FC_W).rows, 40);
    assert_int_equal(rlhf__tf_slot_shape(&m, 0, RLHF_TF_N1_G).rows, D);
    assert_int_equal(rlhf__tf_slot_shape(&m, 0, RLHF_TF_N1_B).rows, 0);
    assert_int_equal(rlhf__tf_slot_shape(&m, -1, RLHF_TF_FINAL_B).rows, 0);
    assert_int_equal(rlhf__tf_slot_shape(&m, 0, RLHF_TF_QKV_B).rows, 0);
    assert_int_equal(rlhf__tf_slot_shape(&m, 0, RLHF_TF_PROJ_B).rows, D);
    assert_int_equal(rlhf__tf_slot_shape(&m, 0, RLHF_TF_OUT_B).rows, 0);
    assert_int_equal(rlhf__tf_slot_shape(&m, 0, RLHF_TF_QN_G).rows, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide_heads_reference), cmocka_unit_test(test_wide_heads_cpu),
        cmocka_unit_test(test_wide_heads_decode),    cmocka_unit_test(test_unequal_pieces),
        cmocka_unit_test(test_gated_pieces),
    };
    return cmocka_run_group_tests_name("widths", tests, NULL, NULL);
}
