// generate_prompts.h: the prompts of `rlhf-host generate`: typed, from a file, or from standard
// input.
#ifndef RLHF_TOOLS_PROMPT_GENERATE_PROMPTS_H
#define RLHF_TOOLS_PROMPT_GENERATE_PROMPTS_H

#include "base/buf.h"
#include "cmd/flags.h"
#include "data/dataset.h"
#include "model/model.h"
#include "sample/response_rules.h"
#include "tokenizer/tokenizer.h"

#include <rlhf/base.h>

// Zero-initialize; release with rlhf__typed_prompts_finish.
struct rlhf__typed_prompts {
    rlhf_str *text; // [n], n >= 1; strings borrowed from argv, the dataset or `own`
    char **own;     // [n] printable texts of messages; NULL if the prompt is a text
    size_t n;
    int32_t lines;              // 1: typed, or read as lines of text from standard input
    int32_t turns;              // 1: each non-empty text becomes a user turn of a chat
                                // template
    struct rlhf__dataset *rows; // NULL if the prompts were typed
};

// 1 if standard input is a pipe or redirected. [any]
int rlhf__stdin_is_fed(void);

// Open the prompts. `typed` has the texts of --prompt. `file` is the value of --prompts: a file of
// JSON rows or with one prompt per line, "-" for standard input, or NULL if the flag was not given.
// Without both flags, there is one empty prompt. Errors: RLHF_E_INVALID (both were given, or a row
// lacks both prompt and text), those of rlhf__dataset_open, and those of loading. [main]
rlhf_status rlhf__typed_prompts_open(struct rlhf__typed_prompts *,
                                     const struct rlhf__flag_list *typed, const char *file,
                                     const struct rlhf__loading *loading, struct rlhf__error *err);
void rlhf__typed_prompts_finish(struct rlhf__typed_prompts *);

// Returns 1 if the chat template renders prompt i, because it is a list of messages or a text that
// becomes a turn. [any]
int rlhf__typed_prompts_is_chat(const struct rlhf__typed_prompts *, size_t i);

// Append the ids of prompt i. Renders a chat with the chat template. Encodes a text unchanged; if
// `bos` is set or the text is empty, a BOS token comes first. Errors: RLHF_E_INVALID, with the
// prompt's name, if `bos` is set for a chat, or if the template rejects the chat. [main]
rlhf_status rlhf__typed_prompts_encode(const struct rlhf__typed_prompts *, size_t i,
                                       const struct rlhf__tokenizer *tok, int bos,
                                       struct rlhf__ids *out, struct rlhf__error *err);

// Set *alone to 1 if, according to the model's checkpoint, the training run used only plain texts.
// Typed texts are then plain texts too. Errors: those of rlhf__json_load. [main]
rlhf_status rlhf__texts_alone(const struct rlhf__model *m, int32_t *alone, struct rlhf__error *err);

// Write the origin of prompt i for messages: "prompt 1" if typed, otherwise "FILE:LINE". [any]
void rlhf__typed_prompts_where(const struct rlhf__typed_prompts *, size_t i, char *out, size_t cap);

// ---- --stop and --stop-id as response rules ----

// Make the rules that end a response, from the stop texts and stop ids that the user typed. The
// caller destroys *out. Also append the texts and ids to `list` in the form of sampling.stop.
// Errors: RLHF_E_INVALID (an empty text, an id outside the vocabulary), RLHF_E_NOMEM. [main]
rlhf_status rlhf__typed_stops(const struct rlhf__flag_list *texts,
                              const struct rlhf__flag_list *ids, const struct rlhf__tokenizer *tok,
                              struct rlhf__response_rules **out, struct rlhf__buf *list,
                              struct rlhf__error *err);

// ---- printing ----

// A generated text and its prompt. All members are borrowed.
struct rlhf__generated {
    rlhf_str prompt, response;
    const int32_t *prompt_ids, *ids; // [n_prompt], [n]
    const float *logp;               // [n] of ids, as sampled
    size_t n_prompt, n;
    int32_t finished; // 1: ended by a stop token
    int32_t chat;     // 1: the prompt is a chat; print an empty line before the response
};

// Append one JSON object and a newline. ids and logp_sampled are as in rollouts.jsonl. [any]
void rlhf__generated_json(const struct rlhf__generated *, struct rlhf__buf *out);

// Append the prompt and the response. For a chat, puts an empty line between them. Unless `first`
// is set, begins with a line "---". [any]
void rlhf__generated_text(const struct rlhf__generated *, int first, struct rlhf__buf *out);

#endif
