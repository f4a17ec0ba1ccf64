// generate_input.h: decides whether the prompts of `generate` get a chat template and a BOS token,
// encodes them as token ids, and logs these decisions.
#ifndef RLHF_TOOLS_PROMPT_GENERATE_INPUT_H
#define RLHF_TOOLS_PROMPT_GENERATE_INPUT_H

#include "model/model.h"
#include "prompt/generate_prompts.h"

#include <signal.h>

// Flags of the command.
struct rlhf__generate_how {
    struct rlhf__chat_choice chat;
    int64_t max_new;
    int32_t bos, raw, ignore_eos;
    int32_t flags; // 1: --prompt gives the texts
};

// Zero-initialize. Then set the members `model` and `how`, and open `prompts`. Release with
// rlhf__generate_input_finish.
struct rlhf__generate_input {
    const struct rlhf__model *model;
    struct rlhf__generate_how how;
    struct rlhf__typed_prompts prompts;
    struct rlhf__ids ids; // of all prompts, concatenated
    size_t *at;           // [prompts + 1] offsets in `ids`
    size_t longest;
    int32_t texts_alone; // 1: the run that trained the model had no rows with messages
};

// Returns 1 if prompt i is a text, and 0 if it is a chat. A chat gets no separate BOS token,
// because the chat template determines how it begins. [any]
int rlhf__generate_input_is_text(const struct rlhf__generate_input *, size_t i);

// Set the chat template, and decide whether typed texts become turns in the template. Errors:
// RLHF_E_INVALID (a flag has no effect, or the template does not exist). [main]
rlhf_status rlhf__generate_input_template(struct rlhf__generate_input *, struct rlhf__error *err);

// Encode all prompts. Call this after rlhf__generate_input_template. Errors: RLHF_E_INVALID (a
// prompt is too long, or needs a BOS token that does not exist); RLHF_E_NOMEM; RLHF_E_CANCELLED if
// *cancelled is set. [main]
rlhf_status rlhf__generate_input_encode(struct rlhf__generate_input *,
                                        const volatile sig_atomic_t *cancelled,
                                        struct rlhf__error *err);

// Log whether the prompts got a template and a BOS token, and warn if the end of a turn does not
// end responses. `stops` has the form of sampling.stop. [main]
void rlhf__generate_input_log(const struct rlhf__generate_input *, const char *stops,
                              struct rlhf__log *);

void rlhf__generate_input_finish(struct rlhf__generate_input *); // accepts a zeroed one [main]

#endif
