// export_evaluations.h: the results that `eval --save` stored in a run, for the model card.
#ifndef RLHF_TOOLS_EXPORT_EXPORT_EVALUATIONS_H
#define RLHF_TOOLS_EXPORT_EXPORT_EVALUATIONS_H

#include "base/buf.h"
#include "export/export_source.h"

// Append a section with a table for each file of prompts, from the lines of evaluations.jsonl that
// belong to the exported checkpoint. If a file of prompts has several results, uses the last one.
// Appends nothing if there are no results. [main]
void rlhf__export_evaluations(struct rlhf__buf *out, const struct rlhf__export_source *);

#endif
