// sample_choice.h: chooses the rows of a phase that become samples, and copies their texts and
// numbers for samples.jsonl (docs/run-files.md). Copies are needed because the rows are freed
// before it is known whether samples are written.
#ifndef RLHF_HOST_REPORT_SAMPLE_CHOICE_H
#define RLHF_HOST_REPORT_SAMPLE_CHOICE_H

#include "config/config.h"
#include "data/prompts.h"
#include "model/model.h"
#include "report/samples.h"
#include "sample/reward_rows.h"

// The samples of a phase. `text` holds their texts. `paid` holds the score of each reward for each
// sample; it is NULL if there is only one reward. Zero-initialize; release with
// rlhf__sample_choice_finish.
struct rlhf__sample_choice {
    struct rlhf__sample *rows; // [n]
    struct rlhf__buf text;
    float *paid;
    size_t n;
    int32_t is_data; // 1: the samples are rows of a file
    int32_t shown;   // 1: they were written and shown, or this has failed
};

void rlhf__sample_choice_finish(struct rlhf__sample_choice *); // accepts a zeroed one [any]

enum rlhf__sample_choice_flag {
    RLHF__CHOICE_REWARDS = 1,
    RLHF__CHOICE_REFERENCE = 2, // log-probs of the reference are known
    RLHF__CHOICE_VALUES = 4,
    RLHF__CHOICE_HELD_OUT = 8 // responses to held-out prompts
};

// Where samples come from; all borrowed.
struct rlhf__sample_choice_from {
    const struct rlhf__rows *rows;
    int32_t source;                      // enum rlhf_source
    uint32_t flags;                      // bits of enum rlhf__sample_choice_flag
    const struct rlhf__scored *scored;   // of responses
    const struct rlhf__prompts *prompts; // of responses
    const struct rlhf__tokenizer *tok;
    const struct rlhf__labels *labels; // of a classifier's rows
    const struct rlhf__config *config;
};

// Replace the samples in *s. config->log.samples is their maximum number, except that the first
// group of a file is always picked as a whole. Further groups of a file are picked as long as they
// fit. Responses are picked at fixed quantiles of the rewards, lowest first. Responses to held-out
// prompts are picked at even intervals. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__sample_choice_take(struct rlhf__sample_choice *s,
                                     const struct rlhf__sample_choice_from *from,
                                     struct rlhf__error *err);

// Pick at most n rows, evenly spaced. These include the first row and, if n > 1, the last row.
// `rows` is the number of rows to pick from. Returns how many were picked. [any]
uint32_t rlhf__sample_choice_even(uint32_t rows, uint32_t n, uint32_t *pick);

#endif
