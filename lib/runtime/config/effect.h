// effect.h: reports settings that were given but do nothing in this run or command. Each plugin
// decides this for its own options (rlhf_plugin.why_unused).
//
// A setting that has its default value is never reported. A setting that does nothing causes an
// error if it is on the command line, but only a warning if it is in a --config file, because such
// a file may have settings for several algorithms.
#ifndef RLHF_HOST_CONFIG_EFFECT_H
#define RLHF_HOST_CONFIG_EFFECT_H

#include "base/log.h"
#include "config/config.h"

// A rule about a setting ("optim.muon_lr") or about all settings with a prefix ("sampling.",
// "optim.muon_"), perhaps with exceptions. `unused` says whether this run or command ignores them.
struct rlhf__effect_rule {
    const char *path;
    int32_t unused;
    const char *who;    // the reason's subject ("ppo.so"), NULL = none
    const char *why;    // the reason: "draws no responses", "optim.kind is adamw"
    const char *except; // exceptions, separated by one space; NULL = none
};

// Look for settings and plugin options (c->unused) that were given but do nothing. If the user
// typed any of them, returns RLHF_E_INVALID for the first one that was typed. Otherwise logs a
// warning about those in config files, unless `log` is NULL. [main]
rlhf_status rlhf__effect_check(const struct rlhf__config *c, const struct rlhf__effect_rule *rules,
                               size_t n, struct rlhf__log *log, struct rlhf__error *err);

// Call this if the opened models show that the setting `path` does nothing. Returns RLHF_E_INVALID
// if the user typed the setting, otherwise RLHF_OK. [main]
rlhf_status rlhf__effect_refuse_typed(const struct rlhf__config *c, const char *path,
                                      const char *why, struct rlhf__error *err);

#endif
