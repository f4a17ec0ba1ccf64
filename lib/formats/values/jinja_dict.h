// jinja_dict.h: dictionaries of a chat template, and which values are equal. Equal keys are one
// key.
#ifndef RLHF_FORMATS_VALUES_JINJA_DICT_H
#define RLHF_FORMATS_VALUES_JINJA_DICT_H

#include "values/jinja_value.h"

// a == b. [any]
int rlhf__jinja_equal(struct rlhf__jinja_work *, rlhf__value a, rlhf__value b);

// rlhf__jinja_dict makes an empty dictionary or namespace. rlhf__jinja_put sets a member of it, and
// rlhf__jinja_put_key one whose key need not be a string. A list or an object as a key raises an
// error. The key is borrowed. [any]
rlhf__value rlhf__jinja_dict(struct rlhf__jinja_work *, int32_t type, size_t cap);
void rlhf__jinja_put(struct rlhf__jinja_work *, rlhf__value dict, rlhf_str key, rlhf__value v);
void rlhf__jinja_put_key(struct rlhf__jinja_work *, rlhf__value dict, rlhf__value key,
                         rlhf__value v);

// Returns the value of a key, or NULL if the key is missing. After an error, also returns NULL, and
// sets the state of the work to the error. [any]
const rlhf__value *rlhf__jinja_get(struct rlhf__jinja_work *, const struct rlhf__jinja_dict *,
                                   rlhf_str key);
const rlhf__value *rlhf__jinja_get_key(struct rlhf__jinja_work *, const struct rlhf__jinja_dict *,
                                       rlhf__value key);

#endif
