// loose_json.h: reads JSON that another program, another version or a stranger may have written,
// and repairs some mistakes in it.
#ifndef RLHF_FORMATS_HISTORY_LOOSE_JSON_H
#define RLHF_FORMATS_HISTORY_LOOSE_JSON_H

#include "base/buf.h"

#include <jansson.h>

// Decode n bytes. If they are not valid JSON, repair them and try once more. The repairs: invalid
// UTF-8, lone surrogates and NUL in keys become U+FFFD, and NaN and Infinity become null. Returns a
// new reference, or NULL if the repaired text is not valid JSON either. [any]
json_t *rlhf__loose_json(const char *bytes, size_t n);

#endif
