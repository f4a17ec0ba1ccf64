// aliases.h: words of TRL, Hugging Face's Trainer and PEFT for settings that have another name
// here.
//
// They are for hints and for docs/from-trl.md: no setting is known by them.
#ifndef RLHF_HOST_ALIASES_H
#define RLHF_HOST_ALIASES_H

#include "base/buf.h"

struct rlhf__alias {
    const char *theirs; // "learning_rate"
    const char *ours;   // "optim.lr", "--out"; NULL: there is none
    const char *note;   // what differs; NULL = nothing
};

// All of them, in the order of the page. [any]
const struct rlhf__alias *rlhf__aliases(size_t *n);

// The one that a flag or key is: "--learning-rate", "optim.learning_rate" and "learning_rate" are
// the same. NULL: it is none. [any]
const struct rlhf__alias *rlhf__alias_find(const char *typed);

// What a message about the typed word adds: " (here it is --set optim.lr=)", or why there is none.
// as_flag: it was typed as a flag, so a setting is shown with --set. Returns 0, and nothing is
// written, when the word is no alias, or the very setting that it is one of. [any]
int rlhf__alias_hint(const char *typed, int as_flag, struct rlhf__buf *out);

#endif
