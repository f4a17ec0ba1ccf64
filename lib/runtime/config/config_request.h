// config_request.h: what a command asks of a config: the files and flags that its layers come from.
#ifndef RLHF_HOST_CONFIG_CONFIG_REQUEST_H
#define RLHF_HOST_CONFIG_CONFIG_REQUEST_H

#include "base/dirs.h"

#include <jansson.h>

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

#endif
