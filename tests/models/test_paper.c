// test_paper.c: what is counted on paper is what the backend says is in use once the same was done
// on it, by use.
#include "e2e.h"

#include "model/parameters.h"
#include "model/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        struct rlhf__error err = {0, ""};                                                          \
        if ((call) != RLHF_OK) fail_msg("%s: %s", #call, err.text);                                \
    } while (0)

struct fixture {
    struct e2e *files;
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    struct rlhf__session session;
    char dir[512];
};

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    const char *build = getenv("RLHF_BUILD_DIR");
    if (!f || !build || e2e_setup((void **)&f->files) != 0) return -1;
    snprintf(f->dirs.lib, sizeof f->dirs.lib, "%s/lib/rlhf/0", build);
    snprintf(f->dirs.share, sizeof f->dirs.share, "%s/share/rlhf", build);
    e2e_write(f->files, "as_llama.json",
              "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], "
              "\"vocab_size\": 260, \"max_position_embeddings\": 64, \"hidden_size\": 32, "
              "\"intermediate_size\": 48, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
              "\"num_key_value_heads\": 2, \"rms_norm_eps\": 1e-05, \"hidden_act\": \"silu\", "
              "\"initializer_range\": 0.02, \"tie_word_embeddings\": false, "
              "\"rope_theta\": 10000.0, \"bos_token_id\": 259, \"eos_token_id\": 259}\n");
    *state = f;
    return e2e_shell(f->files, "cp -r model llama && mv as_llama.json llama/config.json") ||
           rlhf__plugins_create(&f->dirs, &f->plugins, NULL) != RLHF_OK;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    rlhf__plugins_destroy(f->plugins);
    int failed = e2e_teardown((void **)&f->files);
    free(f);
    return failed;
}

// ---- what is done, on either ----

#define ROWS  3
#define TOKEN 14

// Three rows, of which the last two go on with the first where `share` says so.
static rlhf_batch rows_of(int share, int32_t *ids, int32_t *offset) {
    static const int32_t apart[] = {3, 2, 4}, shared[] = {TOKEN, 2, 4}, prefix[] = {-1, 0, 0};
    for (int i = 0; i < ROWS * TOKEN; i++)
        ids[i] = 60 + i % 50;
    for (int i = 0; i <= ROWS; i++)
        offset[i] = i * TOKEN;
    return (rlhf_batch){.size = sizeof(rlhf_batch),
                        .n = ROWS,
                        .total = ROWS * TOKEN,
                        .ids = ids,
                        .offset = offset,
                        .prompt_len = share ? shared : apart,
                        .prefix = share ? prefix : NULL};
}

static void train(const struct rlhf__model *m, int share) {
    static int32_t ids[ROWS * TOKEN], offset[ROWS + 1];
    static float logp[ROWS * TOKEN], entropy[ROWS * TOKEN], value[ROWS * TOKEN];
    const rlhf_batch b = rows_of(share, ids, offset);
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    const rlhf_forward f = {.size = sizeof f,
                            .heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_VALUE,
                            .train = 1,
                            .dist = &dist};
    const rlhf_heads h = {.size = sizeof h, .logp = logp, .entropy = entropy, .value = value};
    MUST(rlhf__model_forward(m, &b, &f, &h, &err));
    MUST(rlhf__model_backward(m, &b, &f, &h, &err));
}

static rlhf_gen *draw(const struct rlhf__model *m) {
    static const int32_t slot[] = {0, 1}, start[] = {0, 0}, ids[] = {60, 61, 62, 63, 64},
                         offset[] = {0, 2, 5};
    static const uint64_t counter[] = {0, 1};
    int32_t next[2];
    float logp[2];
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    const rlhf_gen_step s = {.size = sizeof s,
                             .n = 2,
                             .slot = slot,
                             .start = start,
                             .ids = ids,
                             .offset = offset,
                             .dist = &dist,
                             .logp_dist = &dist,
                             .counter = counter,
                             .next = next,
                             .logp = logp};
    rlhf_gen *g = NULL;
    MUST(rlhf__model_gen_open(m, 2, 40, &g, &err));
    MUST(rlhf__model_gen_step(m, g, &s, &err));
    return g;
}

