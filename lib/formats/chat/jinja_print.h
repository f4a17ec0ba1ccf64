// jinja_print.h: prints values as text. {{ v }} prints Python's str() of a value; tojson prints
// JSON.
//
// It does not parse text. Internal to chat/.
#ifndef RLHF_FORMATS_CHAT_JINJA_PRINT_H
#define RLHF_FORMATS_CHAT_JINJA_PRINT_H

#include "chat/jinja_value.h"

#include <jansson.h>

// Append str(v). Nothing is appended if v is undefined. [any]
void rlhf__jinja_print(struct rlhf__jinja_work *, rlhf__value v, struct rlhf__buf *out);

// The value str(v). A string is returned unchanged. [any]
rlhf__value rlhf__jinja_text(struct rlhf__jinja_work *, rlhf__value v);

// The options of json.dumps(v, ensure_ascii=False), as in transformers' tojson. If `indent` is
// negative, everything is on one line. `item` and `key` are the separators after items and keys; if
// the ptr of a separator is NULL, Python's default is used. If `sorted` is 1, the keys are sorted.
// [any]
struct rlhf__jinja_json {
    int64_t indent;
    rlhf_str item, key;
    int sorted, ascii;
};
rlhf__value rlhf__jinja_tojson(struct rlhf__jinja_work *, rlhf__value v,
                               const struct rlhf__jinja_json *how);

// Converts a JSON value to a value of a template. Strings are borrowed. [any]
rlhf__value rlhf__jinja_from_json(struct rlhf__jinja_work *, const json_t *v);

#endif
