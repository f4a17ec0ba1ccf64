// prompt.h: the commands generate, play and tokenize. cmd/commands.h describes what all commands
// have in common.
#ifndef RLHF_TOOLS_PROMPT_PROMPT_H
#define RLHF_TOOLS_PROMPT_PROMPT_H

#include "base/env.h"

int rlhf__cmd_generate(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_play(const struct rlhf__env *env, int argc, char **argv);
int rlhf__cmd_tokenize(const struct rlhf__env *env, int argc, char **argv);

#endif
