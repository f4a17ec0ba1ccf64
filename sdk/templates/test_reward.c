// test_reward.c: loads my_reward.so as the host would and scores three responses.
//
// Usage: test_reward path/to/my_reward.so
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rlhf/reward.h>
#include <rlhf/test.h>

static const char *path;

static void counts_the_word(void **state) {
    (void)state;
    const rlhf_plugin *p = rlhf_test_open(path, 0);
    assert_non_null(p);
    _Alignas(16) unsigned char config[256];
    assert_true(p->config_size <= sizeof config);
    rlhf_test_config(p, config);
    assert_true(rlhf_test_set(p, config, "word", "fun"));

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
    assert_int_equal(ops->score(config, &in, &out), RLHF_OK);
    assert_float_equal(seq[0], 2, 0);
    assert_float_equal(seq[1], 0, 0);
    assert_float_equal(seq[2], 0, 0);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    path = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_the_word)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
