// options.h: option tables. This is the only code that validates options: it reads JSON values into
// a config struct, as described by a table of rlhf_opt. The host's own sections, plugins' options
// and the config.json of checkpoints all use it.
#ifndef RLHF_CORE_OPTION_OPTIONS_H
#define RLHF_CORE_OPTION_OPTIONS_H

#include "base/error.h"
#include "base/json.h"
#include "option/strings.h"

#include <rlhf/option.h>

#include <stddef.h>

// ---- the rows of a table ----

// A flag for RLHF_T_STR, only in the host's own tables: the value is a list of non-empty strings
// and token ids. In JSON it is an array of strings and integers, or a single string or integer. The
// struct holds the list as the text of a JSON array; the empty list is "[]". (A list of only
// strings is an RLHF_T_LIST.)
#define RLHF__OPT_ENDS 0x10000u

// A flag for RLHF_T_STR, only in the host's own tables: the value is a JSON object. The struct
// holds its text; the empty object is "{}".
#define RLHF__OPT_OBJECT 0x20000u

// A table of options. `n` is the number of options, including those of included tables.
struct rlhf__opt_table {
    const rlhf_opt *opts;
    uint32_t n, stride; // stride: bytes from row to row
};

// Make a table from a plugin's option table. `opts` is borrowed, and `rows` is the number of its
// rows. Returns RLHF_E_UNSUPPORTED if the table cannot be read (rlhf_opt_table_refused). [any]
rlhf_status rlhf__opt_table_init(struct rlhf__opt_table *t, const rlhf_opt *opts, uint32_t rows,
                                 uint32_t stride, struct rlhf__error *err);

// Copy option `i` to *out, where `i` is less than the number of options. If the rows of the table
// are shorter than rlhf_opt, the missing fields become 0. [any]
void rlhf__opt_at(const struct rlhf__opt_table *t, uint32_t i, rlhf_opt *out);

// Returns the index of the option called `key`, or -1. [any]
int32_t rlhf__opt_find(const struct rlhf__opt_table *t, const char *key);

// Return RLHF_E_UNSUPPORTED if the table is unsafe (rlhf_opts_refused): it has an offset that is
// misaligned or outside of config_size, an unknown type, a missing or duplicate key, an enum
// without choices, or a default outside of its range. [any]
rlhf_status rlhf__opts_check(const struct rlhf__opt_table *t, uint32_t config_size,
                             struct rlhf__error *err);

// ---- values ----

// Set every field to its default; a field with RLHF_OPT_REQUIRED becomes zero. [any]
rlhf_status rlhf__opts_defaults(const struct rlhf__opt_table *t, void *config,
                                struct rlhf__strings *strings, struct rlhf__error *err);

// Where a value came from, for messages.
struct rlhf__origin {
    const char *source;  // "my.json", "--set", "config.json"
    const char *section; // "optim", "algo", "reward.0"; "" = none
    const char *text;    // the source's text, for finding line numbers in it, or NULL
    size_t text_len;
    // If `lenient` is 1, null means the default (0 with RLHF_OPT_NULL_IS_0), and keys that the
    // table does not know are skipped. Exception: if the value of such a key is an object, each of
    // its members sets the option "key.member"; if it is a list, each of its items sets the option
    // "key[]".
    int32_t lenient;
};

// Set one option from `v`. `raw` is the text as typed on the command line, or NULL. If `v` is a
// number or a boolean, but the option is a string or a list, sets it from `raw`. If the type or
// range is wrong, the error is one sentence with the value and the allowed values. [any]
rlhf_status rlhf__opts_set(const struct rlhf__opt_table *t, const char *key, const json_t *v,
                           const char *raw, const struct rlhf__origin *from, void *config,
                           struct rlhf__strings *strings, struct rlhf__error *err);

// Fails with a sentence about a key that the table does not know. The sentence suggests the nearest
// key of the table or of `skip` (NULL-terminated, may be NULL). Returns RLHF_E_INVALID. [any]
rlhf_status rlhf__opts_unknown(const struct rlhf__opt_table *t, const char *key,
                               const char *const *skip, const struct rlhf__origin *from,
                               struct rlhf__error *err);

// Set the options that the members of `object` name. Members whose keys are in `skip`
// (NULL-terminated, may be NULL) are left to the caller. [any]
rlhf_status rlhf__opts_apply(const struct rlhf__opt_table *t, const json_t *object,
                             const char *const *skip, const struct rlhf__origin *from, void *config,
                             struct rlhf__strings *strings, struct rlhf__error *err);

// Make a new config struct from an object: calloc(config_size), defaults, then the members of the
// object. Every RLHF_OPT_REQUIRED key must be present. Free the struct with free(). For the
// config.json of models, use a lenient origin. [any]
rlhf_status rlhf__opts_new(const struct rlhf__opt_table *t, uint32_t config_size,
                           const json_t *object, const struct rlhf__origin *from,
                           struct rlhf__strings *strings, void **out, struct rlhf__error *err);

// Check that every RLHF_OPT_REQUIRED key is a member of `object`. NULL means the empty object.
// [any]
rlhf_status rlhf__opts_required(const struct rlhf__opt_table *t, const json_t *object,
                                const struct rlhf__origin *from, struct rlhf__error *err);

// Add every field of `config` to `object`, in table order. NULL strings become null. [any]
rlhf_status rlhf__opts_to_json(const struct rlhf__opt_table *t, const void *config, json_t *object,
                               struct rlhf__error *err);

// Returns the option's value in `config` as JSON: a new reference, or NULL if memory runs out.
// [any]
json_t *rlhf__opt_json(const rlhf_opt *o, const void *config);

// Append the allowed values in words: "a number from 0 to 1", "one of adamw, muon", ... [any]
void rlhf__opt_allowed(const rlhf_opt *o, struct rlhf__buf *out);

// Returns 1 if the option has its default value in `config`. [any]
int rlhf__opt_is_default(const rlhf_opt *o, const void *config);

// Returns the default of an option as JSON: a new reference, or NULL if memory runs out. [any]
json_t *rlhf__opt_default(const rlhf_opt *o);

// rlhf__opt_schema returns the JSON Schema (draft 2020-12) of one option, and rlhf__opts_schema
// that of a whole table, as a "properties" object. Both return a new reference, or NULL if memory
// runs out. [any]
json_t *rlhf__opt_schema(const rlhf_opt *o);
json_t *rlhf__opts_schema(const struct rlhf__opt_table *t);

enum rlhf__entry {
    RLHF__ENTRY_ALGO = 0,
    RLHF__ENTRY_REWARD = 1,
    RLHF__ENTRY_JUDGE = 2,
    RLHF__ENTRY_SINK = 3,
    RLHF__ENTRY_ENVIRONMENT = 4
};

// Returns the members of a plugin entry (enum rlhf__entry) that the host itself reads,
// NULL-terminated (rlhf_host_keys). A judge has those of a sink. [any]
const char *const *rlhf__host_keys(int entry);

// Returns 1 if the name begins with "host_" or "host/". Such names are for later hosts, so a plugin
// may not give them to an option, a metric or a model (rlhf/base.h). [any]
int rlhf__is_hosts(const char *name);

#endif
