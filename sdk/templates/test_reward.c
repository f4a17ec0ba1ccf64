// test_reward.c: loads my_reward.so as the host would and scores three responses.
//
// Usage: test_reward path/to/my_reward.so
#include <rlhf/reward.h>
#include <rlhf/test.h>

static struct rlhf_test_host host;

static void counts_the_word(const rlhf_plugin *p, void *config) {
    const rlhf_str response[] = {{"fun, fun!", 9}, {"", 0}, {"\xff\xfe dull", 7}};
    const rlhf_str prompt[] = {{"It was ", 7}, {"It was ", 7}, {"It was ", 7}};
    const int32_t ids[] = {1, 2, 1, 1, 2}, offset[] = {0, 2, 3, 5}, prompt_len[] = {1, 1, 1};
    const uint8_t finished[] = {1, 1, 1};
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = 3,
                               .prompt = prompt,
                               .response = response,
                               .ids = ids,
                               .offset = offset,
                               .prompt_len = prompt_len,
                               .finished = finished};
    float seq[3] = {-1, -1, -1};
    const rlhf_reward_out out = {.size = sizeof out, .seq = seq};
    const rlhf_reward_ops *ops = p->ops;
    void *self = config; // as the host passes it without create()
    RLHF_TEST_CHECK(&host, rlhf_test_set(p, config, "word", "fun"));
    if (p->create) RLHF_TEST_CHECK(&host, p->create(&host.table, config, &self) == RLHF_OK);
    RLHF_TEST_CHECK(&host, ops->score(self, &in, &out) == RLHF_OK);
    RLHF_TEST_NEAR(&host, seq[0], 2, 0);
    RLHF_TEST_NEAR(&host, seq[1], 0, 0);
    RLHF_TEST_NEAR(&host, seq[2], 0, 0);
    if (p->destroy) p->destroy(self);
}

int main(int argc, char **argv) {
    const rlhf_plugin *p = argc == 2 ? rlhf_test_open(argv[1], 0) : NULL;
    _Alignas(16) unsigned char config[256];
    if (!p) return 2;
    rlhf_test_init(&host, 1);
    if (!RLHF_TEST_CHECK(&host, p->config_size <= sizeof config)) return rlhf_test_end(&host);
    rlhf_test_config(p, config);
    counts_the_word(p, config);
    return rlhf_test_end(&host); // 1 if a check failed or memory was not freed
}
