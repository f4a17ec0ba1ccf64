// spec.h: "X.so:key=value,...", the form in which a plugin and its options are typed.
//
// A part without '=' belongs to the value before it, so values may contain commas.
#ifndef RLHF_HOST_CONFIG_SPEC_H
#define RLHF_HOST_CONFIG_SPEC_H

#include "base/error.h"
#include "base/json.h"

#include <stddef.h>

// Returns the length of the plugin's name in `spec`. A ':' and the options follow, if there are
// any. [any]
size_t rlhf__spec_name_len(const char *spec);

// Call `set` for each "key=value" of `pairs` ("k=v,k=v"), in order, until it fails. `flag` is for
// messages. Errors: RLHF_E_INVALID (wrong form), RLHF_E_NOMEM, those of `set`. [any]
rlhf_status rlhf__spec_pairs(const char *pairs, const char *flag,
                             rlhf_status (*set)(void *arg, const char *key, const char *value,
                                                struct rlhf__error *err),
                             void *arg, struct rlhf__error *err);

// Parses a typed value. Returns JSON if the text is JSON, otherwise a string. A number with blanks
// around it becomes a string. An option that needs a number then rejects it, because the blanks are
// a typing mistake. The result is a new reference, or NULL if memory runs out. [any]
json_t *rlhf__typed_value(const char *raw);

// Returns RLHF_E_INVALID if a typed text is not UTF-8. [any]
rlhf_status rlhf__typed_utf8(const char *flag, const char *text, struct rlhf__error *err);

#endif
