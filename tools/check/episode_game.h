// episode_game.h: plays episodes with an environment, in guarded memory, in a child process that
// tests the environment. Keeps the environment's texts and rewards.
#ifndef RLHF_TOOLS_CHECK_EPISODE_GAME_H
#define RLHF_TOOLS_CHECK_EPISODE_GAME_H

#include "check/guard.h"
#include "check/probe.h"

#include <rlhf/environment.h>

enum { RLHF__GAME_EPISODES = 5, RLHF__GAME_TURNS = 6 };
enum rlhf__game_function { RLHF__GAME_RESET = 0, RLHF__GAME_STEP = 1, RLHF__GAME_FINISH = 2 };

struct rlhf__game_episode {
    void *state; // in the memory of rlhf__game.states
    char row[256];
    char *told;              // the environment's texts and rewards, call by call
    size_t n_told, n_reset;  // bytes of `told`; n_reset: the bytes from reset()
    int32_t turn, open, bad; // bad 1: a call failed, so the episode is not compared
    int32_t calls, later;    // tool calls of its turn; 1: the answer comes later
    uint8_t end;
};

struct rlhf__game {
    struct rlhf__probe probe;
    struct rlhf__guards *states;
    struct rlhf__game_episode of[RLHF__GAME_EPISODES]; // 0 and 1 have the same seed, as in a group
    char tool[80], arguments[512]; // a call of the first tool; "" = there is none
};

// Create an instance and the zeroed states. `side` is an enum rlhf__guard_side. Call
// rlhf__game_finish even after an error. Errors: those of create(); RLHF_E_NOMEM. [main]
rlhf_status rlhf__game_open(struct rlhf__check *c, struct rlhf__game *g, int32_t side);
void rlhf__game_finish(struct rlhf__game *g); // [main]

// Call a function (enum rlhf__game_function) for n episodes, and poll() until all have their
// answers; `which` has the episodes' numbers. If `elsewhere` is 1, calls the function on another
// thread. Reports broken rules. Returns the status of the function. [main]
rlhf_status rlhf__game_ask(struct rlhf__game *g, int32_t what, const uint32_t *which, uint32_t n,
                           int32_t side, int elsewhere);

#endif
