// prompts.h: the prompts of a rollout run, tokenized, with the query rules of the 2019 RLHF code.
//
// Prompts come from one constant text, from text files (one prompt on each line) or from JSON
// Lines, whose rows have a text or messages. The tokenizer's chat template turns messages into a
// prompt that ends where the assistant answers. Messages are used whole or left out.
//
// This file does not decide the order of the prompts. The caller visits them with an rlhf__order of
// stream "prompts" and rlhf__prompts_count rows.
#ifndef RLHF_HOST_DATA_PROMPTS_H
#define RLHF_HOST_DATA_PROMPTS_H

#include "base/buf.h"
#include "data/lines.h"
#include "text/tokenizer.h"

// How to treat a prompt of more than max_tokens tokens.
enum rlhf__long_prompts {
    RLHF__PROMPT_CUT_LEFT = 0,  // its first tokens are dropped; bos stays
    RLHF__PROMPT_CUT_RIGHT = 1, // its last tokens are dropped, before end_at_period is applied
    RLHF__PROMPT_SKIP = 2,      // it is left out
    RLHF__PROMPT_REFUSE = 3     // RLHF_E_INVALID with file and line
};

struct rlhf__prompt_opts {
    const char *text;         // the constant prompt; used when n_paths is 0
    const char *const *paths; // [n_paths]
    size_t n_paths;
    const char *setting; // the setting that gave the paths, for messages; NULL = unknown
    // The JSON key of the prompt, which may be a list of messages. NULL: the first of "prompt",
    // "messages" and "text" that the row has.
    const char *field;
    int32_t prepend_bos;        // 1: bos in front of every prompt that is a text
    int32_t start_after_period; // 1: the prompt starts after the first "." token; texts without one
                                // (or with nothing after it) are skipped
    int32_t end_at_period;      // 1: the prompt ends with its last "." token; else skipped
    int32_t length;             // > 0: cut to this many tokens after the start rule, before the end
                                // rule (bos not counted)
    int32_t min_tokens;         // shorter prompts are left out; bos counts; below 1 means 1
    int32_t max_tokens;         // longest prompt, bos counted; > 0
    int32_t long_rows;          // enum rlhf__long_prompts
    int64_t skip, limit;        // rows of the files; limit 0 = all
    const struct rlhf__loading *loading; // NULL = the default bound, never stopped
};

// Borrowed from the set.
struct rlhf__prompt {
    const int32_t *ids; // [n], n >= 1
    int32_t n;
    int32_t is_chat; // 1: of messages
    // Decoded from ids, without special tokens; well-formed UTF-8. For messages: their contents,
    // separated by empty lines.
    rlhf_str text;
    rlhf_str meta; // the row as JSON text; len 0 for text files and the constant prompt
    int64_t row;   // row in the files
};

struct rlhf__prompts; // opaque

// Read the prompts. Caller owns *out; free with rlhf__prompts_close. The option structs are not
// kept. With length > 0 and no end rule, prompts shorter than `length` tokens are left out. Errors:
// RLHF_E_IO, RLHF_E_NOMEM, those of rlhf__dataset_open and rlhf__conversation_encode, and
// RLHF_E_INVALID for:
//   a long prompt with RLHF__PROMPT_REFUSE; rules that leave no prompts
//   a tokenizer in which "." is not a token, or that lacks a required bos
//   rows of messages together with query rules, a length or bos
// [main]
rlhf_status rlhf__prompts_open(const struct rlhf__prompt_opts *opts,
                               const struct rlhf__tokenizer *tok, struct rlhf__prompts **out,
                               struct rlhf__error *err);

// Make prompts from token ids: prompt i is ids[i][0 .. len[i]), with len[i] >= 1, and its row is i.
// The ids are copied. Errors: RLHF_E_INVALID (no prompts, an empty one), RLHF_E_NOMEM. [main]
rlhf_status rlhf__prompts_from_ids(const int32_t *const *ids, const int32_t *len, int64_t n,
                                   const struct rlhf__tokenizer *tok, struct rlhf__prompts **out,
                                   struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__prompts_close(struct rlhf__prompts *set);

// How many of the prompts are made of messages. [any]
int64_t rlhf__prompts_chats(const struct rlhf__prompts *set);

// 1 if each line of the file is a prompt, 0 if the lines are JSON rows. [any]
int rlhf__prompts_are_lines(const struct rlhf__prompts *set);

// Number of prompts, at least 1. [any]
int64_t rlhf__prompts_count(const struct rlhf__prompts *set);

// How the rows were used.
struct rlhf__prompt_counts {
    int64_t rows;      // read
    int64_t no_period; // left out by the query rules
    int64_t too_short, too_long;
    int64_t cut; // used, but not whole
};
// The counts as numbers, for tests. The host reports them in words (rlhf__prompts_summary). [any]
struct rlhf__prompt_counts rlhf__prompts_counts(const struct rlhf__prompts *set);

// Append "3 of 4 rows are used; left out: 1 under 1 token", or nothing when every row is used
// whole. [any]
void rlhf__prompts_summary(const struct rlhf__prompts *set, struct rlhf__buf *out);

// Prompt i, 0 <= i < count. [any]
struct rlhf__prompt rlhf__prompts_get(const struct rlhf__prompts *set, int64_t i);

// Write "FILE:LINE" of prompt i's row into out[cap], for error messages; "" without a file. [any]
void rlhf__prompts_where(const struct rlhf__prompts *set, int64_t i, char *out, size_t cap);

// Longest prompt in tokens. [any]
int32_t rlhf__prompts_longest(const struct rlhf__prompts *set);

#endif
