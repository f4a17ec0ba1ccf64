// prompts.h: the prompts of a rollout run, tokenised, with the query rules of the 2019 RLHF code.
//
// Sources: one constant text, text files (a line each) or JSON Lines. What it is not: an order; the
// caller walks the prompts with an rlhf__order of stream "prompts" and rlhf__prompts_count rows.
#ifndef RLHF_HOST_DATA_PROMPTS_H
#define RLHF_HOST_DATA_PROMPTS_H

#include "text/tokenizer.h"

struct rlhf__prompt_opts {
    const char *text;         // the constant prompt; used when n_paths is 0
    const char *const *paths; // [n_paths]
    size_t n_paths;
    const char *field;          // JSON key; NULL = "prompt", else "text" when that is missing
    int32_t prepend_bos;        // 1: bos in front of every prompt
    int32_t start_after_period; // 1: the prompt starts after the first "." token; texts without one
                                // (or with nothing after it) are skipped
    int32_t end_at_period;      // 1: the prompt ends with its last "." token; else skipped
    int32_t length;             // > 0: cut to this many tokens after the start rule, before the end
                                // rule (bos not counted)
    int32_t max_tokens;         // longest prompt allowed, bos counted; > 0
    int64_t skip, limit;        // rows of the files; limit 0 = all
};

// Borrowed from the set.
struct rlhf__prompt {
    const int32_t *ids; // [n], n >= 1
    int32_t n, reserved;
    rlhf_str text; // decoded from ids without special tokens, well-formed UTF-8
    rlhf_str meta; // the row as JSON text; len 0 for text files and the constant prompt
    int64_t row;   // row in the files
};

struct rlhf__prompts; // opaque

// Caller owns *out; free with rlhf__prompts_close. The option structs are not kept.
// Errors: RLHF_E_INVALID: everything rlhf__dataset_open says; "prompt longer than the context" with
// file and line; an empty prompt; rules that leave none; a "." that is no token; no bos.
// RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__prompts_open(const struct rlhf__prompt_opts *opts,
                               const struct rlhf__tokenizer *tok, struct rlhf__prompts **out,
                               struct rlhf__error *err);

// Prompts from token ids: prompt i is ids[i][0 .. len[i]), len[i] >= 1, its row i; ids are copied.
// Errors: RLHF_E_INVALID (no prompts, an empty one), RLHF_E_NOMEM. [main]
rlhf_status rlhf__prompts_from_ids(const int32_t *const *ids, const int32_t *len, int64_t n,
                                   const struct rlhf__tokenizer *tok, struct rlhf__prompts **out,
                                   struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__prompts_close(struct rlhf__prompts *set);

// Number of prompts, at least 1. [any]
int64_t rlhf__prompts_count(const struct rlhf__prompts *set);

// Texts that the query rules skipped. [any]
int64_t rlhf__prompts_skipped(const struct rlhf__prompts *set);

// Prompt i, 0 <= i < count. [any]
struct rlhf__prompt rlhf__prompts_get(const struct rlhf__prompts *set, int64_t i);

// Longest prompt in tokens. [any]
int32_t rlhf__prompts_longest(const struct rlhf__prompts *set);

#endif
