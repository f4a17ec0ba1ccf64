// play_input.h: reads the turns of a person or a script that plays an environment. A person at a
// terminal can edit the line; there, `/help` and `/quit` are commands, and Ctrl-C or Ctrl-D ends
// the game. In all other input, each line is a turn.
#ifndef RLHF_TOOLS_PROMPT_PLAY_INPUT_H
#define RLHF_TOOLS_PROMPT_PLAY_INPUT_H

#include "base/env.h"
#include "prompt/editor.h"

#include <stdio.h>

// Zero-initialize; release with rlhf__play_input_close.
struct rlhf__play_input {
    const struct rlhf__env *env;
    struct rlhf__editor *editor; // a person types; NULL: lines come from `file`
    FILE *file;
    int32_t echo;  // 1: print each line that was read from `file`
    int32_t ended; // 1: the input has ended
};

// Read turns from the file `script` or, if it is NULL, from standard input. A person types the
// turns if `script` is NULL, standard input and standard output are terminals, and `json` is 0.
// `env` must outlive the input. Errors: RLHF_E_INVALID, RLHF_E_NOMEM. [main]
rlhf_status rlhf__play_input_open(struct rlhf__play_input *, const struct rlhf__env *env,
                                  const char *script, int json, struct rlhf__error *err);
void rlhf__play_input_close(struct rlhf__play_input *); // accepts a zeroed one [main]

// Read the next turn into *turn, or set `ended` at the end of the input. `number` is the number of
// the turn, for messages. Errors: RLHF_E_INVALID, RLHF_E_CANCELLED, RLHF_E_NOMEM. [main]
rlhf_status rlhf__play_input_turn(struct rlhf__play_input *, int number, struct rlhf__buf *turn,
                                  struct rlhf__error *err);

#endif
