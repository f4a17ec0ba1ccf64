// verdict_json.h: the verdict of a run as JSON, and the few metrics on the first screen of the
// report.
#ifndef RLHF_TOOLS_PAGE_VERDICT_JSON_H
#define RLHF_TOOLS_PAGE_VERDICT_JSON_H

#include "base/buf.h"
#include "verdict/verdict.h"

// Append the verdict: {"kind", "title", "text", "rule", "metric", "notes": [{"level", "text", "id",
// "rule", "change", "phase"}], "checks": [{"ok": true, false or null, "text"}]}. [any]
void rlhf__verdict_json(const struct rlhf__verdict *v, struct rlhf__buf *out);

// Append a list of up to five metrics that changed, with the headline metric first: [{"name",
// "words", "first", "last"}]. [any]
void rlhf__tiles_json(const struct rlhf__series_set *series, const struct rlhf__headline *h,
                      struct rlhf__buf *out);

#endif
