// test_memory_plan.c: for each use of memory, the plan has as many bytes as a backend has in use
// after the same calls. The plan adds up the seconds of the calls.
#include "e2e.h"

#include "model/parameters.h"
#include "model/session.h"

#include <math.h>
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
    const char *build = getenv("RLHF_BUILD_DIR");
    struct fixture *f = build ? calloc(1, sizeof *f) : NULL;
    *state = f;
    if (!f || e2e_setup((void **)&f->files) != 0) return -1;
    snprintf(f->dirs.lib, sizeof f->dirs.lib, "%s/lib/rlhf/1", build);
    snprintf(f->dirs.share, sizeof f->dirs.share, "%s/share/rlhf", build);
    e2e_write(f->files, "as_llama.json",
              "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], "
              "\"vocab_size\": 260, \"max_position_embeddings\": 64, \"hidden_size\": 32, "
              "\"intermediate_size\": 48, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
              "\"num_key_value_heads\": 2, \"rms_norm_eps\": 1e-05, \"hidden_act\": \"silu\", "
              "\"initializer_range\": 0.02, \"tie_word_embeddings\": false, "
              "\"rope_theta\": 10000.0, \"bos_token_id\": 259, \"eos_token_id\": 259}\n");
#define NARROW                                                                                     \
    "\"vocab_size\": 260, \"max_position_embeddings\": 64, \"hidden_size\": 32, "                  \
    "\"intermediate_size\": 48, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "            \
    "\"num_key_value_heads\": 2, \"bos_token_id\": 259, \"eos_token_id\": 259}\n"
    e2e_write(f->files, "as_lfm2.json",
              "{\"model_type\": \"lfm2\", \"full_attn_idxs\": [1], " NARROW);
    e2e_write(f->files, "as_qwen3_5.json",
              "{\"model_type\": \"qwen3_5_text\", \"full_attention_interval\": 2, \"head_dim\": 8, "
              "\"linear_num_key_heads\": 1, \"linear_num_value_heads\": 2, "
              "\"linear_key_head_dim\": 16, \"linear_value_head_dim\": 24, " NARROW);
    e2e_write(f->files, "quantised.json",
              "{\"model_type\": \"llama\", \"hidden_size\": 256, \"num_hidden_layers\": 2, "
              "\"intermediate_size\": 256, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
              "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0, "
              "\"tie_word_embeddings\": false, \"vocab_size\": 290, \"bos_token_id\": 0, "
              "\"eos_token_id\": 0}\n");
    if (e2e_shell(f->files, "command -v python3") != 0) print_message("without python3\n");
    return e2e_shell(
               f->files,
               "for m in llama lfm2 qwen3_5; do cp -r model $m && mv as_$m.json $m/config.json || "
               "exit 1; done && "
               "{ ! command -v python3 || python3 \"$RLHF_SOURCE_DIR/tests/exact/gguf_model.py\" "
               "quantised.gguf \"$RLHF_BUILD_DIR/tests/hf/dirs/gpt2/tokenizer.json\" "
               "quantised.json q=Q4_0,v=Q6_K,up=Q5_0,head=Q6_K,*=Q4_K; }") ||
           rlhf__plugins_open(&f->dirs, &f->plugins, NULL) != RLHF_OK;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    rlhf__plugins_close(f->plugins);
    int failed = e2e_teardown((void **)&f->files);
    free(f);
    return failed;
}

// ---- the calls ----

#define ROWS  3
#define TOKEN 14

// Makes three rows. If `share` is set, the last two continue the first.
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
    int32_t next[2 + RLHF__TAIL];
    float logp[2 + RLHF__TAIL];
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

// ---- plan and backend side by side ----

static uint64_t in_use(const struct fixture *f) {
    const rlhf_compute *c = f->session.models.compute;
    return c->bytes_in_use(c->ctx);
}

static uint64_t planned(const struct fixture *f, int32_t from, int32_t to) {
    const struct rlhf__uses *u = rlhf__memory_plan_uses(f->session.models.memory_plan);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < u->n; i++)
        for (int32_t k = from; k <= to; k++)
            sum += u->bytes[i][k];
    return sum;
}

// Does the same for workspaces. The backend states their sizes.
static void same(uint64_t counted, uint64_t real, const char *what) {
    if (counted != real)
        fail_msg("%s: %llu bytes on the plan, %llu in use", what, (unsigned long long)counted,
                 (unsigned long long)real);
}

