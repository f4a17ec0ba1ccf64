// algo_defaults.h: the defaults that an algorithm sets for all settings, in
// share/rlhf/configs/<algorithm>.json. They override those of the option tables. For `plugin info`
// and `help settings`.
#ifndef RLHF_HOST_ALGO_DEFAULTS_H
#define RLHF_HOST_ALGO_DEFAULTS_H

#include "base/dirs.h"
#include "option/options.h"

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

// The file of the algorithm "grpo" among all, or NULL. [any]
const struct rlhf__algo_defaults *
rlhf__algo_defaults_of(const char *algo, const struct rlhf__algo_defaults *all, size_t n);

// Append the plugin's default, then the value in the algorithm's file (NULL: no file): "default
// 0.04; configs/grpo.json: 0.2". [any]
void rlhf__put_values(struct rlhf__buf *out, const struct rlhf__algo_defaults *defaults,
                      const rlhf_opt *o);

// Append the default of an option or of a file: 0.1, true, adamw, "text". [any]
void rlhf__put_default(struct rlhf__buf *out, const rlhf_opt *o);
void rlhf__put_value(struct rlhf__buf *out, const rlhf_opt *o, const json_t *v);

#endif
