// jinja_print.h: prints values as text. {{ v }} prints Python's str() of a value; tojson prints
// JSON.
//
// It does not parse text.
#ifndef RLHF_FORMATS_VALUES_JINJA_PRINT_H
#define RLHF_FORMATS_VALUES_JINJA_PRINT_H

#include "values/jinja_value.h"

#include <jansson.h>

// Append str(v). Nothing is appended if v is undefined. [any]
void rlhf__jinja_print(struct rlhf__jinja_work *, rlhf__value v, struct rlhf__buf *out);

// The value str(v). A string is returned unchanged. [any]
rlhf__value rlhf__jinja_text(struct rlhf__jinja_work *, rlhf__value v);

// The value repr(v). [any]
rlhf__value rlhf__jinja_repr(struct rlhf__jinja_work *, rlhf__value v);

// Turns a printed text into a value. Frees `out`. [any]
rlhf__value rlhf__jinja_taken(struct rlhf__jinja_work *, struct rlhf__buf *out);

// The options of json.dumps(v, ensure_ascii=False), as in transformers' tojson. If `lines` is 1,
// each item is on a line of its own, after `indent` once for each level. `item` and `key` are the
// separators after items and keys; if the ptr of a separator is NULL, Python's default is used. If
// `sorted` is 1, the keys are sorted. [any]
struct rlhf__jinja_json {
    rlhf_str indent, item, key;
    int lines, sorted, ascii;
};
rlhf__value rlhf__jinja_tojson(struct rlhf__jinja_work *, rlhf__value v,
                               const struct rlhf__jinja_json *how);

// Converts a JSON value to a value of a template. Strings are borrowed. [any]
rlhf__value rlhf__jinja_from_json(struct rlhf__jinja_work *, const json_t *v);

#endif
