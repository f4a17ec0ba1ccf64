// config.h: builds one resolved struct rlhf__config from built-in defaults, files and flags.
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
#include "config/config_request.h"
#include "config/schema.h"

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

// Returns the chat template that a run's settings choose, and sets *names to the settings' names.
// [any]
struct rlhf__chat_choice rlhf__config_chat(const struct rlhf__prompts_config *,
                                           struct rlhf__chat_choice *names);

#endif