// ---- paper and backend side by side ----

static uint64_t in_use(const struct fixture *f) {
    const rlhf_compute *c = f->session.models.compute;
    return c->bytes_in_use(c->ctx);
}

static uint64_t on_paper(const struct fixture *f, int32_t from, int32_t to) {
    const struct rlhf__uses *u = rlhf__paper_uses(f->session.models.paper);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < u->n; i++)
        for (int32_t k = from; k <= to; k++)
            sum += u->bytes[i][k];
    return sum;
}

// Workspaces are the backend's own business: within 10 %, of a size where that means something.
static void same(uint64_t counted, uint64_t real, uint64_t work, const char *what) {
    const uint64_t slack = work / 10;
    if (counted + slack < real || counted > real + slack)
        fail_msg("%s: %llu bytes on paper, %llu in use, %llu of them may be workspace", what,
                 (unsigned long long)counted, (unsigned long long)real, (unsigned long long)work);
}

static void compare(struct fixture *f, const char *dir, int32_t trained, int share) {
    struct rlhf__model_spec spec = {.dir = dir,
                                    .role = "policy",
                                    .start = RLHF__START_RANDOM,
                                    .trainable = trained,
                                    .frozen = !trained,
                                    .value_kind = trained ? RLHF_VALUE_MLP : RLHF_VALUE_NONE};
    struct rlhf__model_env *env = &f->session.models;
    struct rlhf__paper *paper = NULL;
    struct rlhf__model *m = NULL;
    const uint64_t before = in_use(f);
    MUST(rlhf__paper_create(env->compute, 0, &paper, &err));
    env->paper = paper;
    MUST(rlhf__model_open(env, &spec, &m, &err));
    assert_int_equal(in_use(f), before); // nothing is there
    const uint64_t open = on_paper(f, 0, RLHF__USES - 1);
    const uint64_t packed = on_paper(f, RLHF__USE_PACKED, RLHF__USE_PACKED);
    const uint64_t gradients = on_paper(f, RLHF__USE_GRADIENTS, RLHF__USE_GRADIENTS);
    assert_true(packed > 0 && packed < open);
    if (trained) train(m, share);
    const uint64_t acts = on_paper(f, RLHF__USE_ACTIVATIONS, RLHF__USE_ACTIVATIONS);
    const uint64_t work = on_paper(f, RLHF__USE_WORKSPACE, RLHF__USE_WORKSPACE);
    const uint64_t updated = on_paper(f, 0, RLHF__USES - 1); // with a language head packed by now
    assert_true(!trained == !acts);
    rlhf_gen *g = draw(m);
    const uint64_t cache = on_paper(f, RLHF__USE_CACHE, RLHF__USE_CACHE);
    const uint64_t all = on_paper(f, 0, RLHF__USES - 1);
    const uint64_t all_work = on_paper(f, RLHF__USE_WORKSPACE, RLHF__USE_WORKSPACE);
    rlhf__model_gen_close(m, g);
    env->paper = NULL;
    MUST(rlhf__model_load(m, &err));
    uint64_t values = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++)
        values += m->params[i].grad ? (uint64_t)rlhf__param_count(&m->params[i]) * 4 : 0;
    same(open, in_use(f) - before, 0, "open");
    assert_true(trained ? gradients >= values && values > 0 : gradients == 0);
    if (trained) train(m, share);
    same(updated, in_use(f) - before, work, "an update");
    g = draw(m);
    same(all, in_use(f) - before, all_work, "sampling");
    assert_int_equal(cache, (uint64_t)2 * 2 * 2 * 40 * 32 * rlhf_dtype_size(env->dtype) /
                                (strstr(dir, "llama") ? 2 : 1));
    rlhf__model_gen_close(m, g);
    rlhf__model_close(m);
    rlhf__paper_destroy(paper);
}

