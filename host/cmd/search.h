// search.h: `rlhf-host help WORD`, where WORD is not a command: lists the settings, plugin options,
// metrics and help lines that contain the word.
#ifndef RLHF_HOST_CMD_SEARCH_H
#define RLHF_HOST_CMD_SEARCH_H

#include "base/dirs.h"
#include "base/env.h"
#include "base/nearest.h"
#include "option/options.h"

// Print the matches of near->wanted; for a plugin's name, the output of `plugin info`. Returns the
// exit status: without a match 2, with an error in the log, for which `near` already holds the
// commands. [main]
int rlhf__search(const struct rlhf__env *env, struct rlhf__nearest *near);

// The same, but only among settings, for `help settings WORD`. [main]
int rlhf__search_settings(const struct rlhf__env *env, const char *word);

// 1 if the word is part of a name, ignoring case. [any]
int rlhf__search_name(const char *word, const char *name);

// 1 if text contains it as a whole word. [any]
int rlhf__search_text(const char *word, const char *text);

// ---- algorithms' own defaults ----
//
// share/rlhf/configs/<algorithm>.json overrides the defaults of the option tables.

// One algorithm's file.
struct rlhf__algo_defaults {
    char algo[64]; // "grpo"
    json_t *json;  // owned
};

// All such files, sorted by name; free with rlhf__algo_defaults_finish. A file that cannot be read
// is skipped: a run that uses it reports the error. *n = their number. [main]
struct rlhf__algo_defaults *rlhf__algo_defaults_all(const struct rlhf__dirs *dirs, size_t *n);
void rlhf__algo_defaults_finish(struct rlhf__algo_defaults *all, size_t n);

// The value that the file sets for section.key; NULL if it sets none, or o's own default. [any]
const json_t *rlhf__algo_defaults_value(const struct rlhf__algo_defaults *t, const char *section,
                                        const rlhf_opt *o);

// Append the default of an option or of a file: 0.1, true, adamw, "text". [any]
void rlhf__put_default(struct rlhf__buf *out, const rlhf_opt *o);
void rlhf__put_value(struct rlhf__buf *out, const rlhf_opt *o, const json_t *v);

#endif
