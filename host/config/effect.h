// effect.h: nothing is silently without effect: which of the settings somebody gave a run, or a
// command, does not look at.
//
// Of a plugin's options the plugin says it itself (rlhf_plugin.idle).
//
// A setting that has its built-in value changes nothing and is never complained of. What was typed
// is refused; what comes from a --config file is named in one warning, since a file may hold what
// several algorithms need.
#ifndef RLHF_HOST_EFFECT_H
#define RLHF_HOST_EFFECT_H

#include "base/log.h"
#include "config/config.h"

// A setting ("optim.muon_lr"), or all that begin so ("sampling.", "optim.muon_") but one, and
// whether it is idle: nobody looks at it.
struct rlhf__effect_rule {
    const char *path;
    int32_t idle, reserved;
    const char *who;    // the reason's subject ("ppo.so"), NULL = none
    const char *why;    // the reason: "draws no responses", "optim.kind is adamw"
    const char *except; // settings that the rule is not about, a space between two; NULL = none
};

// Refuse the first idle setting, or option of a plugin (c->idle), that was typed (RLHF_E_INVALID),
// then warn of those in files; log NULL = no warning. [main]
rlhf_status rlhf__effect_check(const struct rlhf__config *c, const struct rlhf__effect_rule *rules,
                               size_t n, struct rlhf__log *log, struct rlhf__error *err);

// Refuse `path` where it was typed, for a reason that is known later than those of the rules: the
// models are open. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__effect_refuse_typed(const struct rlhf__config *c, const char *path,
                                      const char *why, struct rlhf__error *err);

#endif
