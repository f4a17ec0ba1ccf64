// spec.h: "X.so:key=value,...", a plugin and its options as they are typed.
//
// A part without '=' continues the previous value, so values may contain commas.
#ifndef RLHF_HOST_SPEC_H
#define RLHF_HOST_SPEC_H

#include "base/error.h"
#include "base/json.h"

#include <stddef.h>

// Length of the plugin's name in spec; the options, if any, follow after a ':'. [any]
size_t rlhf__spec_name_len(const char *spec);

// Call set for each "key=value" of pairs ("k=v,k=v"), in order, up to its first error. flag is for
// messages. Errors: RLHF_E_INVALID (no such form), RLHF_E_NOMEM, those of set. [any]
rlhf_status rlhf__spec_pairs(const char *pairs, const char *flag,
                             rlhf_status (*set)(void *arg, const char *key, const char *value,
                                                struct rlhf__error *err),
                             void *arg, struct rlhf__error *err);

// A typed value: JSON if it parses as JSON, otherwise a string. JSON allows blanks around a number,
// but typed ones are a mistake. New reference, NULL: out of memory. [any]
json_t *rlhf__typed_value(const char *raw);

// RLHF_E_INVALID if a typed text is not UTF-8. [any]
rlhf_status rlhf__typed_utf8(const char *flag, const char *text, struct rlhf__error *err);

#endif