// Bytes of a session's keys, values and states, with two slots of 40 tokens.
static uint64_t cache_of(const char *dir, int32_t dtype) {
    const uint64_t size = rlhf_dtype_size(dtype);
    const uint64_t keys = strstr(dir, ".gguf")    ? 2 * 64
                          : strstr(dir, "/model") ? 32
                                                  : 32 / 2; // of all heads
    const uint64_t layer = (uint64_t)2 * 2 * 40 * keys * size;
    // the last two of 32 channels; the last three of 80 channels, and two heads of 16 x 24
    const uint64_t conv = 2 * (2 * 32 * size), delta = 2 * ((3 * 80 * size + 63) / 64 * 64);
    if (strstr(dir, "/lfm2")) return layer + conv;
    if (strstr(dir, "/qwen3_5")) return layer + delta + (uint64_t)2 * 2 * 16 * 24 * sizeof(float);
    return 2 * layer;
}

static void compare(struct fixture *f, const char *dir, int32_t trained, int share) {
    const int file = strstr(dir, ".gguf") != NULL; // its matrices stay quantised
    struct rlhf__model_spec spec = {
        .dir = dir,
        .role = "policy",
        .start = file ? RLHF__START_WEIGHTS : RLHF__START_RANDOM,
        .adapter = {.rank = file && trained ? 4 : 0, .targets = "all-linear"},
        .trainable = trained,
        .frozen = !trained,
        .value_kind = trained ? RLHF_VALUE_MLP : RLHF_VALUE_NONE};
    struct rlhf__model_env *env = &f->session.models;
    struct rlhf__memory_plan *plan = NULL;
    struct rlhf__model *m = NULL;
    const uint64_t before = in_use(f);
    MUST(rlhf__memory_plan_open(env->compute, &plan, &err));
    env->memory_plan = plan;
    MUST(rlhf__model_open(env, &spec, &m, &err));
    assert_int_equal(in_use(f), before); // nothing is allocated
    const uint64_t open = planned(f, 0, RLHF__USES - 1);
    const uint64_t packed = planned(f, RLHF__USE_PACKED, RLHF__USE_PACKED);
    const uint64_t gradients = planned(f, RLHF__USE_GRADIENTS, RLHF__USE_GRADIENTS);
    assert_true(packed > 0 && packed < open);
    if (trained) train(m, share);
    const uint64_t acts = planned(f, RLHF__USE_ACTIVATIONS, RLHF__USE_ACTIVATIONS);
    const uint64_t updated = planned(f, 0, RLHF__USES - 1); // the language-model head is packed now
    assert_true(!trained == !acts);
    rlhf_gen *g = draw(m);
    const uint64_t cache = planned(f, RLHF__USE_CACHE, RLHF__USE_CACHE);
    const uint64_t all = planned(f, 0, RLHF__USES - 1);
    rlhf__model_gen_close(m, g);
    env->memory_plan = NULL;
    MUST(rlhf__model_load(m, &err));
    uint64_t values = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++)
        values += m->params[i].grad ? (uint64_t)rlhf__param_count(&m->params[i]) * 4 : 0;
    same(open, in_use(f) - before, "open");
    assert_true(trained ? gradients >= values && values > 0 : gradients == 0);
    if (trained) train(m, share);
    same(updated, in_use(f) - before, "an update");
    g = draw(m);
    same(all, in_use(f) - before, "sampling");
    assert_int_equal(cache, cache_of(dir, env->dtype));
    rlhf__model_gen_close(m, g);
    rlhf__model_close(m);
    rlhf__memory_plan_close(plan);
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

static void on_the_reference(void **state) {
    in_each_dtype(*state, "reference", "model");
    in_each_dtype(*state, "reference", "llama");
    in_each_dtype(*state, "reference", "lfm2");
    in_each_dtype(*state, "reference", "qwen3_5");
}

// ---- the language-model head's workspace ----

enum { WIDE = 2 };

// Returns the number of bytes that lm_head leaves in use.
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

