// json_out.h: appends members of a JSON object to a buffer.
#ifndef RLHF_TOOLS_PAGE_JSON_OUT_H
#define RLHF_TOOLS_PAGE_JSON_OUT_H

#include "base/buf.h"

#include <jansson.h>

// Append a number with `digits` significant digits. Whole numbers keep all their digits. Appends
// null for a number that is not finite. [any]
void rlhf__json_put_number(struct rlhf__buf *out, double v, int digits);

// Append a comma and the key of a member. Do not use this for the first member of an object. [any]
void rlhf__json_put_key(struct rlhf__buf *out, const char *key);

// Append a comma and a member, whose value is a text or any JSON value (NULL becomes null). [any]
void rlhf__json_put_text(struct rlhf__buf *out, const char *key, const char *text);
void rlhf__json_put(struct rlhf__buf *out, const char *key, const json_t *v);

#endif