static void in_each_dtype(struct fixture *f, const char *backend, const char *model) {
    char dir[600];
    snprintf(dir, sizeof dir, "%s/%s", f->files->dir, model);
    for (int32_t dtype = RLHF__DTYPE_F32; dtype <= RLHF__DTYPE_BF16; dtype++)
        for (int how = 0; how < 3; how++) {
            const struct rlhf__compute_config compute = {.backend = backend, .dtype = dtype};
            const struct rlhf__run_config run = {.seed = 1, .threads = 1};
            MUST(rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run,
                                    &err));
            compare(f, dir, how < 2, how == 1);
            rlhf__session_finish(&f->session);
        }
}

static void on_the_cpu(void **state) {
    in_each_dtype(*state, "cpu", "model");
    in_each_dtype(*state, "cpu", "llama");
}

static void on_the_reference(void **state) {
    in_each_dtype(*state, "reference", "model");
    in_each_dtype(*state, "reference", "llama");
}

// ---- the language-model head's workspace ----

enum { WIDE = 2 };

// Bytes that lm_head leaves in use.
static uint64_t head_takes(const rlhf_compute *c, uint32_t rows, int32_t vocab) {
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    const uint64_t values = (uint64_t)vocab * WIDE * sizeof(float);
    rlhf_weight *w = NULL;
    rlhf_dev src = 0;
    rlhf_lm_head a = {.size = sizeof a,
                      .rows = rows,
                      .d = WIDE,
                      .vocab = vocab,
                      .dtype = RLHF_F32,
                      .dist = &dist};
    assert_int_equal(c->weight_create(c->ctx, WIDE, vocab, RLHF_F32, RLHF_WEIGHT_OUT_IN, &w), 0);
    assert_int_equal(c->alloc(c->ctx, values, &src), 0);
    assert_int_equal(c->alloc(c->ctx, rows * WIDE * sizeof(float), &a.hidden), 0);
    assert_int_equal(c->alloc(c->ctx, rows * sizeof(int32_t), &a.target), 0);
    assert_int_equal(c->alloc(c->ctx, rows * sizeof(float), &a.logp), 0);
    assert_int_equal(c->zero(c->ctx, src, values), 0);
    assert_int_equal(c->zero(c->ctx, a.hidden, rows * WIDE * sizeof(float)), 0);
    assert_int_equal(c->zero(c->ctx, a.target, rows * sizeof(int32_t)), 0);
    assert_int_equal(c->weight_pack(c->ctx, w, src), 0);
    a.weight = w;
    const uint64_t before = c->bytes_in_use(c->ctx);
    assert_int_equal(c->lm_head(c->ctx, &a), 0);
    const uint64_t taken = c->bytes_in_use(c->ctx) - before;
    c->release(c->ctx, a.logp);
    c->release(c->ctx, a.target);
    c->release(c->ctx, a.hidden);
    c->release(c->ctx, src);
    c->weight_destroy(c->ctx, w);
    return taken;
}

// What the CPU backend takes for `rows` rows when `mib` is asked for, after a look at the paper.
static uint64_t head_on_both(struct fixture *f, int64_t mib, uint32_t rows, int32_t vocab) {
    const struct rlhf__compute_config compute = {.backend = "cpu", .workspace_mib = mib};
    const struct rlhf__run_config run = {.seed = 1, .threads = 1};
    struct rlhf__paper *paper = NULL;
    MUST(rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run, &err));
    const rlhf_compute *c = f->session.models.compute;
    MUST(rlhf__paper_create(c, (uint64_t)mib << 20, &paper, &err));
    const uint64_t counted = head_takes(rlhf__paper_table(paper), rows, vocab);
    const uint64_t real = head_takes(c, rows, vocab);
    same(counted, real, real, "the head's workspace");
    rlhf__paper_destroy(paper);
    rlhf__session_finish(&f->session);
    return real;
}

