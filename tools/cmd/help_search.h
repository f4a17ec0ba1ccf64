// help_search.h: `rlhf-host help WORD`, where WORD is not a command: lists the settings, plugin
// options, metrics and help lines that contain the word.
#ifndef RLHF_TOOLS_CMD_HELP_SEARCH_H
#define RLHF_TOOLS_CMD_HELP_SEARCH_H

#include "base/env.h"
#include "option/nearest.h"

// Print everything that matches near->wanted. If near->wanted is a plugin's name, print what
// `plugin info` prints. Returns the exit status. If nothing matches, logs an error and returns 2.
// The error suggests the nearest setting or command; `near` already holds the commands. [main]
int rlhf__search(const struct rlhf__env *env, struct rlhf__nearest *near);

// The same, but only among settings, for `help settings WORD`. [main]
int rlhf__search_settings(const struct rlhf__env *env, const char *word);

// Returns 1 if the word is part of the name, ignoring case. [any]
int rlhf__search_name(const char *word, const char *name);

// Returns 1 if text contains the whole word. [any]
int rlhf__search_text(const char *word, const char *text);

#endif
