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

// Print one JSON object for bug reports: the versions of the program and the contract, the commit
// ("" = not known), the compiler, the build type, and the CPU backend's instruction set. [main]
rlhf_status rlhf__version_json(const struct rlhf__dirs *dirs, const char *git, const char *build,
                               struct rlhf__error *err);

// For `rlhf-host help settings [WORD]`: print settings, each with its default, the defaults that
// algorithms set for it, and its help text. `word` selects settings: it is a section, the name of a
// setting, or any text in a name or help text. NULL selects all settings. Returns the number of
// settings printed. [main]
size_t rlhf__help_settings(const struct rlhf__dirs *dirs, const char *word, FILE *out);

// ---- levels: the instruction sets of the CPU backend ----

// Returns the backend's instruction-set levels as a JSON list, lowest first. The list is empty if
// the backend has no levels. [any]
json_t *rlhf__levels_json(const struct rlhf__device_info *);

// Append a heading, then one line for each instruction-set level; a star marks the level in use.
// Appends nothing if the list is empty. [any]
void rlhf__levels_put(struct rlhf__buf *out, const json_t *levels);

#endif
