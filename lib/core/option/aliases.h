// aliases.h: the names that TRL, Hugging Face's Trainer and PEFT use for settings that have other
// names here.
//
// These names are only for hints and for docs/from-trl.md. The program does not accept them as
// settings.
#ifndef RLHF_CORE_OPTION_ALIASES_H
#define RLHF_CORE_OPTION_ALIASES_H

#include "base/buf.h"

struct rlhf__alias {
    const char *theirs; // "learning_rate"
    const char *ours;   // "optim.lr", "--out"; NULL: none
    const char *note;   // what differs; NULL = nothing
};

// All aliases, in the order of docs/from-trl.md. [any]
const struct rlhf__alias *rlhf__aliases(size_t *n);

// Returns the alias that the user typed as a flag or key, or NULL if the word is not an alias.
// "--learning-rate", "optim.learning_rate" and "learning_rate" mean the same alias. [any]
const struct rlhf__alias *rlhf__alias_find(const char *typed);

// Append a hint about the typed word: " (here it is --set optim.lr=)", or the reason why rlhf-host
// has no equivalent. If `as_flag` is 1, the user typed the word as a flag, and the hint shows a
// setting with --set. Returns 1. If the word is not an alias, or is already our name of the
// setting, appends nothing and returns 0. [any]
int rlhf__alias_hint(const char *typed, int as_flag, struct rlhf__buf *out);

#endif
