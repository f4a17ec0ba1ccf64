// judge_program.h: a judge that is a program. It reads a line of JSON for each question, and writes
// a line of JSON for each answer.
#ifndef RLHF_REWARDS_RUBRIC_JUDGE_PROGRAM_H
#define RLHF_REWARDS_RUBRIC_JUDGE_PROGRAM_H

#include "process/talk.h"
#include "rubric/asks.h"

// Zero-initialize.
struct rlhf__judge_program {
    struct rlhf__program program;
    char **words;
};

// Find the program. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__judge_program_open(struct rlhf__judge_program *, const rlhf_host *,
                                     const char *command);
void rlhf__judge_program_close(struct rlhf__judge_program *, const rlhf_host *); // [main]

// Send all questions, one criterion after the other, and close the asks:
//   > {"ask": 3, "criterion": "polite", "text": "..."}
//   < {"ask": 3, "score": 7} or {"ask": 3, "failed": "why"}
// If the program fails, the current criterion is lost for the rows that lack an answer. The program
// is started again for the next criterion. Errors: RLHF_E_CANCELLED, RLHF_E_NOMEM. [step]
rlhf_status rlhf__judge_program_ask(struct rlhf__judge_program *, struct rlhf__asks *);

#endif
