// command_text.h: the program's own commands, as text that a user can paste into a shell. Every
// command that the program prints is written by these functions, so that words are quoted and none
// of them is taken for a flag.
#ifndef RLHF_RUNTIME_CONFIG_COMMAND_TEXT_H
#define RLHF_RUNTIME_CONFIG_COMMAND_TEXT_H

#include "base/buf.h"

#include <stdint.h>

// Append "rlhf-host" and, if `command` is not empty, a space and the command. [any]
void rlhf__command_begin(struct rlhf__buf *out, const char *command);

// Append " PATH". A path that begins with '-' becomes "./PATH". [any]
void rlhf__command_path(struct rlhf__buf *out, const char *path);

// Append " --flag VALUE", or " --flag=VALUE" if the value begins with '-'. [any]
void rlhf__command_flag(struct rlhf__buf *out, const char *flag, const char *value);

// Append " --flag N". [any]
void rlhf__command_number(struct rlhf__buf *out, const char *flag, int64_t n);

// Append " --set SETTING=VALUE". [any]
void rlhf__command_set(struct rlhf__buf *out, const char *setting, const char *value);

#endif
