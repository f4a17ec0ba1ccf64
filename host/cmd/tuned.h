// tuned.h: the defaults that come with an algorithm, share/rlhf/configs/<algorithm>.json, beside
// those of the tables: what `plugin info` and `help settings` say of both.
#ifndef RLHF_HOST_TUNED_H
#define RLHF_HOST_TUNED_H

#include "base/dirs.h"
#include "option/options.h"

// One algorithm's file.
struct rlhf__tuned {
    char algo[64]; // "grpo"
    json_t *json;  // owned
};

// Every such file, by name; free with rlhf__tuned_finish. A file that cannot be read is left out: a
// run with it says what is wrong. *n = how many. [main]
struct rlhf__tuned *rlhf__tuned_all(const struct rlhf__dirs *dirs, size_t *n);
void rlhf__tuned_finish(struct rlhf__tuned *all, size_t n);

// The value that the file gives section.key, NULL when it gives none, or o's own default. [any]
const json_t *rlhf__tuned_value(const struct rlhf__tuned *t, const char *section,
                                const rlhf_opt *o);

// Append a default, of an option or of a file: 0.1, true, adamw, "text". [any]
void rlhf__put_default(struct rlhf__buf *out, const rlhf_opt *o);
void rlhf__put_value(struct rlhf__buf *out, const rlhf_opt *o, const json_t *v);

#endif
