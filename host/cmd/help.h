// help.h: what --help and --version say.
#ifndef RLHF_HOST_CMD_HELP_H
#define RLHF_HOST_CMD_HELP_H

#include "base/dirs.h"

#include <stdio.h>

void rlhf__help(FILE *out); // [main]

// Prints the version, and what the CPU backend chooses among here. [main]
rlhf_status rlhf__version(const struct rlhf__dirs *dirs, struct rlhf__error *err);

// One JSON object of the program, the contract, the commit it was built from ("": not known), the
// compiler, the kind of build, and what the CPU backend computes with here. [main]
rlhf_status rlhf__version_json(const struct rlhf__dirs *dirs, const char *git, const char *build,
                               struct rlhf__error *err);

// Every setting with its default, what the files of algorithms make of it and what it does, for
// `rlhf-host help settings [WORD]`: those of a section, the one that is named, or those in which
// the word is found; NULL = all. Returns how many. [main]
size_t rlhf__help_settings(const struct rlhf__dirs *dirs, const char *word, FILE *out);

// Words of TRL and their settings here, for `rlhf-host help trl`. [main]
void rlhf__help_trl(FILE *out);

#endif
