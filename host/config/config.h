// config.h: from built-in defaults, files and flags to one resolved struct rlhf__config, and back.
//
// Layers, each over the one before: built-in defaults; share/rlhf/configs/<algo>.json; the preset;
// the --config file; flags (--algo, --reward, --policy, ...); --set. Algorithm options in a file
// that names another algorithm than the one chosen are left out; a "reward" list replaces the whole
// list.
#ifndef RLHF_HOST_CONFIG_H
#define RLHF_HOST_CONFIG_H

#include "base/dirs.h"
#include "config/schema.h"

struct rlhf__plugins;
struct rlhf__plugin;

// What the command line asked for. All borrowed.
struct rlhf__config_request {
    const struct rlhf__dirs *dirs;
    const char *config_file;   // --config, NULL = none
    const char *preset;        // --preset, NULL = none
    const char *algo;          // "X.so[:k=v,...]", NULL = none
    const char *default_algo;  // name of the one to take when none is named; NULL = none
    const char *judge;         // "X.so[:k=v,...]", NULL = none
    const char *const *reward; // [n_reward] "X.so[:weight=..,k=v]"
    size_t n_reward;
    const char *reward_flag;     // the flag they came from, for messages; NULL = "--reward"
    const char *const *set;      // [n_set] "path.to.key=value", in order
    const char *const *set_flag; // [n_set] the flag each came from, for messages; NULL = "--set"
    size_t n_set;
    const char *resume; // run directory: its config.json is the base, nothing below it; or NULL
    int32_t trust_run;  // 1: code that the resumed config names may lie anywhere
    int32_t reserved;
};

// *out gets the layered values; plugin options are not validated yet. Free with
// rlhf__config_free even after a failure. [main]
rlhf_status rlhf__config_load(const struct rlhf__config_request *req, struct rlhf__config *out,
                              struct rlhf__error *err);
void rlhf__config_free(struct rlhf__config *c);

// After rlhf__config_load refused an assignment without a section ("kl_coef=1"): say which setting
// it may mean, options of the algorithm included (its plugin is opened for that). [main]
void rlhf__config_hint(const struct rlhf__config_request *req, const struct rlhf__config *c,
                       struct rlhf__error *err);

// Load the plugins that c names and validate and complete their options. *algo, *rewards
// [c->n_reward] and *judge (NULL without one) point into `plugins`; free(*rewards). An algorithm
// must be named. [main]
rlhf_status rlhf__config_resolve(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                 const struct rlhf__plugin **algo,
                                 const struct rlhf__plugin ***rewards,
                                 const struct rlhf__plugin **judge, struct rlhf__error *err);

// The whole config as JSON (new reference): what --print-config prints and config.json holds.
// Reading it back with --config gives the same config. [any]
rlhf_status rlhf__config_to_json(const struct rlhf__config *c, json_t **out,
                                 struct rlhf__error *err);

// Append that JSON as text with a final newline. [any]
rlhf_status rlhf__config_print(const struct rlhf__config *c, struct rlhf__buf *out,
                               struct rlhf__error *err);

#endif
