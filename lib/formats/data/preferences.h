// preferences.h: rows that say which response to a prompt is better, tokenized and held in memory.
//
// A row has one of two forms, which a file may mix:
//     {"prompt": text, "chosen": text, "rejected": text}
//     {"prompt": text, "responses": [text, text, ...], "best": index of the better one, from 0}
// It may also have a "margin": the number by which the better response should lead. With
// opts.completions, a row instead has a single response and a label:
//     {"prompt": text, "completion": text, "label": true or false}
// Other keys are ignored.
//
// TRL's conversational form is allowed too. The prompt is then a list of messages, under "prompt"
// or "messages". Each response or completion is a list of messages too, or the assistant's text.
// Without a prompt, chosen and rejected are whole conversations, and their common beginning is the
// prompt. The tokenizer's chat template turns messages into tokens; a response ends with the token
// that ends the assistant's turn.
//
// Prompt and response are tokenized separately, as in a rollout: the response continues the
// prompt's tokens.
//
// It is not an epoch order (data/order.h) or a model batch.
#ifndef RLHF_HOST_DATA_PREFERENCES_H
#define RLHF_HOST_DATA_PREFERENCES_H

#include "data/lines.h"
#include "text/tokenizer.h"

#define RLHF__RESPONSES_MAX 1024 // responses per row at most

// How to treat a row if prompt + response is longer than max_tokens, or if a response is longer
// than max_response.
enum rlhf__preference_long {
    // Cut the row. First, each response loses its last tokens until it has at most max_response
    // tokens and fits after one prompt token (and bos). Then the prompt loses its first tokens,
    // except bos, until the longest response fits. So all responses keep the same prompt. A prompt
    // of messages is never cut; only the responses are cut, to fit after it. If no response token
    // would fit, the row is left out.
    RLHF__PREFERENCE_CUT = 0,
    RLHF__PREFERENCE_REFUSE = 1 // RLHF_E_INVALID with file and line
};

struct rlhf__preference_opts {
    const char *const *paths; // [n_paths] .jsonl or .jsonl.gz, read as one sequence of rows
    size_t n_paths;
    const char *setting; // the setting that gave the paths, for messages; NULL = unknown
    int64_t skip, limit; // leave out the first `skip` rows; keep at most `limit`, 0 = all
    // 1: put bos in front of every prompt that is a text. An empty prompt is then allowed.
    int32_t prepend_bos;
    int32_t max_tokens;   // prompt + response, with bos: the context; at least 2 (3 with bos)
    int32_t max_response; // longest response; 0 = whatever max_tokens leaves
    int32_t long_rows;    // enum rlhf__preference_long
    int32_t completions;  // 1: rows of one response each, labeled desirable or not
    int32_t reserved;
    const char *no_margins;              // the algorithm that refuses margins; NULL = they are read
    const struct rlhf__loading *loading; // NULL = the default bound, never stopped
};

// The responses to one prompt: one row of the file. Borrowed from the set.
struct rlhf__preference {
    const int32_t *prompt; // [n_prompt], n_prompt >= 1, bos included
    // [sum of len] response 0, then response 1, ... In a pair, chosen is response 0 and rejected is
    // 1.
    const int32_t *ids;
    const int32_t *len; // [n] tokens of each response, at least 1
    int32_t n_prompt;
    int32_t n;    // responses: at least 2, or 1 if the row is a completion
    int32_t best; // the preferred one, 0 <= best < n; -1 for an undesirable completion
    float margin; // of the row; 0 if unset
    int64_t row;  // index of the row in the files, from 0; skipped rows count
};

struct rlhf__preferences; // opaque

// Read and tokenize the rows. If the preferred response of a row has the same tokens (after
// cutting) as another response, the row carries no signal: it is left out and counted. Caller owns
// *out; the option struct is not kept. Errors name the file and the line: RLHF_E_IO, RLHF_E_NOMEM,
// and RLHF_E_INVALID for:
//   a missing file; no rows, or none left; invalid JSON or UTF-8
//   a field that is missing, empty or of the wrong type; two forms in one row
//   chosen equals rejected, or another response equals the best one; best out of range
//   a row that is too long, with REFUSE; a prompt without tokens
// [main]
rlhf_status rlhf__preferences_open(const struct rlhf__preference_opts *opts,
                                   const struct rlhf__tokenizer *tok,
                                   struct rlhf__preferences **out, struct rlhf__error *err);

// Look at the first row of a file of JSON rows. Errors: those of reading that row. *are is set to
//   1 if the row has no "text" but a field "chosen", "rejected" or "responses"
//   2 if it has a "completion" and a "label" that is true or false
//   -1 for a pipe, which can be read only once
//   0 otherwise
// [main]
rlhf_status rlhf__preferences_are(const char *path, const char *setting, int *are,
                                  struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__preferences_close(struct rlhf__preferences *set);

// The number of rows that are left, at least 1. A pair or a best-of-n row counts as one. [any]
int64_t rlhf__preferences_count(const struct rlhf__preferences *set);

// Row i, 0 <= i < count. [any]
struct rlhf__preference rlhf__preferences_get(const struct rlhf__preferences *set, int64_t i);

// The number of responses in all rows, which is the number of sequences in one pass over the data.
// [any]
int64_t rlhf__preferences_responses(const struct rlhf__preferences *set);

// Whether any used row has a margin. [any]
int rlhf__preferences_margins(const struct rlhf__preferences *set);

// _truncated: the number of rows that lost tokens. _dropped: the number of rows left out because
// their tokens are equal. [any]
int64_t rlhf__preferences_truncated(const struct rlhf__preferences *set);
int64_t rlhf__preferences_dropped(const struct rlhf__preferences *set);

// _chats: the number of used rows of messages. _too_long: the number of rows left out because their
// prompt of messages fills the context. [any]
int64_t rlhf__preferences_chats(const struct rlhf__preferences *set);
int64_t rlhf__preferences_too_long(const struct rlhf__preferences *set);

// The number of tokens of the row when every response is written out after the prompt. [any]
static inline int64_t rlhf__preference_tokens(const struct rlhf__preference *p) {
    int64_t sum = (int64_t)p->n * p->n_prompt;
    for (int32_t i = 0; i < p->n; i++)
        sum += p->len[i];
    return sum;
}

#endif
