// play_show.h: prints an episode that a person plays, as text or as one JSON object for each call.
#ifndef RLHF_TOOLS_PROMPT_PLAY_SHOW_H
#define RLHF_TOOLS_PROMPT_PLAY_SHOW_H

#include "episode/episode.h"
#include "tokenizer/tokenizer.h"

struct rlhf__play_show {
    const struct rlhf__tokenizer *tok; // of the policy; NULL: none
    int32_t json;
};

// Print the tools of the environment. `tools` is the text of a JSON list, or NULL if there are
// none. [main]
void rlhf__play_show_tools(const struct rlhf__play_show *, const char *tools);

// Print the prompt of the data row as text. Prints nothing if the output is JSON. [main]
void rlhf__play_show_prompt(const struct rlhf__play_show *, rlhf_str prompt);

// Print the environment's messages from reset() or after the last turn, its reward for that turn,
// and what a policy reads. [main]
void rlhf__play_show_said(const struct rlhf__play_show *, const struct rlhf__episode *);

// Print how the episode has ended, and the sum of its rewards. `left` is 1 if the input ended
// before the episode. [main]
void rlhf__play_show_end(const struct rlhf__play_show *, const struct rlhf__episode *, int left);

#endif
