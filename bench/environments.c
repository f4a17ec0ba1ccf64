// environments.c: the steps per second of environments that run in another process. env_exec.so
// starts this same program, which answers each turn with a short text. env_python.so runs a Python
// class.
#include "plugin.h"

#include <rlhf/environment.h>
#include <rlhf/test.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EPISODES = 128, STEPS = 200, TURN = 40 };

void bench_game(void) {
    char *line = NULL;
    size_t room = 0;
    puts("{}");
    fflush(stdout);
    while (getline(&line, &room, stdin) > 0) {
        unsigned long long episode;
        if (sscanf(line, "{\"step\":%llu", &episode) == 1 ||
            sscanf(line, "{\"reset\":%llu", &episode) == 1)
            printf("{\"episode\": %llu, \"say\": \"higher\", \"reward\": 0}\n", episode);
        fflush(stdout);
    }
    free(line);
}

static rlhf_status say(const rlhf_episode_out *out, uint32_t i, const rlhf_message *m) {
    (void)out;
    (void)i;
    return m->text.len ? RLHF_OK : RLHF_E_INVALID;
}

static void metric(const rlhf_episode_out *out, uint32_t i, const char *name, double value,
                   double weight, int32_t combine) {
    (void)out;
    (void)i;
    (void)name;
    (void)value;
    (void)weight;
    (void)combine;
}

// The arrays of a call for all episodes.
struct calls {
    void *state[EPISODES];
    uint64_t room[EPISODES][32], episode[EPISODES], seed[EPISODES];
    int32_t turn[EPISODES], offset[EPISODES + 1];
    rlhf_str meta[EPISODES], text[EPISODES];
    float reward[EPISODES];
    uint8_t open[EPISODES]; // none has ended
    uint8_t end[EPISODES], verdict[EPISODES], failed[EPISODES], later[EPISODES];
};

static void step_all(const rlhf_environment_ops *ops, void *self, struct calls *c, int turn,
                     struct rlhf_test_host *host) {
    static const char text[] = "I think that the number may be about 32";
    for (int i = 0; i < EPISODES; i++) {
        c->turn[i] = turn;
        c->episode[i] = (uint64_t)i;
        c->state[i] = c->room[i];
        c->text[i] = (rlhf_str){text, turn ? TURN - 1 : 0};
    }
    const rlhf_episode_in in = {.size = sizeof in,
                                .n = EPISODES,
                                .state = c->state,
                                .episode = c->episode,
                                .seed = c->seed,
                                .turn = c->turn,
                                .meta = c->meta,
                                .text = c->text,
                                .call_offset = c->offset,
                                .end = c->open};
    const rlhf_episode_out out = {.size = sizeof out,
                                  .reward = c->reward,
                                  .end = c->end,
                                  .verdict = c->verdict,
                                  .failed = c->failed,
                                  .later = c->later,
                                  .say = say,
                                  .metric = metric};
    if ((turn ? ops->step : ops->reset)(self, &in, &out) < 0) bench_die("%s", host->fail_text);
    for (int i = 0; i < EPISODES; i++)
        if (c->failed[i]) bench_die("%s", host->fail_text);
}

static void measure(const struct bench *b, const char *plugin, const char *const (*set)[2]) {
    static struct calls c;
    struct bench_plugin p;
    bench_plugin_open(&p, b, "environments", plugin, set);
    const rlhf_environment_ops *ops = p.plugin->ops;
    if (ops->state_size > sizeof c.room[0]) bench_die("%s: its state is too large", plugin);
    memset(&c, 0, sizeof c);
    step_all(ops, p.self, &c, 0, &p.host);
    double best = 1e9, all = 0;
    for (int i = 1; i <= STEPS; i++) {
        const double begun = bench_seconds();
        step_all(ops, p.self, &c, i, &p.host);
        const double took = bench_seconds() - begun;
        all += took;
        if (took < best) best = took;
    }
    printf("%-13s %d episodes, turns of %d bytes: %.2f ms a call (best %.2f), %.0f steps/s "
           "(best %.0f)\n",
           plugin, EPISODES, TURN, 1000 * all / STEPS, 1000 * best, EPISODES * STEPS / all,
           EPISODES / best);
    const rlhf_episode_close all_of = {.size = sizeof all_of, .n = EPISODES, .state = c.state};
    ops->close(p.self, &all_of);
    bench_plugin_close(&p);
}

static void measure_python(const struct bench *b) {
    char path[] = "/tmp/rlhf-bench-XXXXXX.py";
    static const char text[] = "class Game:\n"
                               "    def reset(self, seed=None, options=None):\n"
                               "        return 'guess', {}\n"
                               "    def step(self, text):\n"
                               "        return 'higher', 0.0, False, False, {}\n";
    bench_python_file(path, text);
    const char *const set[][2] = {
        {"file", path}, {"class", "Game"}, {"api", "gymnasium"}, {NULL, NULL}};
    measure(b, "env_python.so", set);
    unlink(path);
}

void bench_environments(const struct bench *b) {
    char exe[3072], command[3200];
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n < 0) bench_die("cannot find the program's own path");
    exe[n] = 0;
    snprintf(command, sizeof command, "'%s' --game", exe);
    const char *const set[][2] = {{"command", command}, {NULL, NULL}};
    measure(b, "env_exec.so", set);
    if (system("python3 -c 'import sys' >/dev/null 2>&1") == 0) measure_python(b);
}
