// reward_ask_kit.h: a reward that is a script in this process, rows to ask it about, and what came
// of them. Row i has the response 'a' + i, and is paid i + 1.
#ifndef RLHF_TESTS_REWARD_ASK_KIT_H
#define RLHF_TESTS_REWARD_ASK_KIT_H

#include "plugin/modules.h"

#include "sample/reward_ask.h"
#include "sample/reward_call.h"

enum { ROWS = 8 };

// What one call does, its rows by their letters.
struct call {
    rlhf_status status;
    const char *fails, *odd; // marked as failed; paid NaN
    const char *words;       // that are said of what fails
    double metric;           // 0: none is reported
};

// The reward. Calls behind the last of the script go well.
struct script {
    const rlhf_host *host;
    struct call call[8];
    const char *kills;   // rows that end its process
    int32_t once, pad;   // once 1: only in the first call that has them
    int32_t late, liar;  // where it is said to have ended: behind the last row; at the first
    int64_t ended_at;    // row of the last call
    int32_t pause, stop; // milliseconds a call; 1: the user presses Ctrl-C in the first
    sig_atomic_t *stopped;
    uint32_t n, calls; // calls: the state, of those that were answered
    char asked[1024];  // "abcd|b|": the rows of each call
};

// A run's part in it: rows, the rules, and what is said.
struct fixture {
    struct rlhf__plugin plugin;
    struct rlhf__outside outside;
    struct rlhf__services services;
    struct rlhf__instance *instance;
    struct rlhf__log log;
    struct rlhf__mixing_config rules;
    struct rlhf__reward_books books;
    struct rlhf__reward_call q;
    struct script *s; // of the instance
    struct rlhf__reward_rows rows;
    struct rlhf__reward_answer answer;
    struct rlhf__reward_early early;
    rlhf_str text[ROWS];
    int32_t zero[ROWS], offset[ROWS + 1], group[ROWS];
    uint8_t finished[ROWS];
    sig_atomic_t stopped;
    int metrics;
    double metric;
    char *said; // the log
    size_t said_bytes;
};

int setup(void **state);
int teardown(void **state);

// Rows are scored each for itself.
void alone(struct fixture *f);

// All rows are asked about, with what was asked early or without.
void ask(struct fixture *f);
void ask_with(struct fixture *f, struct rlhf__reward_early *early);

// Asked about the rows `from` up to `to` before the batch is.
void ask_early(struct fixture *f, uint32_t from, uint32_t to);

// Which rows have failed is told by their letters, and the others have what they are paid.
void only_failed(struct fixture *f, const char *letters);

// It fails with that status and a sentence that has `why` in it.
void refused(struct fixture *f, rlhf_status status, const char *why);

// The log has this text.
void logged(struct fixture *f, const char *text);

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