// A small vocabulary's logits fit 384 MiB; a larger one has room for 1536 rows in f32, however
// large; what is asked for is taken.
static void the_workspace_grows_with_the_vocabulary(void **state) {
    const uint64_t all = (uint64_t)1200 * 100000 * sizeof(float), mib = 1 << 20;
    const uint64_t taken = head_on_both(*state, 0, 1200, 100000);
    assert_true(taken >= all && taken < all + all / 50);
    assert_true(head_on_both(*state, 3, 1200, 1000) < 3 * mib + mib / 2);
    assert_true(head_on_both(*state, 1, 600, 8000) < 9 * mib); // 256 rows, as few as there are
}

// ---- Muon's workspaces ----

// Bytes that a step of Muon leaves in use; weights are of `dtype`.
static uint64_t muon_takes(const rlhf_compute *c, int32_t dtype, int32_t rows, int32_t cols) {
    const rlhf_muon how = {sizeof how, 1, 1, 0, 0.02, 0.95, 0.0, 1.0};
    const uint64_t bytes = (uint64_t)rows * (uint64_t)cols * sizeof(float);
    rlhf_weight *weight = NULL;
    rlhf_dev at[3]; // weight, gradient, momentum
    assert_int_equal(c->weight_create(c->ctx, 16, 16, dtype, 0, &weight), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(c->alloc(c->ctx, bytes, &at[i]), 0);
        assert_int_equal(c->zero(c->ctx, at[i], bytes), 0);
    }
    const uint64_t before = c->bytes_in_use(c->ctx);
    assert_int_equal(c->muon(c->ctx, at[0], at[1], at[2], rows, cols, &how), 0);
    const uint64_t taken = c->bytes_in_use(c->ctx) - before;
    for (int i = 0; i < 3; i++)
        c->release(c->ctx, at[i]);
    c->weight_destroy(c->ctx, weight);
    return taken;
}

// In both dtypes on the CPU, wide and tall; within 3 %.
static void muon_on_both(struct fixture *f) {
    static const int32_t sizes[][2] = {{384, 1024}, {1024, 384}, {512, 512}};
    const struct rlhf__run_config run = {.seed = 1, .threads = 1};
    for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const struct rlhf__compute_config compute = {.backend = "cpu"};
            const int32_t rows = sizes[i][0], cols = sizes[i][1];
            struct rlhf__paper *paper = NULL;
            MUST(rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run,
                                    &err));
            const rlhf_compute *c = f->session.models.compute;
            MUST(rlhf__paper_create(c, 0, &paper, &err));
            const uint64_t counted = muon_takes(rlhf__paper_table(paper), dtype, rows, cols);
            const uint64_t real = muon_takes(c, dtype, rows, cols);
            printf("     %d x %d in %s: %llu bytes on paper, %llu in use\n", rows, cols,
                   dtype == RLHF_BF16 ? "bf16" : "f32", (unsigned long long)counted,
                   (unsigned long long)real);
            same(counted, real, 3 * real / 10, "Muon");
            rlhf__paper_destroy(paper);
            rlhf__session_finish(&f->session);
        }
}

// At the machine's own level, and at one whose products of bf16 are made on f32 copies.
static void muon_is_counted(void **state) {
    const char *cap = getenv("RLHF_CPU_ISA");
    char was[32] = "";
    if (cap) snprintf(was, sizeof was, "%s", cap);
    muon_on_both(*state);
    setenv("RLHF_CPU_ISA", "avx2", 1);
    muon_on_both(*state);
    if (cap)
        setenv("RLHF_CPU_ISA", was, 1);
    else
        unsetenv("RLHF_CPU_ISA");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(muon_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(on_the_cpu, setup, teardown),
        cmocka_unit_test_setup_teardown(on_the_reference, setup, teardown),
        cmocka_unit_test_setup_teardown(the_workspace_grows_with_the_vocabulary, setup, teardown)};
    return cmocka_run_group_tests_name("models: on paper and in memory", tests, NULL, NULL);
}
