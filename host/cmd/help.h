// help.h: what --help and --version say.
#ifndef RLHF_HOST_HELP_H
#define RLHF_HOST_HELP_H

#include "base/dirs.h"

#include <stdio.h>

void rlhf__help(FILE *out);    // [main]
void rlhf__version(FILE *out); // [main]

// Every setting with its default, what the files of algorithms make of it and what it does, for
// `rlhf-host help settings`. [main]
void rlhf__help_settings(const struct rlhf__dirs *dirs, FILE *out);

#endif
