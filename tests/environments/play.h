// play.h: an environment plugin loaded from the build tree, and the episodes that a test plays.
#ifndef RLHF_TESTS_ENVIRONMENTS_PLAY_H
#define RLHF_TESTS_ENVIRONMENTS_PLAY_H

#include "rewards/fixture.h"

#include <rlhf/environment.h>

enum { PLAY_MOST = 8, PLAY_SAID = 2048 };

struct play {
    struct rlhf_test_host host;
    const rlhf_plugin *plugin;
    const rlhf_environment_ops *ops;
    void *self;
    union {
        unsigned char bytes[256];
        double align;
    } config;
    // For each episode: its state, and the texts and numbers that its last call returned.
    uint64_t state[PLAY_MOST][8];
    char said[PLAY_MOST][PLAY_SAID]; // "user: text|tool: text|"
    float reward[PLAY_MOST];
    uint8_t end[PLAY_MOST], verdict[PLAY_MOST], failed[PLAY_MOST], later[PLAY_MOST];
    double metric[PLAY_MOST]; // last value of the episode's metric
    int32_t turn[PLAY_MOST];
};

// Load `file` (such as env_exec.so) and call create() with options in the form "a=1;b=x".
// play_close asserts that nothing leaks.
rlhf_status play_open(struct play *, const char *file, const char *options);
// Does the same with the service rlhf.limits/1, which has this timeout_s.
rlhf_status play_open_within(struct play *, const char *file, const char *options,
                             double timeout_s);
void play_close(struct play *);

// Call the environment for n episodes, whose numbers are in `which`. text[i] is the policy's turn
// in episode which[i]; NULL means an empty turn. If a text begins with '{', it holds the arguments
// of a call of `tool`.
rlhf_status play_reset(struct play *, uint32_t n, const uint64_t *which, const char *row);
rlhf_status play_step(struct play *, uint32_t n, const uint64_t *which, const char *const *text,
                      const char *tool);
// Like play_step, but does not wait for an answer that comes later (p->later). play_poll_at_once
// asks for it once, without waiting, and play_wait waits for it.
rlhf_status play_step_at_once(struct play *, uint32_t n, const uint64_t *which,
                              const char *const *text);
rlhf_status play_poll_at_once(struct play *, uint32_t n, const uint64_t *which);
rlhf_status play_wait(struct play *, uint32_t n, const uint64_t *which);
rlhf_status play_finish(struct play *, uint32_t n, const uint64_t *which, int32_t end);
void play_end(struct play *, uint32_t n, const uint64_t *which); // close()

#endif
