// parts.h: times the parts of a phase separately, at the sizes that ranks will have.
#ifndef RLHF_TOOLS_SCALE_PARTS_H
#define RLHF_TOOLS_SCALE_PARTS_H

#include "run/run.h"
#include "scale/figures.h"

// Measure with the rows of the next phase, and with fewer rows. Sets these members of the machine:
// `rows`, `draw`, `learn`, `passes`, `step`, `pack`, `copy`, `products`, `tokens` and `length`. The
// run's weights keep their values; gradients and moments change. [step]
rlhf_status rlhf__scale_parts(struct rlhf__run *r, const struct rlhf__scale_plan *p,
                              struct rlhf__scale_machine *m, struct rlhf__error *err);

#endif
