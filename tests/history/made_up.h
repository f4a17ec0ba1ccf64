// made_up.h: made-up runs and the verdicts that they should get. A run is given by a few metrics,
// each of which is piecewise linear.
#ifndef RLHF_TESTS_HISTORY_MADE_UP_H
#define RLHF_TESTS_HISTORY_MADE_UP_H

#include "verdict/verdict.h"

#include <stddef.h>
#include <stdint.h>

// A metric that changes linearly from `first` to `last` in phases `from` to `to` (in all phases if
// both are 0). `noise` is added in one phase and subtracted in the next.
struct line {
    const char *name;
    double first, last, noise;
    int64_t from, to;
};

struct run {
    const char *what; // name of this row, for messages
    int64_t phases;   // 0: 20
    struct line line[8];
    struct rlhf__run_facts facts;
    const char *kind, *title;
    const char *notes; // ids of the notes, the worst first
    const char *says;  // a part of a note's sentence; NULL: not checked
};

#define REWARD_ROSE                                                                                \
    { "objective/scores", 0.5, 0.9, 0.01, 0, 0 }
#define REWARD_STAYS                                                                               \
    { "objective/scores", 0.5, 0.5, 0.01, 0, 0 }
#define ROSE "Reward rose from 0.49 to 0.889"
#define ENTROPY(first, last)                                                                       \
    { "objective/entropy_per_token", first, last, 0, 3, 4 }
#define FLAT(last)                                                                                 \
    { "frac_reward_zero_std", 0.1, last, 0, 5, 6 }

// Fails the test if the verdict of one of these n runs is not the expected one.
void judge_all(const struct run *runs, size_t n);
#define JUDGE_ALL(table) judge_all(table, sizeof table / sizeof *table)

// Judges a made-up run of 20 phases. Returns the advice of the verdict's note with this id, "" if
// the note is without advice, or "no note" if the verdict lacks this note. Valid until the next
// call.
const char *advice(const struct line *line, size_t n, const struct rlhf__run_facts *facts,
                   const char *id);

#endif