// Returns how many bytes the CPU backend takes for `rows` rows with compute.workspace_mib=`mib`.
// Asserts that the plan has the same number.
static uint64_t head_on_both(struct fixture *f, int64_t mib, uint32_t rows, int32_t vocab) {
    const struct rlhf__compute_config compute = {.backend = "cpu", .workspace_mib = mib};
    const struct rlhf__run_config run = {.seed = 1, .threads = 1};
    struct rlhf__memory_plan *plan = NULL;
    MUST(rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run, &err));
    const rlhf_compute *c = f->session.models.compute;
    MUST(rlhf__memory_plan_open(c, &plan, &err));
    const uint64_t counted = head_takes(rlhf__memory_plan_table(plan), rows, vocab);
    const uint64_t real = head_takes(c, rows, vocab);
    same(counted, real, "the head's workspace");
    rlhf__memory_plan_close(plan);
    rlhf__session_finish(&f->session);
    return real;
}

// By default, the logits may take 384 MiB, however large the vocabulary is. A size that the user
// sets is kept.
static void the_workspace_does_not_grow_with_the_vocabulary(void **state) {
    const uint64_t mib = 1 << 20;
    const uint64_t taken = head_on_both(*state, 0, 400, 262144);
    assert_true(taken >= 384 * mib && taken < 392 * mib);
    assert_true(head_on_both(*state, 3, 1200, 1000) < 3 * mib + mib / 2);
    // there are never fewer than 256 rows
    assert_true(head_on_both(*state, 1, 600, 8000) < 9 * mib);
}

// ---- Muon's workspaces ----

// Returns the number of bytes that a step of Muon leaves in use. The weights have the dtype
// `dtype`.
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

// Checks Muon in both dtypes on the CPU, for wide and tall matrices.
static void muon_on_both(struct fixture *f) {
    static const int32_t sizes[][2] = {{384, 1024}, {1024, 384}, {512, 512}};
    const struct rlhf__run_config run = {.seed = 1, .threads = 1};
    for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const struct rlhf__compute_config compute = {.backend = "cpu"};
            const int32_t rows = sizes[i][0], cols = sizes[i][1];
            struct rlhf__memory_plan *plan = NULL;
            MUST(rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run,
                                    &err));
            const rlhf_compute *c = f->session.models.compute;
            MUST(rlhf__memory_plan_open(c, &plan, &err));
            const uint64_t counted = muon_takes(rlhf__memory_plan_table(plan), dtype, rows, cols);
            const uint64_t real = muon_takes(c, dtype, rows, cols);
            printf("     %d x %d in %s: %llu bytes on the plan, %llu in use\n", rows, cols,
                   dtype == RLHF_BF16 ? "bf16" : "f32", (unsigned long long)counted,
                   (unsigned long long)real);
            same(counted, real, "Muon");
            rlhf__memory_plan_close(plan);
            rlhf__session_finish(&f->session);
        }
}

// Runs the check at the machine's own level, and at a level that computes bf16 products on f32
// copies. (aarch64 has only one level, which computes them in this way.)
static void at_two_levels(struct fixture *f, void (*check)(struct fixture *)) {
#ifdef __aarch64__
    check(f);
#else
    const char *cap = getenv("RLHF_CPU_ISA");
    char was[32] = "";
    if (cap) snprintf(was, sizeof was, "%s", cap);
    check(f);
    setenv("RLHF_CPU_ISA", "avx2", 1);
    check(f);
    if (cap)
        setenv("RLHF_CPU_ISA", was, 1);
    else
        unsetenv("RLHF_CPU_ISA");
#endif
}

static void muon_is_counted(void **state) { at_two_levels(*state, muon_on_both); }

static void models_on_the_cpu(struct fixture *f) {
    in_each_dtype(f, "cpu", "model");
    in_each_dtype(f, "cpu", "llama");
    in_each_dtype(f, "cpu", "lfm2");
    in_each_dtype(f, "cpu", "qwen3_5");
    if (e2e_exists(f->files, "quantised.gguf")) in_each_dtype(f, "cpu", "quantised.gguf");
}

static void on_the_cpu(void **state) { at_two_levels(*state, models_on_the_cpu); }

// ---- matrix products, and the head in blocks of rows ----

enum { ROWS_LONG = 600, IN = 48, OUT = 5000, RANK = 8 };

static rlhf_dev zeros(const rlhf_compute *c, uint64_t n) {
    rlhf_dev at = NULL;
    assert_int_equal(c->alloc(c->ctx, n * sizeof(float), &at), 0);
    assert_int_equal(c->zero(c->ctx, at, n * sizeof(float)), 0);
    return at;
}

