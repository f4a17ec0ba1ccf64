// test_curriculum.c: checks that unused prompts have equal chances, that prompts with scores near
// the mean are preferred later, that no prompt is chosen twice, and that a resumed run chooses the
// same prompts. Also checks the loss. Needs only <rlhf/test.h>.
// Usage: test_curriculum path/to/curriculum.so
#include <rlhf/test.h>

static struct rlhf_test_host host;
static struct rlhf_test_prompts prompts;
static struct rlhf_test_batch batch;
static const rlhf_plugin *plugin;
static _Alignas(16) unsigned char config[64];

static void *open_one(void) {
    void *self = NULL;
    RLHF_TEST_CHECK(&host, plugin->create(&host.table, config, &self) == RLHF_OK);
    return self;
}

// Prompts 0 to 9 always fail, 10 to 19 are in the middle, 20 to 29 always succeed.
static void prefers_the_middle(const rlhf_algo_ops *ops) {
    void *self = open_one();
    int64_t chosen[30];
    int middle = 0, seen[30] = {0};
    rlhf_test_prompts_init(&prompts, 30, 30);
    RLHF_TEST_CHECK(&host, rlhf_test_choose(ops, self, &prompts, chosen) == RLHF_OK);
    for (int k = 0; k < 30; k++) // all of them, once each
        RLHF_TEST_CHECK(&host, ++seen[chosen[k]] == 1 && prompts.seen[k] == 1);
    rlhf_test_prompts_init(&prompts, 30, 5);
    for (int i = 0; i < 30; i++)
        prompts.last_score[i] = (float)(i / 10);
    for (int phase = 0; phase < 100; phase++) {
        RLHF_TEST_CHECK(&host, rlhf_test_choose(ops, self, &prompts, chosen) == RLHF_OK);
        for (int k = 0; k < 5; k++)
            middle += chosen[k] / 10 == 1;
    }
    RLHF_TEST_CHECK(&host, middle > 400 && middle < 500); // of 500; a third if chosen at random
    plugin->destroy(self);
}

static void resumes_where_it_was(const rlhf_algo_ops *ops) {
    static struct rlhf_test_stream stream;
    int64_t first[8], again[8];
    void *self = open_one(), *other = open_one();
    rlhf_test_prompts_init(&prompts, 30, 8);
    rlhf_test_stream_init(&stream);
    RLHF_TEST_CHECK(&host, rlhf_test_choose(ops, self, &prompts, first) == RLHF_OK);
    RLHF_TEST_CHECK(&host, plugin->save(self, &stream.out) == RLHF_OK);
    RLHF_TEST_CHECK(&host, rlhf_test_choose(ops, self, &prompts, first) == RLHF_OK);
    RLHF_TEST_CHECK(&host, plugin->load(other, &stream.in, 1) == RLHF_OK);
    RLHF_TEST_CHECK(&host, stream.in.left(&stream.in) == 0);
    RLHF_TEST_CHECK(&host, rlhf_test_choose(ops, other, &prompts, again) == RLHF_OK);
    RLHF_TEST_CHECK(&host, memcmp(first, again, sizeof first) == 0);
    RLHF_TEST_CHECK(&host, plugin->load(other, &stream.in, 1) < 0); // the stream has ended
    plugin->destroy(self);
    plugin->destroy(other);
}

static void learns(const rlhf_algo_ops *ops) {
    void *self = open_one();
    rlhf_test_batch_init(&batch, 6, 1, 0, 3);
    RLHF_TEST_CHECK(&host, rlhf_test_advantages(ops, self, &batch) == RLHF_OK);
    RLHF_TEST_CHECK(&host, rlhf_test_loss(ops, self, &batch) != 0);
    RLHF_TEST_NEAR(&host, rlhf_test_loss_derivative(ops, self, &batch.loss_in, 1e-3), 0, 1e-3);
    plugin->destroy(self);
}

int main(int argc, char **argv) {
    plugin = argc == 2 ? rlhf_test_open(argv[1], 0) : NULL;
    if (!plugin || plugin->config_size > sizeof config) return 2;
    rlhf_test_init(&host, 1);
    rlhf_test_config(plugin, config);
    prefers_the_middle(plugin->ops);
    resumes_where_it_was(plugin->ops);
    learns(plugin->ops);
    return rlhf_test_end(&host); // 1 if a check failed or memory was not freed
}
