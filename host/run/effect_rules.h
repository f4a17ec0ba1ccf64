// effect_rules.h: which settings a training run does not look at (config/effect.h).
#ifndef RLHF_HOST_EFFECT_RULES_H
#define RLHF_HOST_EFFECT_RULES_H

#include "run/run.h"

// Refuse what was typed and has no effect in a run of this plan. Needs t->plan and t->config.
// [main]
rlhf_status rlhf__effect_rules(const struct rlhf__run *t, struct rlhf__error *err);

#endif
