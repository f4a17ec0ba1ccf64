// loose_json.h: reads the JSON of a file that another program, another version or a stranger may
// have written: what can be repaired is repaired.
#ifndef RLHF_FORMATS_HISTORY_LOOSE_JSON_H
#define RLHF_FORMATS_HISTORY_LOOSE_JSON_H

#include "base/buf.h"

#include <jansson.h>

// Decode n bytes. If they are not valid JSON, try once more with invalid UTF-8 and lone surrogates
// as U+FFFD, NUL in keys likewise, and NaN and Infinity as null. New reference; NULL if it still is
// not JSON. [any]
json_t *rlhf__loose_json(const char *bytes, size_t n);

#endif
