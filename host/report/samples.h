// samples.h: writes the samples of a phase to RUN/samples.jsonl, and shows them as a table every
// few phases.
#ifndef RLHF_HOST_REPORT_SAMPLES_H
#define RLHF_HOST_REPORT_SAMPLES_H

#include "base/buf.h"
#include "base/folder.h"
#include "base/log.h"

#include <stdio.h>

struct rlhf__sample {
    rlhf_str prompt, response; // bytes; invalid UTF-8 is replaced
    double reward;             // mixed score; NaN = a run without rewards
    double ref_logp;           // sum over the response under the reference, nats; NaN = not known
    double logp;               // the same sum under the policy that sampled it; NaN = not known
    const float *paid;         // [n_rewards of the table] each reward's score; NULL if only one
    rlhf_str details;          // further members of the sample's line: ", \"key\": value, ..."
    // is_chat: 1 = the prompt is made of messages; is_marked: 1 = the prompt of a file's row has
    // special tokens, such as those of a chat template, so it is not what a user would type
    int32_t is_chat, is_marked;
    int32_t prompt_tokens; // length of the prompt
};

struct rlhf__samples;

// Opens the file. keep_phase has the same meaning as in rlhf__metrics_open. [main]
rlhf_status rlhf__samples_open(const struct rlhf__folder *run, int64_t keep_phase,
                               struct rlhf__log *log, struct rlhf__samples **out,
                               struct rlhf__error *err);
void rlhf__samples_close(struct rlhf__samples *s); // NULL allowed

// Append n lines, one for each sample: {"phase", "prompt", "response", "reward", "ref_logp",
// "logp"} and the members in the sample's `details`. Does nothing if s is NULL. [main]
rlhf_status rlhf__samples_write(struct rlhf__samples *s, int64_t phase,
                                const struct rlhf__sample *samples, size_t n,
                                struct rlhf__error *err);

// Call fsync on the file. This is needed before a checkpoint is committed. [main]
rlhf_status rlhf__samples_sync(struct rlhf__samples *s, struct rlhf__error *err);

// Log one sample as a JSON object: {"event": "sample", "phase", "prompt", ...}. [main]
void rlhf__samples_event(struct rlhf__log *log, int64_t phase, const struct rlhf__sample *s);

enum { RLHF__SAMPLE_REWARDS = 4 }; // maximum number of rewards with separate columns

struct rlhf__sample_table {
    int64_t phase;
    const char *const
        *rewards;     // [n_rewards] names, if there are several rewards; otherwise n_rewards is 0
    size_t n_rewards; // at most RLHF__SAMPLE_REWARDS; 0: no extra columns
    int32_t width;    // columns in total; 0 = the terminal's width, or 100 without a terminal
    int32_t boxed;    // 1: boxes with several lines of text each; 0: one line per sample
    // 1: omit the reward column, because the run lacks rewards. If the run also lacks a reference,
    // omit the log-prob column too.
    int32_t no_reward;
};

// Append the table of a phase to a buffer; t->width must be set. [main]
void rlhf__samples_put(struct rlhf__buf *out, const struct rlhf__sample_table *t,
                       const struct rlhf__sample *samples, size_t n);

// Print the table of a phase. Its columns are the reward, the score of each reward plugin (if there
// are several), the log-prob under the reference, and the text. The log-prob column is omitted if
// the text would get too little space. [main]
void rlhf__samples_table(FILE *out, const struct rlhf__sample_table *,
                         const struct rlhf__sample *samples, size_t n);

#endif
