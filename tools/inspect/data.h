// data.h: subjects as JSON, for --json and for the page (docs/inspect.md lists the keys).
#ifndef RLHF_TOOLS_INSPECT_DATA_H
#define RLHF_TOOLS_INSPECT_DATA_H

#include "inspect/subject.h"

// Append {"version": 1, "subjects": [...]} as one line. [main]
rlhf_status rlhf__subjects_json(struct rlhf__buf *out, const struct rlhf__subject *s, size_t n,
                                struct rlhf__error *err);

// Append a token's text, made printable on one line. Errors make *out bad. [any]
void rlhf__subject_put_token(struct rlhf__buf *out, const struct rlhf__subject *s, int32_t id);

#endif
