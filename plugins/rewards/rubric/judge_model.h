// judge_model.h: a judge that is a language model of the host. It does not write its answer: the
// score is the mean of the values of the answer words, weighted by the probabilities that the model
// gives them as its answer.
#ifndef RLHF_REWARDS_RUBRIC_JUDGE_MODEL_H
#define RLHF_REWARDS_RUBRIC_JUDGE_MODEL_H

#include "rubric/asks.h"

#include <rlhf/service.h>

// The answer words of a criterion. The tokens of word w are ids[offset[w]] to ids[offset[w + 1]].
struct rlhf__judge_words {
    const char *text[RLHF__ANSWERS_MOST]; // borrowed
    double value[RLHF__ANSWERS_MOST];
    int32_t *ids;
    uint32_t offset[RLHF__ANSWERS_MOST + 1], n;
    uint32_t longest; // most tokens of a word
};

// Zero-initialize.
struct rlhf__judge_model {
    const rlhf_host *host;
    const rlhf_language_model_service *service;
    rlhf_language_model *model;
    rlhf_language_info info;
    struct rlhf__judge_words words[RLHF__CRITERIA_MOST];
    double mass; // of the last call: mean probability of all words of a question together
    uint32_t answered;
};

// Open the model in the directory `path`, and encode the answer words. Release with
// rlhf__judge_model_close, even after a failure. Errors: those of the service; RLHF_E_INVALID if
// the tokens of one word begin those of another. [main]
rlhf_status rlhf__judge_model_open(struct rlhf__judge_model *, const rlhf_host *host,
                                   const char *path, int32_t longest,
                                   const struct rlhf__criteria *);
void rlhf__judge_model_close(struct rlhf__judge_model *); // [main]

// Answer all asks. A criterion is lost if its question is too long. Errors: those of the service.
// [step]
rlhf_status rlhf__judge_model_ask(struct rlhf__judge_model *, struct rlhf__asks *);

#endif
