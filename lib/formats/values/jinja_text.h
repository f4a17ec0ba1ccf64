// jinja_text.h: the methods of strings in a chat template; filters use them too.
//
// It does not handle values of other types.
#ifndef RLHF_FORMATS_VALUES_JINJA_TEXT_H
#define RLHF_FORMATS_VALUES_JINJA_TEXT_H

#include "values/jinja_args.h"

// Returns 1 if strings have a method of this name. [any]
int rlhf__jinja_is_string_method(rlhf_str name);

// Call a method of the string s. The methods format and format_map are in jinja_format.h. [any]
rlhf__value rlhf__jinja_string_method(struct rlhf__jinja_work *, rlhf_str method, rlhf__value s,
                                      const struct rlhf__jinja_args *args);

// Call a method without arguments. [any]
rlhf__value rlhf__jinja_simple_method(struct rlhf__jinja_work *, const char *method, rlhf__value s);

// The lines of a string, as a list. If `ends` is 1, each line keeps its end. [any]
rlhf__value rlhf__jinja_lines(struct rlhf__jinja_work *, rlhf_str s, int ends);

// An argument that must be an integer; `otherwise` if it is undefined. Integers beyond 64 bits
// become the nearest one within. Raises an error for other values. [any]
int64_t rlhf__jinja_whole_arg(struct rlhf__jinja_work *, rlhf__value v, int64_t otherwise);

// Returns s without the white space at its beginning (if `left` is set) and at its end (if `right`
// is set). Invalid bytes are kept. [any]
rlhf_str rlhf__space_trim(rlhf_str s, int left, int right);

#endif
