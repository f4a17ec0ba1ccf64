// request.h: what the command line asks for.
#ifndef RLHF_HOST_CONFIG_REQUEST_H
#define RLHF_HOST_CONFIG_REQUEST_H

#include "base/dirs.h"

// All borrowed.
struct rlhf__config_request {
    const struct rlhf__dirs *dirs;
    const char *config_file;   // --config, NULL = none
    const char *preset;        // --preset, NULL = none
    const char *algo;          // "X.so[:k=v,...]", NULL = none
    const char *default_algo;  // algorithm to use if none is named; NULL = none
    const char *judge;         // "X.so[:k=v,...]", NULL = none
    const char *const *reward; // [n_reward] "X.so[:weight=..,k=v]"
    size_t n_reward;
    const char *reward_flag;     // the flag they came from, for messages; NULL = "--reward"
    const char *const *set;      // [n_set] "path.to.key=value", in order
    const char *const *set_flag; // [n_set] the flag each came from, for messages; NULL = "--set"
    size_t n_set;
    const char *resume; // run directory: its config.json is the base layer; or NULL
    int32_t trust_run;  // 1: code that the resumed config names may be anywhere
    int32_t reserved;
};

#endif
