// fixture.h: a reward plugin loaded from the build tree, and batches of texts for it.
#ifndef RLHF_TESTS_REWARDS_FIXTURE_H
#define RLHF_TESTS_REWARDS_FIXTURE_H

#include "support/check.h"
#include <rlhf/reward.h>
#include <rlhf/test.h>

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TEXTS = 64, MAX_IDS = 4096 };

struct reward {
    struct rlhf_test_host host;
    struct rlhf_test_classifier classifier; // offered as rlhf.classifier/1
    const void *reward_model;               // offered as rlhf.reward_model/1 unless NULL
    const void *language_model;             // offered as rlhf.language_model/1 unless NULL
    const void *rows;                       // offered as rlhf.row/1 unless NULL
    const void *limits;                     // offered as rlhf.limits/1 unless NULL
    const void *programs;                   // offered as rlhf.program/1 unless NULL
    const rlhf_plugin *plugin;
    const rlhf_reward_ops *ops;
    void *self;
    union {
        unsigned char bytes[256];
        double align;
    } config;
};

// A ragged batch; ids of a text are its bytes, so a prompt of k bytes has k tokens.
struct texts {
    uint32_t n, reserved;
    rlhf_str prompt[MAX_TEXTS], response[MAX_TEXTS], meta[MAX_TEXTS];
    int32_t ids[MAX_IDS], offset[MAX_TEXTS + 1], prompt_len[MAX_TEXTS];
    uint8_t finished[MAX_TEXTS], verdict[MAX_TEXTS], failed[MAX_TEXTS];
    float seq[MAX_TEXTS], token[MAX_IDS]; // token: for plugins with per-token rewards
};

// Loads a file and calls create() with options "a=1,b=x". If that fails, r->host.fail_text has the
// reason. The classifier has the labels NEGATIVE and POSITIVE, with logits -m and m, where m is the
// number of good words in the text (good, wonderful, loved) minus the number of bad ones (bad,
// terrible, hated).
rlhf_status reward_try(struct reward *, const char *file, const char *options);
void reward_open(struct reward *, const char *file, const char *options); // asserts success
void reward_close(struct reward *);                                       // asserts no leak

void texts_add(struct texts *, const void *prompt, size_t prompt_len, const void *response,
               size_t response_len);

// Score rows [from, to) into t->seq.
rlhf_status texts_score(struct reward *, struct texts *, uint32_t from, uint32_t to);

// check_row() for a data row, and why_unused() for an option.
rlhf_status reward_check_row(struct reward *, rlhf_str row);
const char *reward_why_unused(struct reward *, const char *key);

// Scores one response (a C string) after the prompt "It was ". Asserts success.
double score_text(struct reward *, const char *response);

#endif
