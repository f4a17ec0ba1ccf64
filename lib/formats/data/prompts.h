// prompts.h: the prompts of a rollout run, tokenized, with the query rules of the 2019 RLHF code.
//
// The prompts are a constant text, the lines of text files, or the rows of JSON Lines, which have a
// text or messages. The tokenizer's chat template turns messages into a prompt that ends where the
// assistant's answer begins. Messages are never cut: they are used whole or left out.
//
// This file does not decide the order of the prompts. For the order, the caller uses an rlhf__order
// of rlhf__prompts_count rows, with the stream "prompts".
#ifndef RLHF_FORMATS_DATA_PROMPTS_H
#define RLHF_FORMATS_DATA_PROMPTS_H

#include "base/buf.h"
#include "data/lines.h"
#include "tokenizer/tokenizer.h"

// What to do with a prompt of more than max_tokens tokens.
enum rlhf__long_prompts {
    RLHF__PROMPT_CUT_LEFT = 0,  // cut its first tokens, except bos
    RLHF__PROMPT_CUT_RIGHT = 1, // cut its last tokens; end_at_period is applied afterwards
    RLHF__PROMPT_SKIP = 2,      // leave it out
    RLHF__PROMPT_REFUSE = 3     // fail with RLHF_E_INVALID; the message has file and line
};

struct rlhf__prompt_opts {
    const char *text;         // the constant prompt, if n_paths is 0
    const char *const *paths; // [n_paths]
    size_t n_paths;
    const char *setting; // for messages: the setting that gave the paths; NULL = unknown
    // The JSON key of the prompt, whose value may be a list of messages. NULL: use the first of
    // "prompt", "messages" and "text" that the row has.
    const char *field;
    int32_t prepend_bos;        // 1: put bos before every prompt that is a text
    int32_t start_after_period; // 1: the prompt starts after the first "." token; a text is skipped
                                // if it has no such token, or if nothing follows
    int32_t end_at_period; // 1: the prompt ends with its last "." token; without one, it is skipped
    int32_t length;        // > 0: the prompt is cut to this many tokens, without bos, after
                           // start_after_period and before end_at_period
    int32_t min_tokens;    // shorter prompts are left out; bos counts; values below 1 mean 1
    int32_t max_tokens;    // length of the longest prompt; bos counts; > 0
    int32_t long_rows;     // enum rlhf__long_prompts
    int64_t skip, limit;   // leave out the first `skip` rows; keep at most `limit` rows, 0 = all
    const struct rlhf__loading *loading; // NULL = default memory limit, no cancellation
};

// A prompt. Borrowed from the set.
struct rlhf__prompt {
    const int32_t *ids; // [n], n >= 1
    int32_t n;
    int32_t is_chat; // 1: made of messages
    // The prompt as text, in valid UTF-8: decoded from `ids` without special tokens. For a prompt
    // of messages, the text is their contents, separated by empty lines.
    rlhf_str text;
    rlhf_str meta; // the row as JSON text; empty for text files and the constant prompt
    int64_t row;   // number of the row in the files
};

struct rlhf__prompts; // opaque

// Read the prompts. The caller owns *out; free it with rlhf__prompts_close. The options are not
// kept. If length > 0 and end_at_period is 0, prompts shorter than `length` tokens are left out.
// Errors: RLHF_E_IO, RLHF_E_NOMEM, those of rlhf__dataset_open and rlhf__conversation_encode, and
// RLHF_E_INVALID if
// - a prompt is too long, and long_rows is RLHF__PROMPT_REFUSE;
// - the rules leave out every prompt;
// - start_after_period or end_at_period is set, but the tokenizer lacks the token ".";
// - prepend_bos is set, but the tokenizer lacks bos;
// - a row has messages, and start_after_period, end_at_period or length is set;
// - a row lacks both a text and messages. [main]
rlhf_status rlhf__prompts_open(const struct rlhf__prompt_opts *opts,
                               const struct rlhf__tokenizer *tok, struct rlhf__prompts **out,
                               struct rlhf__error *err);

// Make prompts from token ids: prompt i is ids[i][0 .. len[i]), with len[i] >= 1, and its row
// number is i. The ids are copied. Errors: RLHF_E_INVALID (no prompts, an empty prompt),
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__prompts_from_ids(const int32_t *const *ids, const int32_t *len, int64_t n,
                                   const struct rlhf__tokenizer *tok, struct rlhf__prompts **out,
                                   struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__prompts_close(struct rlhf__prompts *set);

// Number of prompts that are made of messages. [any]
int64_t rlhf__prompts_chats(const struct rlhf__prompts *set);

// 1 if each line of the file is a prompt, 0 if the lines are JSON rows. [any]
int rlhf__prompts_are_lines(const struct rlhf__prompts *set);

// Number of prompts, at least 1. [any]
int64_t rlhf__prompts_count(const struct rlhf__prompts *set);

// Counts of how the rows were used.
struct rlhf__prompt_counts {
    int64_t rows;      // rows read
    int64_t no_period; // rows left out by the query rules
    int64_t too_short, too_long;
    int64_t cut; // prompts that were used but cut
};
// The counts, for tests. The host reports them in words (rlhf__prompts_summary). [any]
struct rlhf__prompt_counts rlhf__prompts_counts(const struct rlhf__prompts *set);

// Append "3 of 4 rows are used; left out: 1 under 1 token". If every row is used whole, append
// nothing. [any]
void rlhf__prompts_summary(const struct rlhf__prompts *set, struct rlhf__buf *out);

// Prompt i, 0 <= i < count. [any]
struct rlhf__prompt rlhf__prompts_get(const struct rlhf__prompts *set, int64_t i);

// Write "FILE:LINE" of prompt i's row to out[cap], for error messages. If the prompts are not from
// a file, write "". [any]
void rlhf__prompts_where(const struct rlhf__prompts *set, int64_t i, char *out, size_t cap);

// The number of tokens of the longest prompt. [any]
int32_t rlhf__prompts_longest(const struct rlhf__prompts *set);

#endif
