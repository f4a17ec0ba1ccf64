// dialogue_reward.h: scores a text of a dialogue with a reward plugin.
#ifndef RLHF_TOOLS_PROMPT_DIALOGUE_REWARD_H
#define RLHF_TOOLS_PROMPT_DIALOGUE_REWARD_H

#include "cmd/command_setup.h"
#include "prompt/answer.h"

struct rlhf__dialogue_reward;

// Open the reward `plugin`, "X.so[:k=v,...]", for texts of `model`. `model` must outlive *out,
// which the caller owns. Errors: those of the plugin. [main]
rlhf_status rlhf__dialogue_reward_open(struct rlhf__command_setup *,
                                       const struct rlhf__model *model, const char *plugin,
                                       struct rlhf__dialogue_reward **out, struct rlhf__error *err);
void rlhf__dialogue_reward_close(struct rlhf__dialogue_reward *); // NULL allowed [main]

// Set *score to the reward of the answer. `text` has the prompt's text, and `prompt` has its ids.
// Errors: those of rlhf__score_alone, and RLHF_E_INVALID if the reward could not score the text.
// [main]
rlhf_status rlhf__dialogue_reward_score(struct rlhf__dialogue_reward *, rlhf_str text,
                                        const struct rlhf__ids *prompt,
                                        const struct rlhf__answer *answer, double *score,
                                        struct rlhf__error *err);

#endif
