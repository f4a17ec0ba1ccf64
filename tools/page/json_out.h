// json_out.h: appends members of a JSON object to a buffer.
#ifndef RLHF_TOOLS_JSON_OUT_H
#define RLHF_TOOLS_JSON_OUT_H

#include "base/buf.h"

#include <jansson.h>

// A number with so many significant digits; whole numbers as they are; null if it is not finite.
// [any]
void rlhf__json_put_number(struct rlhf__buf *out, double v, int digits);

// A comma and the key of the next member, which is not the first. [any]
void rlhf__json_put_key(struct rlhf__buf *out, const char *key);

// Such a member whose value is a text; or any value, where NULL is null. [any]
void rlhf__json_put_text(struct rlhf__buf *out, const char *key, const char *text);
void rlhf__json_put(struct rlhf__buf *out, const char *key, const json_t *v);

#endif
