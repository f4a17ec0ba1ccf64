// reward_ask_kit.h: a scripted reward in this process, rows to score, and the results. Row i has
// the response 'a' + i and the reward i + 1.
#ifndef RLHF_TESTS_REWARD_ASK_KIT_H
#define RLHF_TESTS_REWARD_ASK_KIT_H

#include "plugin/modules.h"

#include "sample/reward_ask.h"
#include "sample/reward_call.h"

enum { ROWS = 8 };

// What the reward does in one call. Rows are named by their letters.
struct call {
    rlhf_status status;
    const char *fails, *odd; // rows marked as failed; rows with a NaN score
    const char *words;       // for the failure message
    double metric;           // 0: reports nothing
};

// The reward and its script. Calls after the end of the script succeed.
struct script {
    const rlhf_host *host;
    struct call call[8];
    const char *kills; // rows that end its process
    int32_t once, pad; // once 1: only in the first call that has these rows
    // 1: the end of the process is reported after the last row (late), or at the first row (liar)
    int32_t late, liar;
    int64_t ended_at; // the row that the last call reports
    // pause of each call in milliseconds; 1: the user presses Ctrl-C in the first call
    int32_t pause, stop;
    sig_atomic_t *stopped;
    uint32_t n, calls; // calls: the state, the number of answered calls
    char asked[1024];  // "abcd|b|": the rows of each call
};

// The run's part: rows, rules and messages.
struct fixture {
    struct rlhf__plugin plugin;
    struct rlhf__outside outside;
    struct rlhf__services services;
    struct rlhf__instance *instance;
    struct rlhf__log log;
    struct rlhf__mixing_config rules;
    struct rlhf__reward_tally tally;
    struct rlhf__reward_call q;
    struct script *s; // script of the instance
    struct rlhf__reward_rows rows;
    struct rlhf__reward_answer answer;
    struct rlhf__overlap_answers early;
    rlhf_str text[ROWS];
    int32_t zero[ROWS], offset[ROWS + 1], group[ROWS];
    uint8_t finished[ROWS];
    sig_atomic_t stopped;
    int metrics;
    double metric, weight, counted;
    int64_t source[ROWS];
    char *said; // the log
    size_t said_bytes;
};

int setup(void **state);
int teardown(void **state);

// Makes the reward score rows one by one.
void alone(struct fixture *f);

// Calls the reward for all rows, with or without early results.
void ask(struct fixture *f);
void ask_with(struct fixture *f, struct rlhf__overlap_answers *early);

// Calls the reward for the rows `from` up to `to` early, before the batch.
void ask_early(struct fixture *f, uint32_t from, uint32_t to);

// Asserts that exactly the rows with these letters have failed, and that the others have their
// rewards.
void only_failed(struct fixture *f, const char *letters);

// Asserts that the call fails with that status and a message that contains `why`.
void refused(struct fixture *f, rlhf_status status, const char *why);

// Asserts that the log has this text.
void logged(struct fixture *f, const char *text);

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
