// asks.h: the questions of one score() call, without duplicates, and their answers.
#ifndef RLHF_REWARDS_RUBRIC_ASKS_H
#define RLHF_REWARDS_RUBRIC_ASKS_H

#include "rubric/criteria.h"
#include "rubric/record.h"

enum { RLHF__ASK_WHY = 512 };

// A question that the record cannot answer.
struct rlhf__ask {
    struct rlhf__question question;
    uint32_t criterion, row; // row: the first row that the question is about
    int32_t open;            // it has not been answered yet
    double score;            // NaN: the criterion is lost; `why` says why
    char why[RLHF__ASK_WHY];
};

struct rlhf__asks {
    const rlhf_host *host;
    const struct rlhf__criteria *criteria;
    const rlhf_reward_in *in;
    struct rlhf__ask *ask; // [n]
    uint32_t n;
    uint32_t *of;  // [in->n * criteria->n] index of the ask; n_max: the record has the answer
    double *known; // [in->n * criteria->n] the recorded answer
};

// List the questions about all rows. Release with rlhf__asks_finish. Errors: RLHF_E_NOMEM. [step]
rlhf_status rlhf__asks_init(struct rlhf__asks *, const struct rlhf__record *);
void rlhf__asks_finish(struct rlhf__asks *); // [step]

// Close an ask: with a score from 0 to 1, with a judge's answer, whose number is read (score.h), or
// with the reason why the criterion is lost. [step]
void rlhf__ask_score(struct rlhf__ask *, double score);
void rlhf__ask_answer(struct rlhf__asks *, struct rlhf__ask *, const char *text, size_t n);
void rlhf__ask_lose(struct rlhf__ask *, const char *why);

// Returns the score of row i by criterion k, or NaN if the criterion is lost for this row. Call
// this function after all asks have been closed. [step]
double rlhf__asks_score(const struct rlhf__asks *, uint32_t i, uint32_t k);

#endif
