// generate_prompts.h: the prompts of `rlhf-host generate`: typed, from a file, or from standard
// input.
#ifndef RLHF_HOST_CMD_GENERATE_PROMPTS_H
#define RLHF_HOST_CMD_GENERATE_PROMPTS_H

#include "base/buf.h"
#include "cmd/flags.h"
#include "data/dataset.h"
#include "sample/response_rules.h"
#include "text/tokenizer.h"

#include <rlhf/base.h>

// Zero-initialise; release with rlhf__typed_prompts_finish.
struct rlhf__typed_prompts {
    rlhf_str *text; // [n], n >= 1; the strings belong to argv, the dataset or `own`
    char **own;     // [n] texts shown for messages; NULL: the prompt is a text
    size_t n;
    int32_t lines;              // 1: typed, or lines of text from standard input
    int32_t turns;              // 1: a text that is not empty becomes a user's turn of the chat
                                // template
    struct rlhf__dataset *rows; // NULL: typed
};

// 1 if standard input is a pipe or redirected. [any]
int rlhf__stdin_is_fed(void);

// typed: --prompt; file: --prompts, "-" = standard input, JSON rows or one prompt per line, NULL =
// none. Without either: the empty prompt. Errors: RLHF_E_INVALID (both are given; those of
// rlhf__dataset_open; a row without prompt and text) and those of loading. [main]
rlhf_status rlhf__typed_prompts_open(struct rlhf__typed_prompts *,
                                     const struct rlhf__flag_list *typed, const char *file,
                                     const struct rlhf__loading *loading, struct rlhf__error *err);
void rlhf__typed_prompts_finish(struct rlhf__typed_prompts *);

// 1 if prompt i goes through the chat template: messages, or a text as a turn. [any]
int rlhf__typed_prompts_is_chat(const struct rlhf__typed_prompts *, size_t i);

// Append the ids of prompt i: a chat by the chat template, otherwise the text, with BOS in front if
// asked for or if the text is empty. Errors: RLHF_E_INVALID names the prompt (BOS with a chat, or
// the template refuses it). [main]
rlhf_status rlhf__typed_prompts_encode(const struct rlhf__typed_prompts *, size_t i,
                                       const struct rlhf__tokenizer *tok, int bos,
                                       struct rlhf__ids *out, struct rlhf__error *err);

// Where prompt i comes from, for messages: "prompt 1" if typed, or "FILE:LINE". [any]
void rlhf__typed_prompts_where(const struct rlhf__typed_prompts *, size_t i, char *out, size_t cap);

// ---- --stop and --stop-id as response rules ----

// Rules for the typed texts and ids; the caller destroys *out. They are also appended to `list`, in
// the form of sampling.stop. Errors: RLHF_E_INVALID (an empty text, an id outside the vocabulary),
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__typed_stops(const struct rlhf__flag_list *texts,
                              const struct rlhf__flag_list *ids, const struct rlhf__tokenizer *tok,
                              struct rlhf__response_rules **out, struct rlhf__buf *list,
                              struct rlhf__error *err);

// ---- printing ----

// All borrowed.
struct rlhf__generated {
    rlhf_str prompt, response;
    const int32_t *prompt_ids, *ids; // [n_prompt], [n]
    const float *logp;               // [n] of ids, as sampled
    size_t n_prompt, n;
    int32_t finished; // 1: ended by a stop token
    int32_t chat;     // 1: the prompt is a chat, so an empty line separates the response
};

// One object and a newline; ids and logp_sampled as in rollouts.jsonl. [any]
void rlhf__generated_json(const struct rlhf__generated *, struct rlhf__buf *out);

// Prompt and response, separated by an empty line for a chat, after a line "---" unless it is the
// first. [any]
void rlhf__generated_text(const struct rlhf__generated *, int first, struct rlhf__buf *out);

#endif
