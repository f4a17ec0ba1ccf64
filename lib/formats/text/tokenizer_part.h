// tokenizer_part.h: reads the type of a part of tokenizer.json, {"type": ..., ...}, and refuses
// unknown types.
//
// It does not know which types exist. Internal to text/.
#ifndef RLHF_FORMATS_TEXT_TOKENIZER_PART_H
#define RLHF_FORMATS_TEXT_TOKENIZER_PART_H

#include "base/error.h"

#include <jansson.h>

enum { RLHF__PART_DEPTH_MAX = 8 }; // depth of nested sequences

// The type, or "none". Borrowed. [any]
const char *rlhf__part_type(const json_t *part);

// 1 if the part has this type. [any]
int rlhf__part_is(const json_t *part, const char *type);

// Accept NULL. Refuse a part that is neither an object nor null. Also refuse a part that has a
// switch whose value is not a boolean. The parts of a Sequence are checked too. Errors:
// RLHF_E_INVALID. [any]
rlhf_status rlhf__part_check(const char *key, const json_t *part, struct rlhf__error *err);

// Return RLHF_E_UNSUPPORTED with the message "the KEY 'TYPE' is not supported; allowed: ALLOWED".
// [any]
rlhf_status rlhf__part_refuse(const char *key, const json_t *part, const char *allowed,
                              struct rlhf__error *err);

#endif
