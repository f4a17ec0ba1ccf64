// search.h: `rlhf-host help WORD`, where WORD is not a command: lists the settings, plugin options,
// metrics and help lines that contain the word.
#ifndef RLHF_HOST_CMD_SEARCH_H
#define RLHF_HOST_CMD_SEARCH_H

#include "base/env.h"
#include "base/nearest.h"

// Print what is known of near->wanted; of a plugin's name what `plugin info` says. Returns the exit
// status: 2, and an error in the log, when nothing is found; near has been offered the commands
// then. [main]
int rlhf__search(const struct rlhf__env *env, struct rlhf__nearest *near);

// The same among settings alone, for `help settings WORD`. [main]
int rlhf__search_settings(const struct rlhf__env *env, const char *word);

// 1 when the word is part of a name, upper and lower case alike. [any]
int rlhf__search_name(const char *word, const char *name);

// 1 when text contains it as a whole word. [any]
int rlhf__search_text(const char *word, const char *text);

#endif