// Makes a packed weight with `k` inputs, either dense or of two blocks.
static rlhf_weight *weight_of(const rlhf_compute *c, int32_t dtype, int32_t k, int32_t blocks) {
    static const int32_t from[] = {0, 100}, count[] = {50, 70};
    const rlhf_blocks b = {sizeof b, OUT, RANK, dtype, RLHF_WEIGHT_BACKWARD, 2, from, count, 2.0};
    rlhf_weight *w = NULL;
    rlhf_dev src = zeros(c, (uint64_t)k * OUT);
    if (blocks)
        assert_int_equal(c->weight_create_blocks(c->ctx, &b, &w), 0);
    else
        assert_int_equal(
            c->weight_create(c->ctx, k, OUT, dtype, RLHF_WEIGHT_OUT_IN | RLHF_WEIGHT_BACKWARD, &w),
            0);
    assert_int_equal(c->weight_pack(c->ctx, w, src), 0);
    c->release(c->ctx, src);
    return w;
}

static void head_both_ways(const rlhf_compute *c, int32_t dtype, const rlhf_weight *w, rlhf_dev x,
                           rlhf_dev dw) {
    const rlhf_dist dist = RLHF_DIST(0.7, 0.9, 50, 0);
    rlhf_dev f = zeros(c, 4 * ROWS_LONG), dx = zeros(c, (uint64_t)ROWS_LONG * IN);
    rlhf_lm_head a = {.size = sizeof a,
                      .rows = ROWS_LONG,
                      .d = IN,
                      .vocab = OUT,
                      .dtype = dtype,
                      .dist = &dist,
                      .hidden = x,
                      .weight = w,
                      .target = f,
                      .logp = rlhf_dev_at(f, 4 * ROWS_LONG),
                      .kl = rlhf_dev_at(f, 8 * ROWS_LONG),
                      .ref_hidden = x,
                      .ref_weight = w,
                      .d_kl = rlhf_dev_at(f, 12 * ROWS_LONG),
                      .d_hidden = dx,
                      .d_weight = dw};
    assert_int_equal(c->lm_head(c->ctx, &a), 0);
    assert_int_equal(c->lm_head_bwd(c->ctx, &a), 0);
    c->release(c->ctx, f);
    c->release(c->ctx, dx);
}

// Returns the number of bytes that all these products together leave in use.
static uint64_t products_take(const rlhf_compute *c, int32_t dtype) {
    const uint64_t before = c->bytes_in_use(c->ctx);
    rlhf_weight *w = weight_of(c, dtype, IN, 0), *b = weight_of(c, dtype, 2 * RANK, 1);
    rlhf_dev x = zeros(c, (uint64_t)ROWS_LONG * IN), y = zeros(c, (uint64_t)ROWS_LONG * OUT);
    rlhf_dev dw = zeros(c, (uint64_t)IN * OUT), db = zeros(c, OUT);
    rlhf_linear_sum sum = {.size = sizeof sum,
                           .rows = ROWS_LONG,
                           .out_dtype = dtype,
                           .out = y,
                           .x = x,
                           .x2 = x,
                           .w = w,
                           .w2 = b};
    assert_int_equal(c->linear(c->ctx, y, dtype, 0, x, w, db, 100), 0);
    assert_int_equal(c->linear_dx(c->ctx, x, dtype, 0, y, w, ROWS_LONG), 0);
    assert_int_equal(c->linear_dw(c->ctx, dw, db, x, y, w, ROWS_LONG), 0);
    assert_int_equal(c->linear_dw(c->ctx, dw, NULL, x, y, b, ROWS_LONG), 0);
    assert_int_equal(c->linear_sum(c->ctx, &sum), 0);
    sum.across = 1; // a sum over more than 4096 outputs
    sum.out = x;
    sum.x = sum.x2 = y;
    sum.w2 = w;
    assert_int_equal(c->linear_sum(c->ctx, &sum), 0);
    head_both_ways(c, dtype, w, x, dw);
    c->release(c->ctx, x);
    c->release(c->ctx, y);
    c->release(c->ctx, dw);
    c->release(c->ctx, db);
    c->weight_destroy(c->ctx, w);
    c->weight_destroy(c->ctx, b);
    return c->bytes_in_use(c->ctx) - before;
}

