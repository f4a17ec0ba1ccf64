// measure.h: measures a planned run on this machine: first some phases, and then the parts of a
// phase with several numbers of rows.
#ifndef RLHF_TOOLS_SCALE_MEASURE_H
#define RLHF_TOOLS_SCALE_MEASURE_H

#include "run/run.h"
#include "scale/figures.h"

// Set up the run that *req describes, measure it, and set f->plan and f->machine. Halves batch.size
// while it is even and more than `most` rows; figures for larger batches follow from the measured
// sizes. Calls the rewards, writes files only to a temporary directory, and changes req->config.
// [main]
rlhf_status rlhf__scale_measure(const struct rlhf__run_request *req, int64_t most,
                                struct rlhf__scale_figures *f, struct rlhf__error *err);

#endif
