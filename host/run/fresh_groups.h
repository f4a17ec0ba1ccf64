// fresh_groups.h: groups without spread are replaced by responses to further prompts (Yu et al.
// 2025, dynamic sampling), in rounds, as many as the plan allows.
#ifndef RLHF_HOST_FRESH_GROUPS_H
#define RLHF_HOST_FRESH_GROUPS_H

#include "feed/feed.h"
#include "learn/phase.h"
#include "report/report.h"

// p->x is the first round, drawn and paid. As long as some of its groups have no spread and the
// plan's fresh_rounds allow: draw as many further groups as are missing, pay them, and let those
// with spread take the place of groups without, behind the others. What is left without spread when
// the rounds are over stays, so that the batch is as large as ever. Sets sampling/fresh_rounds,
// prompts, flat_ratio and flat_left; other metrics stay what the first round gave. Adds to the
// times of rollout and reward. [step]
rlhf_status rlhf__fresh_groups(struct rlhf__phase *p, struct rlhf__error *err);

#endif
