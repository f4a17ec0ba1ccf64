// config.h: builds one resolved struct rlhf__config from built-in defaults, files and flags, and
// writes it back as JSON.
//
// Each of these layers overrides those before it: built-in defaults;
// share/rlhf/configs/<algo>.json; the preset; the stored settings of a resumed run; the --config
// file; flags (--algo, --reward, --policy, ...); --set. A "reward" or "sink" list replaces the
// whole list of the layers before it. The algorithm options in a file are ignored if the file names
// an algorithm other than the chosen one.
#ifndef RLHF_HOST_CONFIG_CONFIG_H
#define RLHF_HOST_CONFIG_CONFIG_H

#include "base/dirs.h"
#include "chat/chat.h"
#include "config/schema.h"

// All members are borrowed.
struct rlhf__config_request {
    const struct rlhf__dirs *dirs;
    const char *config_file;   // --config, NULL = none
    json_t *settings;          // sections applied between the preset and --config; NULL = none
    const char *settings_from; // the file of `settings`, for messages
    const char *preset;        // --preset, NULL = none
    const char *algo;          // "X.so[:k=v,...]", NULL = none
    const char *default_algo;  // algorithm to use if none is named; NULL = none
    const char *judge;         // "X.so[:k=v,...]", NULL = none
    const char *environment;   // "X.so[:weight=..,k=v]", NULL = none
    const char *const *reward; // [n_reward] "X.so[:weight=..,k=v]"
    size_t n_reward;
    const char *const *sink; // [n_sink] "X.so[:k=v,...]"; a single "none": no sinks
    size_t n_sink;
    const char *reward_flag; // flag that `reward` came from, for messages; NULL = "--reward"
    const char *const *set;  // [n_set] "path.to.key=value", in order
    // [n_set] the flag that gave each item of `set`, for messages; NULL = "--set".
    const char *const *set_flag;
    size_t n_set;
    const char *resume; // run directory whose config.json is the base layer; NULL = a new run
    int32_t trust_run;  // 1: the resumed config may name code in any directory
    int32_t algo_alone; // 1: drop the rewards, judge and sinks of the resumed config
    int32_t recompute;  // 1: phases of the run are only recomputed, so settings must not change
};

struct rlhf__plugins;
struct rlhf__plugin;

// Fill *out from the layers. Plugin options are not validated yet. Free with rlhf__config_finish,
// even after a failure. [main]
rlhf_status rlhf__config_load(const struct rlhf__config_request *req, struct rlhf__config *out,
                              struct rlhf__error *err);
void rlhf__config_finish(struct rlhf__config *c);

// Call this after rlhf__config_load has rejected an assignment without a section ("kl_coef=1").
// Adds to the error message the settings that the user may have meant. Among these may be an option
// of the algorithm, so this function opens the algorithm's plugin. [main]
void rlhf__config_hint(const struct rlhf__config_request *req, const struct rlhf__config *c,
                       struct rlhf__error *err);

// Load the plugins that `c` names, and validate and complete their options. `c` must name an
// algorithm. *algo, *rewards [c->n_reward] and *judge (NULL if there is no judge) point into
// `plugins`. The caller frees the array *rewards. [main]
rlhf_status rlhf__config_resolve(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                 const struct rlhf__plugin **algo,
                                 const struct rlhf__plugin ***rewards,
                                 const struct rlhf__plugin **judge, struct rlhf__error *err);

// Do what rlhf__config_resolve does, for the sinks, which only runs have. *out is an array that
// ends with NULL, which the caller frees: the sinks of c->sink, then the program's own sinks that
// log.tensorboard and log.csv ask for. [main]
enum { RLHF__OWN_SINKS = 2 };
rlhf_status rlhf__config_resolve_sinks(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                       const struct rlhf__plugin ***out, struct rlhf__error *err);

// Do what rlhf__config_resolve does, for the environment, which only runs have. *out is NULL if `c`
// has no environment.
rlhf_status rlhf__config_resolve_environment(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                             const struct rlhf__plugin **out,
                                             struct rlhf__error *err);

// Set *out to the whole config as JSON (new reference), in the form that --print-config prints and
// config.json stores. Reading it with --config gives the same config. [any]
rlhf_status rlhf__config_to_json(const struct rlhf__config *c, json_t **out,
                                 struct rlhf__error *err);

// Compare two configs in the form of rlhf__config_to_json. For each path, call `visit` with the
// values in both configs. Objects, and lists of the same length, are compared member by member. If
// only one config has a member, the value in the other one is NULL. Equal values are visited too.
// Stops at the first error of `visit` and returns that error. [any]
rlhf_status rlhf__config_leaves(const char *path, json_t *was, json_t *is,
                                rlhf_status (*visit)(void *arg, const char *path, const json_t *was,
                                                     const json_t *is, struct rlhf__error *err),
                                void *arg, struct rlhf__error *err);

// Append the config's JSON as text, with a final newline. [any]
rlhf_status rlhf__config_print(const struct rlhf__config *c, struct rlhf__buf *out,
                               struct rlhf__error *err);

// Returns the chat template that a run's settings choose, and sets *names to the settings' names.
// [any]
struct rlhf__chat_choice rlhf__config_chat(const struct rlhf__prompts_config *,
                                           struct rlhf__chat_choice *names);

#endif
