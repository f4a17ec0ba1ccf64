// aliases.h: the names by which TRL, Hugging Face's Trainer and PEFT call settings that have
// another name here.
//
// They serve hints and docs/from-trl.md only; settings are not accepted under these names.
#ifndef RLHF_HOST_ALIASES_H
#define RLHF_HOST_ALIASES_H

#include "base/buf.h"

struct rlhf__alias {
    const char *theirs; // "learning_rate"
    const char *ours;   // "optim.lr", "--out"; NULL: none
    const char *note;   // what differs; NULL = nothing
};

// All aliases, in the order of docs/from-trl.md. [any]
const struct rlhf__alias *rlhf__aliases(size_t *n);

// Find a flag or key: "--learning-rate", "optim.learning_rate" and "learning_rate" are the same.
// NULL if it is not an alias. [any]
const struct rlhf__alias *rlhf__alias_find(const char *typed);

// Append what a message says about the typed word: " (here it is --set optim.lr=)", or why
// rlhf-host has no equivalent. as_flag 1: the word was typed as a flag, so a setting is shown with
// --set. Returns 0 and appends nothing if the word is not an alias, or is our own name of the
// setting. [any]
int rlhf__alias_hint(const char *typed, int as_flag, struct rlhf__buf *out);

#endif
