// curves_json.h: curves as JSON.
#ifndef RLHF_TOOLS_PAGE_CURVES_JSON_H
#define RLHF_TOOLS_PAGE_CURVES_JSON_H

#include "history/curves.h"

// Append {"of": {metric: {"x": index, "v": [means], "lo": [..], "hi": [..]}}, "x": [[phases],
// ...]}. Curves that have the same phases share one list. `lo` and `hi` are missing if each point
// is a single phase. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__curves_json(const struct rlhf__curves *c, struct rlhf__buf *out,
                              struct rlhf__error *err);

#endif
