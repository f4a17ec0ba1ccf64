// python_calls.h: the list of calls that LFM2 writes in the syntax of Python: [f(x=1), g(s='a')].
#ifndef RLHF_FORMATS_CHAT_PYTHON_CALLS_H
#define RLHF_FORMATS_CHAT_PYTHON_CALLS_H

#include "base/buf.h"

#include <stddef.h>

// Append the list at the beginning of s[0..n) to *out as JSON: a list of {"name", "arguments"}.
// Arguments must have names. A value is a text in either quotes with Python's escapes, a number, a
// list, a tuple (which becomes a list), a dictionary with texts as keys, True, False, None, or one
// of the last three as JSON writes it. Texts may have ends of lines, because some templates do not
// escape them. Numbers are copied as they are; decoding the JSON text checks them. An element that
// begins with '{' is copied as a dictionary, since the model may also write calls as JSON.
//
// Returns the length of the list in bytes, or 0 if it is not such a list, its end is missing, or
// its values are nested more than 64 deep. Then *out has a part of the list. [any]
size_t rlhf__python_calls_json(const char *s, size_t n, struct rlhf__buf *out);

#endif
