// algo_defaults.h: the settings that an algorithm changes by default, in
// share/rlhf/configs/<algorithm>.json. They override the defaults of the option tables. `plugin
// info` and `help settings` show them.
#ifndef RLHF_HOST_CMD_ALGO_DEFAULTS_H
#define RLHF_HOST_CMD_ALGO_DEFAULTS_H

#include "base/dirs.h"
#include "option/options.h"

// One algorithm's file.
struct rlhf__algo_defaults {
    char algo[64]; // "grpo"
    json_t *json;  // owned
};

// Returns the settings files of all algorithms, sorted by name; *n is the number of files. Free
// with rlhf__algo_defaults_finish. Skips a file that cannot be read; a run that uses the file
// reports the error. [main]
struct rlhf__algo_defaults *rlhf__algo_defaults_all(const struct rlhf__dirs *dirs, size_t *n);
void rlhf__algo_defaults_finish(struct rlhf__algo_defaults *all, size_t n);

// Returns the value that the file sets for the option `o` of the section `section`. Returns NULL if
// the file does not set the option, or if the value equals the option's default. [any]
const json_t *rlhf__algo_defaults_value(const struct rlhf__algo_defaults *t, const char *section,
                                        const rlhf_opt *o);

// Returns the file of an algorithm, e.g. "grpo", or NULL. [any]
const struct rlhf__algo_defaults *
rlhf__algo_defaults_of(const char *algo, const struct rlhf__algo_defaults *all, size_t n);

// Append the option's default and the value in the algorithm's file, e.g. "default 0.04;
// configs/grpo.json: 0.2". `defaults` is NULL if the algorithm has no file. [any]
void rlhf__put_values(struct rlhf__buf *out, const struct rlhf__algo_defaults *defaults,
                      const rlhf_opt *o);

// Append the default value of an option, e.g. 0.1, true, adamw, "text". [any]
void rlhf__put_default(struct rlhf__buf *out, const rlhf_opt *o);
void rlhf__put_value(struct rlhf__buf *out, const rlhf_opt *o, const json_t *v);

#endif
