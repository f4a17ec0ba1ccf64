// episode.h: one episode, with the environment's messages and rewards, and with what the episode
// waits for.
#ifndef RLHF_HOST_EPISODE_EPISODE_H
#define RLHF_HOST_EPISODE_EPISODE_H

#include "base/buf.h"
#include "chat/tool_calls.h"
#include "text/vocab.h"

#include <rlhf/environment.h>

// What an episode waits for.
enum rlhf__episode_wants {
    RLHF__WANTS_SLOT = 0, // the decoder has not begun the episode
    RLHF__WANTS_RESET = 1,
    RLHF__WANTS_STEP = 2,
    RLHF__WANTS_READING = 3, // the decoder: `read` is what the policy reads next, or its prompt
    RLHF__WANTS_FINISH = 4,
    RLHF__WANTS_NOTHING = 5,
    RLHF__WANTS_REFUSAL = 6 // its turn has wrong calls, which the host answers
};

// A message of the environment.
struct rlhf__said {
    int32_t role; // enum rlhf_role
    struct rlhf__buf text;
};

// A call that was answered, to be repeated if the environment fails later (again.h).
struct rlhf__answered {
    int32_t turn; // 0: reset()
    struct rlhf__buf text;
    struct rlhf__tool_calls calls;
    uint64_t answer; // identifies the answer
};

// A turn that was followed by a reply, for rewritten.h.
struct rlhf__past_turn {
    struct rlhf__buf text;
    json_t *calls;         // in the form of chat templates; NULL = none
    uint32_t tools, users; // messages of the reply, by role
};

enum { RLHF__EPISODE_MESSAGES = 32, RLHF__EPISODE_METRICS = 32 };

struct rlhf__episode_metric {
    double value, weight;
    int32_t combine; // enum rlhf_combine
    char name[64];
};

// What has come of the last call of the environment.
enum rlhf__episode_answer {
    RLHF__ANSWER_NONE = 0,  // not asked, failed, or the answer was used
    RLHF__ANSWER_LATER = 1, // it comes from poll()
    RLHF__ANSWER_HERE = 2
};

// Zero-initialize; release with rlhf__episode_finish.
struct rlhf__episode {
    int32_t wants;    // enum rlhf__episode_wants
    int32_t seen;     // 1: the environment has been called with `state`
    int32_t asked;    // the function that was called last: enum rlhf__episode_function
    int32_t answer;   // enum rlhf__episode_answer
    double asked_at;  // since when its answer is to come later, in rlhf__seconds()
    int64_t attempts; // repeats of that call after failures
    uint64_t number, seed;
    rlhf_str meta; // borrowed
    void *state;
    int32_t turns;  // turns that the policy has taken
    int32_t tokens; // of its row so far
    int32_t closed; // 1: its last turn has an end token
    uint8_t end, verdict;
    uint8_t failed;                // 1: the last call could not answer the episode
    uint8_t lost;                  // 1: given up after its last attempt; its row is left out
    float *paid;                   // [limits.turns]
    struct rlhf__buf text;         // of its last turn
    struct rlhf__buf whole;        // the same with special tokens
    struct rlhf__tool_calls calls; // of its last turn
    // totals over all its turns: tool calls, wrong tool calls, turns with forged marks
    int64_t n_calls, n_faults, n_forged;
    struct rlhf__said said[RLHF__EPISODE_MESSAGES]; // in the last call
    uint32_t n_said, n_metrics;
    struct rlhf__episode_metric metric[RLHF__EPISODE_METRICS];
    struct rlhf__ids read;       // what the policy reads next
    struct rlhf__ids prompt;     // empty if the row uses another row's prompt
    struct rlhf__answered *past; // [n_past]
    size_t n_past;
    struct rlhf__past_turn *talk; // [n_talk]
    size_t n_talk;
};

// Allocate an episode. `turns` is its maximum number of turns, and state_size the size of the
// environment's state in bytes. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__episode_init(struct rlhf__episode *, int32_t turns, uint64_t state_size,
                               struct rlhf__error *err);
void rlhf__episode_finish(struct rlhf__episode *); // accepts a zeroed struct [any]

// Returns the variables of the chat template that the episode's data row has, as a new reference,
// or NULL without such variables. [any]
json_t *rlhf__episode_vars(const struct rlhf__episode *);

// Returns the seed that all episodes of a group share. `first` is the number of the group's first
// row within the run. [any]
uint64_t rlhf__episode_seed(uint64_t run_seed, const char *stream, uint64_t first);

// Add a message. Errors: RLHF_E_NOMEM; RLHF_E_INVALID if there are too many. [any]
rlhf_status rlhf__episode_say(struct rlhf__episode *, int32_t role, rlhf_str text);

// Set a metric. This replaces an earlier one with the same name. Names beyond the first
// RLHF__EPISODE_METRICS, and names that are too long, are ignored. [any]
void rlhf__episode_metric(struct rlhf__episode *, const char *name, double value, double weight,
                          int32_t combine);

#endif
