// test_environment.c: loads my_environment.so as the host would and plays games.
//
// Usage: test_environment path/to/my_environment.so
#include <rlhf/test.h>

#include <stdio.h>

static struct rlhf_test_host host;
static struct rlhf_test_episode game;

// Halves the range until the number is found. Returns the number of turns.
static int bisect(int64_t most) {
    int64_t low = 1, high = most;
    int turns = 0;
    while (game.end == RLHF_EPISODE_OPEN && low <= high) {
        const int64_t tried = (low + high) / 2;
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)tried);
        if (!RLHF_TEST_CHECK(&host, rlhf_test_turn(&game, text) == RLHF_OK)) break;
        if (strcmp(game.said, "user: higher\n") == 0) low = tried + 1;
        if (strcmp(game.said, "user: lower\n") == 0) high = tried - 1;
        turns++;
    }
    return turns;
}

static void plays(const rlhf_plugin *p, void *self) {
    for (uint64_t seed = 0; seed < 100; seed++) {
        RLHF_TEST_CHECK(&host, rlhf_test_begin(&game, p->ops, self, seed, NULL, "") == RLHF_OK);
        RLHF_TEST_CHECK(&host, strcmp(game.said, "user: 1 to 63?\n") == 0);
        RLHF_TEST_CHECK(&host, rlhf_test_turn(&game, "\xff dull") == RLHF_OK); // no number
        RLHF_TEST_CHECK(&host, strcmp(game.said, "user: higher\n") == 0);
        RLHF_TEST_NEAR(&host, game.reward, 0, 0);
        RLHF_TEST_CHECK(&host, bisect(63) <= 6);
        RLHF_TEST_CHECK(&host, game.end == RLHF_EPISODE_DONE);
        RLHF_TEST_CHECK(&host, game.verdict == RLHF_VERDICT_RIGHT);
        RLHF_TEST_NEAR(&host, game.reward, 1, 0);
        rlhf_test_close(&game);
    }
}

int main(int argc, char **argv) {
    const rlhf_plugin *p = argc == 2 ? rlhf_test_open(argv[1], 0) : NULL;
    _Alignas(16) unsigned char config[256];
    void *self = config; // as the host passes it without create()
    if (!p) return 2;
    rlhf_test_init(&host, 1);
    if (!RLHF_TEST_CHECK(&host, p->config_size <= sizeof config)) return rlhf_test_end(&host);
    rlhf_test_config(p, config);
    if (p->create) RLHF_TEST_CHECK(&host, p->create(&host.table, config, &self) == RLHF_OK);
    plays(p, self);
    if (p->destroy) p->destroy(self);
    return rlhf_test_end(&host); // 1 if a check failed or memory was not freed
}
