// phase_reader.h: reads what each phase of a run reported from the run's files (metrics.jsonl,
// samples.jsonl, spread.jsonl, events.jsonl), in the form that sinks get (rlhf/sink.h). A phase
// reads the same whether it has just ended or ended before a resume.
#ifndef RLHF_HOST_REPORT_PHASE_READER_H
#define RLHF_HOST_REPORT_PHASE_READER_H

#include "base/folder.h"

#include <rlhf/sink.h>

struct rlhf__phase_reader; // opaque

// Open the files of the run in `root`, which is borrowed until close. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__phase_reader_open(struct rlhf__folder *root, struct rlhf__phase_reader **out,
                                    struct rlhf__error *err);
void rlhf__phase_reader_close(struct rlhf__phase_reader *); // NULL allowed [main]

// Read the next phase, if it is not after phase `last`. Phases before `from` are skipped. Returns 1
// and sets *out, which is borrowed until the next call; returns 0 if that phase has not
// been written yet.
// Returns RLHF_E_NOMEM if memory runs out. [main]
int32_t rlhf__phase_reader_next(struct rlhf__phase_reader *, int64_t from, int64_t last,
                                const rlhf_sink_phase **out);

// Returns the sum of the "time/training" of all phases read so far. [main]
double rlhf__phase_reader_elapsed(const struct rlhf__phase_reader *);

#endif
