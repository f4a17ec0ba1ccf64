// calibration.h: whether a reward model's scores begin where its gain and bias were fitted to put
// them, at mean 0 and standard deviation 1.
#ifndef RLHF_HOST_CALIBRATION_H
#define RLHF_HOST_CALIBRATION_H

#include "learn/phase.h"
#include "report/report.h"

// Warn of bt_rm.so rewards whose scores in a run's first phase are far from that, because
// coefficients relative to them (algo.kl_coef) then mean something else. After the phase's metrics
// are set and before it is counted. [main]
void rlhf__calibration_note(const struct rlhf__phase *p);

#endif
