// preferences.h: rows that tell which response to a prompt is better, tokenized and held in memory.
//
// A row has one of two forms; a file may contain both:
//     {"prompt": text, "chosen": text, "rejected": text}
//     {"prompt": text, "responses": [text, text, ...], "best": index of the best one, from 0}
// It may also have a "margin": the difference in reward that the better response should reach. With
// opts.completions, a row instead has a single response and a label:
//     {"prompt": text, "completion": text, "label": true or false}
// "cut" is a list of booleans, one for each response: true for a response that a length limit cut
// off. In rows of messages, such a response does not get the token that ends a turn. Other keys are
// ignored.
//
// TRL's conversational form is allowed too. There, the prompt is a list of messages, in "prompt" or
// "messages". Each response or completion is also a list of messages, or a string: the text of the
// assistant's message. If the row has no prompt, "chosen" and "rejected" are whole conversations,
// and the prompt is the beginning that they share. The tokenizer's chat template turns messages
// into tokens. A response ends with the token that ends the assistant's turn.
//
// Prompt and response are tokenized separately, as in a rollout, which appends the response's
// tokens to the prompt's tokens.
//
// This file does not choose the order of an epoch (data/order.h does) or make a model's batches.
#ifndef RLHF_FORMATS_DATA_PREFERENCES_H
#define RLHF_FORMATS_DATA_PREFERENCES_H

#include "data/lines.h"
#include "tokenizer/tokenizer.h"

#define RLHF__RESPONSES_MAX 1024 // maximal number of responses in a row

// What to do with a row if prompt + response is longer than max_tokens, or if a response is longer
// than max_response.
enum rlhf__preference_long {
    // Cut the row. First, each response is cut at its end to max_response tokens, or to fewer if
    // one prompt token (and bos) would not fit before it. Then the prompt is cut at its beginning,
    // after bos, until the longest response fits. So all responses keep the same prompt. A prompt
    // of messages is never cut: the responses are cut to fit after it. If such a prompt leaves no
    // room for a response, the row is left out.
    RLHF__PREFERENCE_CUT = 0,
    RLHF__PREFERENCE_REFUSE = 1 // fail with RLHF_E_INVALID; the message has file and line
};

struct rlhf__preference_opts {
    const char *const *paths; // [n_paths] .jsonl or .jsonl.gz, read as one sequence of rows
    size_t n_paths;
    const char *setting; // for messages: the setting that gave the paths; NULL = unknown
    int64_t skip, limit; // leave out the first `skip` rows; keep at most `limit`, 0 = all
    // 1: put bos before every prompt that is a text. An empty prompt is then allowed.
    int32_t prepend_bos;
    int32_t max_tokens;     // the context: tokens of prompt, response and bos; >= 2 (3 with bos)
    int32_t max_response;   // tokens of a response; 0 = as many as max_tokens allows
    int32_t long_rows;      // enum rlhf__preference_long
    int32_t completions;    // 1: each row has one response, labeled desirable or not
    const char *no_margins; // name of the algorithm that refuses margins; NULL = allowed
    const struct rlhf__loading *loading; // NULL = default memory limit, no cancellation
};

// One row: a prompt and the responses to it. Borrowed from the set.
struct rlhf__preference {
    const int32_t *prompt; // [n_prompt], n_prompt >= 1, bos included
    // [sum of len] the ids of response 0, then those of response 1, and so on. In a pair, response
    // 0 is the chosen one and response 1 the rejected one.
    const int32_t *ids;
    const int32_t *len; // [n] number of tokens of each response, at least 1
    int32_t n_prompt;
    int32_t n;    // number of responses: at least 2, or 1 if the row is a completion
    int32_t best; // index of the best response, 0 <= best < n; -1 for an undesirable completion
    float margin; // 0 without a margin
    int64_t row;  // number of the row in the files, from 0; skipped rows count
};

struct rlhf__preferences; // opaque

// Read and tokenize the rows. If cutting makes another response equal to the preferred one, the row
// gives no training signal. Such rows are left out and counted. The caller owns *out. The options
// are not kept. The error messages have the file and the line. Errors: RLHF_E_IO, RLHF_E_NOMEM, and
// RLHF_E_INVALID for:
//   a missing file; files without rows, or whose rows are all left out; invalid JSON or UTF-8
//   a field that is missing, empty or of the wrong type; two forms in one row
//   a rejected response equal to the chosen one, or another response equal to the best one
//   an index "best" that is out of range
//   a row that is too long, with REFUSE; a prompt without tokens
// [main]
rlhf_status rlhf__preferences_open(const struct rlhf__preference_opts *opts,
                                   const struct rlhf__tokenizer *tok,
                                   struct rlhf__preferences **out, struct rlhf__error *err);

// Determine the form of a file of JSON rows from its first row. Errors: those of reading that row.
// Sets *are to
//   1 if the row has a field "chosen", "rejected" or "responses", but no "text"
//   2 if it has a "completion" and a "label" that is true or false, but no "text"
//   -1 if the path is not a regular file; it is not read, because a pipe can be read only once
//   0 otherwise
// [main]
rlhf_status rlhf__preferences_are(const char *path, const char *setting, int *are,
                                  struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__preferences_close(struct rlhf__preferences *set);

// Returns the number of rows that are used, at least 1. A row counts as one, however many responses
// it has. [any]
int64_t rlhf__preferences_count(const struct rlhf__preferences *set);

// Row i, 0 <= i < count. [any]
struct rlhf__preference rlhf__preferences_get(const struct rlhf__preferences *set, int64_t i);

// Returns the number of responses in all used rows, which is the number of sequences in one pass
// over the data. [any]
int64_t rlhf__preferences_responses(const struct rlhf__preferences *set);

// 1 if any row that is used has a margin. [any]
int rlhf__preferences_margins(const struct rlhf__preferences *set);

// rlhf__preferences_truncated returns the number of rows that lost tokens.
// rlhf__preferences_dropped returns the number of rows that were left out because another response
// has the same tokens as the best one. [any]
int64_t rlhf__preferences_truncated(const struct rlhf__preferences *set);
int64_t rlhf__preferences_dropped(const struct rlhf__preferences *set);

// rlhf__preferences_chats returns the number of used rows that consist of messages.
// rlhf__preferences_too_long returns the number of rows that were left out because their prompt of
// messages fills the context. [any]
int64_t rlhf__preferences_chats(const struct rlhf__preferences *set);
int64_t rlhf__preferences_too_long(const struct rlhf__preferences *set);

// The number of tokens of the row if the prompt is counted for every response. [any]
static inline int64_t rlhf__preference_tokens(const struct rlhf__preference *p) {
    int64_t sum = (int64_t)p->n * p->n_prompt;
    for (int32_t i = 0; i < p->n; i++)
        sum += p->len[i];
    return sum;
}

#endif
