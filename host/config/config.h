// config.h: builds one resolved struct rlhf__config from built-in defaults, files and flags, and
// writes it back as JSON.
//
// Layers, each overriding the one before: built-in defaults; share/rlhf/configs/<algo>.json; the
// preset; settings of a run; the --config file; flags (--algo, --reward, --policy, ...); --set. If
// a file names another algorithm than the chosen one, its algorithm options are ignored. A "reward"
// or "sink" list replaces the whole list.
#ifndef RLHF_HOST_CONFIG_H
#define RLHF_HOST_CONFIG_H

#include "base/dirs.h"
#include "config/schema.h"

// All borrowed.
struct rlhf__config_request {
    const struct rlhf__dirs *dirs;
    const char *config_file;   // --config, NULL = none
    json_t *settings;          // sections under --config and flags, over a preset; NULL = none
    const char *settings_from; // their file, for messages
    const char *preset;        // --preset, NULL = none
    const char *algo;          // "X.so[:k=v,...]", NULL = none
    const char *default_algo;  // algorithm to use if none is named; NULL = none
    const char *judge;         // "X.so[:k=v,...]", NULL = none
    const char *const *reward; // [n_reward] "X.so[:weight=..,k=v]"
    size_t n_reward;
    const char *const *sink; // [n_sink] "X.so[:k=v,...]"; the one word "none": no sinks
    size_t n_sink;
    const char *reward_flag;     // the flag they came from, for messages; NULL = "--reward"
    const char *const *set;      // [n_set] "path.to.key=value", in order
    const char *const *set_flag; // [n_set] the flag each came from, for messages; NULL = "--set"
    size_t n_set;
    const char *resume; // run directory: its config.json is the base layer; or NULL
    int32_t trust_run;  // 1: code that the resumed config names may be anywhere
    int32_t reserved;
};

struct rlhf__plugins;
struct rlhf__plugin;

// *out gets the layered values; plugin options are not validated yet. Free with
// rlhf__config_finish even after a failure. [main]
rlhf_status rlhf__config_load(const struct rlhf__config_request *req, struct rlhf__config *out,
                              struct rlhf__error *err);
void rlhf__config_finish(struct rlhf__config *c);

// After rlhf__config_load refused an assignment without a section ("kl_coef=1"): add which settings
// it may mean, including options of the algorithm (its plugin is opened for that). [main]
void rlhf__config_hint(const struct rlhf__config_request *req, const struct rlhf__config *c,
                       struct rlhf__error *err);

// Load the plugins that c names and validate and complete their options. *algo, *rewards
// [c->n_reward] and *judge (NULL without one) point into `plugins`; free(*rewards). An algorithm
// must be named. [main]
rlhf_status rlhf__config_resolve(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                 const struct rlhf__plugin **algo,
                                 const struct rlhf__plugin ***rewards,
                                 const struct rlhf__plugin **judge, struct rlhf__error *err);

// The same for the sinks: *out [c->n_sink]; free(*out). Only runs have them. [main]
rlhf_status rlhf__config_resolve_sinks(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                       const struct rlhf__plugin ***out, struct rlhf__error *err);

// The whole config as JSON (new reference), as --print-config prints it and config.json stores it.
// Reading it with --config gives the same config. [any]
rlhf_status rlhf__config_to_json(const struct rlhf__config *c, json_t **out,
                                 struct rlhf__error *err);

// Call visit for each setting that may differ between two such configs, with its path and both
// values. visit gets a pair of values that are not both objects or both lists of the same length;
// NULL = the config lacks it. Stops at the first error of visit, and returns it. [any]
rlhf_status rlhf__config_leaves(const char *path, json_t *was, json_t *is,
                                rlhf_status (*visit)(void *arg, const char *path, const json_t *was,
                                                     const json_t *is, struct rlhf__error *err),
                                void *arg, struct rlhf__error *err);

// Append this JSON as text with a final newline. [any]
rlhf_status rlhf__config_print(const struct rlhf__config *c, struct rlhf__buf *out,
                               struct rlhf__error *err);

#endif