static void products_on_both(struct fixture *f) {
    const struct rlhf__run_config run = {.seed = 1, .threads = 2};
    for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
        const struct rlhf__compute_config compute = {.backend = "cpu", .workspace_mib = 1};
        struct rlhf__memory_plan *plan = NULL;
        MUST(rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run,
                                &err));
        const rlhf_compute *c = f->session.models.compute;
        MUST(rlhf__memory_plan_open(c, &plan, &err));
        const uint64_t counted = products_take(rlhf__memory_plan_table(plan), dtype);
        same(counted, products_take(c, dtype), dtype == RLHF_BF16 ? "bf16" : "f32");
        rlhf__memory_plan_close(plan);
        rlhf__session_finish(&f->session);
    }
}

static void products_are_counted(void **state) { at_two_levels(*state, products_on_both); }

// ---- a head whose reference alone is quantised ----

enum { REF_ROWS = 40, REF_IN = 64, REF_OUT = 512 };

// Returns the number of bytes that lm_head leaves in use.
static uint64_t quantised_reference_takes(const rlhf_compute *c, int32_t dtype) {
    static const uint8_t blocks[REF_IN / 32 * REF_OUT * 34];
    static const int32_t format[] = {RLHF_FORMAT_Q8_0}, count[] = {REF_OUT};
    const rlhf_quantised q = {sizeof q, REF_IN, REF_OUT, dtype, 0, 1, format, count};
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    rlhf_weight *w = NULL, *ref = NULL;
    rlhf_dev src = zeros(c, (uint64_t)REF_IN * REF_OUT), f = zeros(c, 3 * REF_ROWS);
    const rlhf_dev x = zeros(c, (uint64_t)REF_ROWS * REF_IN);
    assert_int_equal(c->weight_create(c->ctx, REF_IN, REF_OUT, dtype, RLHF_WEIGHT_OUT_IN, &w), 0);
    assert_int_equal(c->weight_pack(c->ctx, w, src), 0);
    assert_int_equal(c->weight_create_quantised(c->ctx, &q, &ref), 0);
    assert_int_equal(c->weight_put(c->ctx, ref, 0, REF_OUT, blocks), 0);
    const uint64_t before = c->bytes_in_use(c->ctx);
    const rlhf_lm_head a = {.size = sizeof a,
                            .rows = REF_ROWS,
                            .d = REF_IN,
                            .vocab = REF_OUT,
                            .dtype = dtype,
                            .dist = &dist,
                            .hidden = x,
                            .weight = w,
                            .target = f,
                            .logp = rlhf_dev_at(f, 4 * REF_ROWS),
                            .kl = rlhf_dev_at(f, 8 * REF_ROWS),
                            .ref_hidden = x,
                            .ref_weight = ref};
    assert_int_equal(c->lm_head(c->ctx, &a), 0);
    const uint64_t taken = c->bytes_in_use(c->ctx) - before;
    c->release(c->ctx, src);
    c->release(c->ctx, f);
    c->release(c->ctx, x);
    c->weight_destroy(c->ctx, w);
    c->weight_destroy(c->ctx, ref);
    return taken;
}

static void quantised_reference_on_both(struct fixture *f) {
    const struct rlhf__run_config run = {.seed = 1, .threads = 2};
    for (int32_t dtype = RLHF_F32; dtype <= RLHF_BF16; dtype++) {
        const struct rlhf__compute_config compute = {.backend = "cpu"};
        struct rlhf__memory_plan *plan = NULL;
        MUST(rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run,
                                &err));
        const rlhf_compute *c = f->session.models.compute;
        MUST(rlhf__memory_plan_open(c, &plan, &err));
        const uint64_t counted = quantised_reference_takes(rlhf__memory_plan_table(plan), dtype);
        same(counted, quantised_reference_takes(c, dtype), "a quantised reference");
        rlhf__memory_plan_close(plan);
        rlhf__session_finish(&f->session);
    }
}

static void a_quantised_reference_is_counted(void **state) {
    at_two_levels(*state, quantised_reference_on_both);
}

// ---- backends of third parties ----

static void ten_bytes_a_row(void *ctx, const rlhf_call *call, uint64_t *bytes) {
    (void)ctx;
    if (call->op == RLHF_COMPUTE_OP(lm_head)) bytes[RLHF_WORKSPACES - 1] = 10ull * call->rows;
    if (call->op == RLHF_COMPUTE_OP(muon)) bytes[3] = UINT64_MAX;
}

