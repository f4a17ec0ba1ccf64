// prompt.h: the commands that people use at the prompt: generate, play and tokenize. Commands are
// described in cmd/commands.h.
#ifndef RLHF_TOOLS_PROMPT_PROMPT_H
#define RLHF_TOOLS_PROMPT_PROMPT_H

#include "base/env.h"

int rlhf__cmd_generate(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_play(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_tokenize(const struct rlhf__env *env, int argc, char **argv);

#endif
