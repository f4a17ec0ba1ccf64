// aliases.h: what becomes of the fields of TRL's configurations, and of words of TRL, transformers
// and PEFT. The rows are those of python/rlhf_host/trl.tsv, which Python reads too.
//
// These names are only for hints and for `rlhf-host help trl`. The program does not accept them as
// settings.
#ifndef RLHF_CORE_OPTION_ALIASES_H
#define RLHF_CORE_OPTION_ALIASES_H

#include "base/buf.h"

// Texts may be empty, but are never NULL.
struct rlhf__alias {
    const char *theirs; // "learning_rate"
    const char *of;     // "GRPO RLOO": fields of GRPOConfig and RLOOConfig; "all": of every
                        // configuration; "word": no field
    const char *preset; // TRL's default as JSON; "A or B": as declared, or as an object has it
    const char *is;     // "ours", "not needed", "not here"
    const char *ours;   // "optim.lr", "--out"
    const char *note;   // how the value maps, or why a setting is missing
};

// All aliases, in the order of docs/from-trl.md. [any]
const struct rlhf__alias *rlhf__aliases(size_t *n);

// Returns the first alias that the user typed as a flag or key, or NULL if the word is not an
// alias. A name that means different things in different configurations has several rows.
// "--learning-rate", "optim.learning_rate" and "learning_rate" mean the same alias. [any]
const struct rlhf__alias *rlhf__alias_find(const char *typed);

// Returns the length of the note's first sentence, which hints show. [any]
int rlhf__alias_brief(const struct rlhf__alias *);

// Append a hint about the typed word: " (here it is --set optim.lr=)", or the reason why rlhf-host
// lacks an equivalent. If `as_flag` is 1, the user typed the word as a flag, and the hint shows a
// setting with --set. Returns 1. If the word is not an alias, or is already our name of the
// setting, appends nothing and returns 0. [any]
int rlhf__alias_hint(const char *typed, int as_flag, struct rlhf__buf *out);

#endif