static void three_bytes_a_row(void *ctx, const rlhf_call *call, uint64_t *bytes) {
    (void)ctx;
    if (call->op == RLHF_COMPUTE_OP(lm_head)) bytes[RLHF_WORKSPACES - 1] = 3ull * call->rows;
}

// Each workspace counts with its largest size. If a backend does not state sizes, they count as 0.
static void what_a_backend_states_is_counted(void **state) {
    struct fixture *f = *state;
    const struct rlhf__compute_config compute = {.backend = "reference"};
    const struct rlhf__run_config run = {.seed = 1, .threads = 1};
    MUST(rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run, &err));
    for (int states = 0; states < 2; states++) {
        rlhf_compute other = *f->session.models.compute;
        struct rlhf__memory_plan *plan = NULL;
        other.workspace_bytes = states ? ten_bytes_a_row : NULL;
        MUST(rlhf__memory_plan_open(&other, &plan, &err));
        const rlhf_compute *c = rlhf__memory_plan_table(plan);
        assert_int_equal(head_takes(c, 7, 40), states ? 70 : 0);
        assert_int_equal(head_takes(c, 5, 40), 0);
        assert_int_equal(head_takes(c, 8, 40), states ? 10 : 0);
        // A second table has its own workspaces, and its own sizes.
        rlhf_compute second = other;
        second.workspace_bytes = states ? three_bytes_a_row : NULL;
        rlhf__memory_plan_second(plan, &second);
        assert_int_equal(head_takes(c, 8, 40), states ? 24 : 0);
        rlhf__memory_plan_second(plan, NULL);
        assert_int_equal(head_takes(c, 9, 40), states ? 10 : 0);
        const rlhf_muon how = {sizeof how, 1, 1, 0, 0.02, 0.95, 0.0, 1.0};
        assert_int_equal(c->muon(c->ctx, NULL, NULL, NULL, 4, 4, &how),
                         states ? RLHF_E_NOMEM : RLHF_OK);
        rlhf__memory_plan_close(plan);
    }
    rlhf__session_finish(&f->session);
}

// ---- time ----

// The products of 8 rows are limited by their FLOPs, those of 1 row by the bytes of the weight.
static void seconds_are_added_up(void **state) {
    static const struct rlhf__speed speed = {
        .product = 1000,
        .memory = 480,
        .attention = 100,
        .word = 40,
        .quantised = {[RLHF_FORMAT_Q8_0] = {{1, 2}, {5, 0.5}, 3}}};
    struct fixture *f = *state;
    const struct rlhf__compute_config compute = {.backend = "reference"};
    const struct rlhf__run_config run = {.seed = 1, .threads = 1};
    struct rlhf__memory_plan *plan = NULL;
    rlhf_weight *w = NULL;
    MUST(rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run, &err));
    MUST(rlhf__memory_plan_open(f->session.models.compute, &plan, &err));
    const rlhf_compute *c = rlhf__memory_plan_table(plan);
    assert_int_equal(c->weight_create(c->ctx, 10, 20, RLHF_F32, RLHF_WEIGHT_OUT_IN, &w), RLHF_OK);
    assert_int_equal(c->linear(c->ctx, NULL, RLHF_F32, 0, NULL, w, NULL, 8), RLHF_OK);
    assert_true(rlhf__memory_plan_seconds(plan) == 0);
    rlhf__memory_plan_time(plan, &speed);
    double at = 0;
