// test_model.c: opens my_model.so on the reference backend, in guarded memory. It checks that a row
// has the same log-probs alone and in a batch, that gradients agree with finite differences, and
// that a failing open() frees everything.
//
// Usage: test_model path/to/my_model.so
#include <rlhf/model.h>
#include <rlhf/test.h>

#include <string.h>

static struct rlhf_test_host host;
static const rlhf_plugin *plugin;
static _Alignas(16) unsigned char config[1024];

enum { N = 2, TOTAL = 9 };
static const int32_t ids[TOTAL] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
static const int32_t offset[N + 1] = {0, 5, TOTAL}, prompt_len[N] = {2, 1};
static const rlhf_batch batch = {.size = sizeof batch,
                                 .n = N,
                                 .total = TOTAL,
                                 .ids = ids,
                                 .offset = offset,
                                 .prompt_len = prompt_len};

// Returns a model with weights, or NULL if a step failed.
static void *open_model(rlhf_compute *c) {
    const rlhf_model_ops *ops = plugin->ops;
    const rlhf_model_open how = {.size = sizeof how,
                                 .dtype = RLHF_F32,
                                 .trainable = 1,
                                 .value_kind = RLHF_VALUE_LINEAR,
                                 .compute = c};
    void *self = NULL;
    if (plugin->create(&host.table, config, &self) < 0) return NULL;
    if (ops->open(self, &how) >= 0 && rlhf_test_model_fill(ops, self, c, 7, 0.3) >= 0) return self;
    plugin->destroy(self);
    return NULL;
}

static void log_probs(void *self, const rlhf_batch *rows, float *logp) {
    static const rlhf_dist whole = RLHF_DIST_WHOLE;
    const rlhf_model_ops *ops = plugin->ops;
    const rlhf_forward how = {.size = sizeof how, .heads = RLHF_HEAD_LOGP, .dist = &whole};
    const rlhf_heads out = {.size = sizeof out, .logp = logp};
    RLHF_TEST_CHECK(&host, ops->forward(self, rows, &how, &out) == RLHF_OK);
}

static void rows_do_not_see_each_other(void *self) {
    float both[TOTAL] = {0}, alone[TOTAL] = {0};
    const int32_t own[] = {0, TOTAL - 5};
    log_probs(self, &batch, both);
    rlhf_batch one = batch; // the second row
    one.n = 1;
    one.total = TOTAL - 5;
    one.ids = ids + 5;
    one.offset = own;
    one.prompt_len = prompt_len + 1;
    log_probs(self, &one, alone);
    RLHF_TEST_CHECK(&host, memcmp(both + 5, alone, (TOTAL - 5) * sizeof *alone) == 0);
    RLHF_TEST_CHECK(&host, both[0] == 0 && both[1] == 0 && both[5] == 0); // prompts
    RLHF_TEST_CHECK(&host, both[2] < 0 && both[6] < 0);
}

static void gradients_are_derivatives(void *self, const rlhf_compute *c) {
    const double off =
        rlhf_test_model_derivative(plugin->ops, self, c, &batch,
                                   RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_VALUE, 3, 1e-2);
    RLHF_TEST_NEAR(&host, off, 0, 0.05);
}

// Calls open() repeatedly. In attempt n, the n-th call of the compute table and all later ones
// fail.
static void fails_cleanly(rlhf_compute *c) {
    const uint64_t before = c->bytes_in_use(c->ctx);
    for (int64_t n = 1;; n++) {
        rlhf_test_fail_op(c, n, 1);
        void *self = open_model(c);
        const int64_t made = rlhf_test_ops(c);
        rlhf_test_fail_op(c, 0, 0);
        if (self) plugin->destroy(self);
        if (!RLHF_TEST_CHECK(&host, c->bytes_in_use(c->ctx) == before)) break;
        if (made < n) break; // no call failed
        if (!RLHF_TEST_CHECK(&host, !self)) break;
    }
}

int main(int argc, char **argv) {
    plugin = argc == 2 ? rlhf_test_open(argv[1], 0) : NULL;
    rlhf_test_init(&host, 1);
    rlhf_compute *c = plugin ? rlhf_test_compute(&host, 1) : NULL;
    if (!c) return 2;
    if (RLHF_TEST_CHECK(&host, plugin->config_size <= sizeof config)) {
        rlhf_test_config(plugin, config);
        void *self = open_model(c);
        if (RLHF_TEST_CHECK(&host, self != NULL)) {
            rows_do_not_see_each_other(self);
            gradients_are_derivatives(self, c);
        }
        plugin->destroy(self);
        fails_cleanly(c);
        RLHF_TEST_CHECK(&host, c->bytes_in_use(c->ctx) == 0);
    }
    rlhf_test_compute_end(c);
    return rlhf_test_end(&host); // 1 if a check failed or memory was not freed
}
