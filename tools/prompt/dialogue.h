// dialogue.h: the dialogue of `generate` on a terminal without a prompt. A person types texts, and
// a model continues or answers them. Lines that begin with a slash are commands.
#ifndef RLHF_TOOLS_PROMPT_DIALOGUE_H
#define RLHF_TOOLS_PROMPT_DIALOGUE_H

#include "cmd/command_setup.h"
#include "prompt/answer.h"

// All members are borrowed, except the model: the dialogue owns the model and closes it.
struct rlhf__dialogue_start {
    struct rlhf__command_setup *setup;
    struct rlhf__model *model;
    const char *given; // the model's directory or run, as typed; NULL: not given
    struct rlhf__chat_choice chat;
    const struct rlhf__flag_list *stop, *stop_id;
    struct rlhf__answer_settings settings;
    int64_t n;   // texts for each line
    int32_t bos; // 1: a text begins with the BOS token
    int32_t raw; // 1: no chat template
};

// Run the dialogue until its end. Returns an error that occurs at the start, but only logs later
// errors. Returns RLHF_E_CANCELLED if a signal ended the program. [main]
rlhf_status rlhf__dialogue(const struct rlhf__dialogue_start *, struct rlhf__error *err);

#endif