#define TAKES(call, seconds)                                                                       \
    do {                                                                                           \
        assert_int_equal(call, RLHF_OK);                                                           \
        const double now = rlhf__memory_plan_seconds(plan);                                        \
        assert_true(fabs(now - at - (seconds)) < 1e-9);                                            \
        at = now;                                                                                  \
    } while (0)
    TAKES(c->linear(c->ctx, NULL, RLHF_F32, 0, NULL, w, NULL, 8), 2 * 8 * 200 / 1000.0);
    TAKES(c->linear_dx(c->ctx, NULL, RLHF_F32, 0, NULL, w, 8), 2 * 8 * 200 / 1000.0);
    TAKES(c->linear_dw(c->ctx, NULL, NULL, NULL, NULL, w, 8), 2 * 8 * 200 / 1000.0);
    TAKES(c->linear(c->ctx, NULL, RLHF_F32, 0, NULL, w, NULL, 1), 4 * 200 / 480.0);
    TAKES(c->add(c->ctx, NULL, NULL, RLHF_F32, 100), 12 * 100 / 480.0);
    // Two rows of 3 tokens see 1 + 2 + 3 keys each.
    rlhf_attn a = {.size = sizeof a, .heads = 2, .head_dim = 8, .causal = 1, .dtype = RLHF_F32};
    const rlhf_ragged r = {.size = sizeof r, .n = 2, .total = 6, .max_q = 3, .max_k = 3};
    TAKES(c->attention(c->ctx, &a, &r, NULL, NULL, NULL, NULL, NULL), 4 * 2 * 8 * 12 / 100.0);
    a.window = 1;
    TAKES(c->attention(c->ctx, &a, &r, NULL, NULL, NULL, NULL, NULL), 4 * 2 * 8 * 6 / 100.0);
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    rlhf_lm_head h = {.size = sizeof h,
                      .rows = 8,
                      .d = 10,
                      .vocab = 20,
                      .dtype = RLHF_F32,
                      .dist = &whole,
                      .weight = w};
    const double logits = 2 * 8 * 200 / 1000.0, words = 8 * 20 / 40.0;
    TAKES(c->lm_head(c->ctx, &h), logits + words);
    TAKES(c->lm_head_bwd(c->ctx, &h), 2 * logits + words);
    h.d_weight = rlhf_dev_at(NULL, 64);
    TAKES(c->lm_head_bwd(c->ctx, &h), 3 * logits + words);
    int32_t id[8];
    float logp[8];
    const rlhf_lm_sample draw = {.size = sizeof draw,
                                 .rows = 8,
                                 .d = 10,
                                 .vocab = 20,
                                 .dtype = RLHF_F32,
                                 .dist = &whole,
                                 .logp_dist = &whole,
                                 .weight = w,
                                 .host_id = id,
                                 .host_logp = logp};
    TAKES(c->lm_sample(c->ctx, &draw), logits + words);
    TAKES(c->linear(c->ctx, NULL, RLHF_F32, 0, NULL, w, NULL, 8), logits);
    TAKES(c->lm_sample(c->ctx, &draw), logits + words);
    assert_true(fabs(rlhf__memory_plan_step_seconds(plan) - 2 * logits - words) < 1e-9);
    // Q8_0 has a measured speed, Q4_0 has not.
    static const int32_t format[] = {RLHF_FORMAT_Q8_0, RLHF_FORMAT_Q4_0}, count[] = {3, 2};
    const rlhf_quantised two = {sizeof two, 32, 5, RLHF_F32, 0, 2, format, count};
    rlhf_weight *q = NULL;
    assert_int_equal(c->weight_create_quantised(c->ctx, &two, &q), RLHF_OK);
    TAKES(c->linear(c->ctx, NULL, RLHF_F32, 0, NULL, q, NULL, 4), 96 * 9 + 2 * 64 * 4 / 1000.0);
    TAKES(c->linear(c->ctx, NULL, RLHF_F32, 0, NULL, q, NULL, 8), 96 * 9 + 2 * 64 * 8 / 1000.0);
    TAKES(c->linear_dx(c->ctx, NULL, RLHF_F32, 0, NULL, q, 10), 96 * 30 + 2 * 64 * 10 / 1000.0);
    int32_t k, n;
    assert_true(rlhf__memory_plan_quantised(plan, RLHF_FORMAT_Q8_0, &k, &n) && k == 32 && n == 3);
    assert_false(rlhf__memory_plan_quantised(plan, RLHF_FORMAT_Q6_K, &k, &n));
    c->weight_destroy(c->ctx, q);
#undef TAKES
    c->weight_destroy(c->ctx, w);
    rlhf__memory_plan_close(plan);
    rlhf__session_finish(&f->session);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(seconds_are_added_up, setup, teardown),
        cmocka_unit_test_setup_teardown(muon_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(products_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_quantised_reference_is_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(on_the_cpu, setup, teardown),
        cmocka_unit_test_setup_teardown(on_the_reference, setup, teardown),
        cmocka_unit_test_setup_teardown(the_workspace_does_not_grow_with_the_vocabulary, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_a_backend_states_is_counted, setup, teardown)};
    return cmocka_run_group_tests_name("models: the memory plan", tests, NULL, NULL);
}
