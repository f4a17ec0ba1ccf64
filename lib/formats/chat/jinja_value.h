// jinja_value.h: what the filters, tests, methods and operators of a chat template do with values.
//
// A value is a json_t: strings, integers, true, false, null, arrays and objects; NULL is Jinja's
// undefined. `state` tells when something is not known or would be too much.
//
// What it is not: it knows no variables and reaches nothing outside of its arguments; internal to
// chat/.
#ifndef RLHF_HOST_CHAT_JINJA_VALUE_H
#define RLHF_HOST_CHAT_JINJA_VALUE_H

#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>

enum rlhf__jinja_state {
    RLHF__JINJA_GOES_ON = 0,
    RLHF__JINJA_RAISED = 1, // raise_exception(), or what Jinja itself raises on such values
    RLHF__JINJA_UNKNOWN = 2 // not known here, or beyond the limits
};

// Bounds of one rendering, counted down.
struct rlhf__jinja_work {
    int64_t steps, bytes; // bytes of all strings made
    int32_t state, line;  // enum rlhf__jinja_state; line of what ended it
    char why[120];        // what was not known or raised
};

// NULL, with the state and the reason set. [any]
__attribute__((format(printf, 3, 4))) json_t *rlhf__jinja_stop(struct rlhf__jinja_work *, int state,
                                                               const char *fmt, ...);

// All that give a json_t give a new reference; arguments are borrowed. [any]
json_t *rlhf__jinja_string(struct rlhf__jinja_work *, const char *s, size_t n);
int rlhf__jinja_true(const json_t *v);
int rlhf__jinja_equal(const json_t *a, const json_t *b);
// As {{ v }} prints it.
void rlhf__jinja_print(struct rlhf__jinja_work *, const json_t *v, struct rlhf__buf *out);
json_t *rlhf__jinja_binary(struct rlhf__jinja_work *, const char *op, const json_t *a,
                           const json_t *b);
json_t *rlhf__jinja_item(struct rlhf__jinja_work *, const json_t *of, const json_t *key);
// from, to, by: integers, or NULL where they are left out.
json_t *rlhf__jinja_slice(struct rlhf__jinja_work *, const json_t *of, const json_t *from,
                          const json_t *to, const json_t *by);
// args: an array; an undefined argument is null there.
json_t *rlhf__jinja_filter(struct rlhf__jinja_work *, const char *name, const json_t *v,
                           const json_t *args);
json_t *rlhf__jinja_test(struct rlhf__jinja_work *, const char *name, const json_t *v,
                         const json_t *args);
json_t *rlhf__jinja_method(struct rlhf__jinja_work *, const char *name, const json_t *v,
                           const json_t *args);

// s without white space at its beginning (left) and end (right). Ill-formed bytes are none. [any]
rlhf_str rlhf__space_trim(rlhf_str s, int left, int right);

#endif
