// help.h: the texts of --help and --version.
#ifndef RLHF_HOST_CMD_HELP_H
#define RLHF_HOST_CMD_HELP_H

#include "base/buf.h"
#include "base/dirs.h"
#include "model/device_info.h"

#include <jansson.h>
#include <stdio.h>

void rlhf__help(FILE *out); // [main]

// Print the version, and the instruction sets that the CPU backend can use on this machine. [main]
rlhf_status rlhf__version(const struct rlhf__dirs *dirs, struct rlhf__error *err);

// Print one JSON object with the program's and the contract's version, the commit ("": not known),
// the compiler, the build type, and the instruction set that the CPU backend uses here. [main]
rlhf_status rlhf__version_json(const struct rlhf__dirs *dirs, const char *git, const char *build,
                               struct rlhf__error *err);

// For `rlhf-host help settings [WORD]`: print settings with their defaults, the algorithms' own
// defaults and the help text. `word` is a section, the name of a setting, or any text that occurs
// in them; NULL = all settings. Returns the number printed. [main]
size_t rlhf__help_settings(const struct rlhf__dirs *dirs, const char *word, FILE *out);

// For `rlhf-host help trl`: TRL's settings and the corresponding ones here. [main]
void rlhf__help_trl(FILE *out);

// ---- levels ----

// The levels as a JSON list, lowest first; empty for a backend without levels. [any]
json_t *rlhf__levels_json(const struct rlhf__device_info *);

// Append the same list as lines: a heading, then the levels; a star marks the one in use. Appends
// nothing for an empty list. [any]
void rlhf__levels_put(struct rlhf__buf *out, const json_t *levels);

#endif
