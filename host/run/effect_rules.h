// effect_rules.h: the settings that have no effect in a training run (config/effect.h).
#ifndef RLHF_HOST_EFFECT_RULES_H
#define RLHF_HOST_EFFECT_RULES_H

#include "base/log.h"
#include "config/config.h"

#include <rlhf/algo.h>
#include <rlhf/draft/iteration.h>

// Refuse typed settings that have no effect in a run with this plan, and this extension, by the
// algorithm in the file `algo`. [main]
rlhf_status rlhf__effect_rules(const struct rlhf__config *c, const char *algo,
                               const rlhf_plan *plan, const rlhf_iteration *outer,
                               struct rlhf__log *log, struct rlhf__error *err);

#endif
