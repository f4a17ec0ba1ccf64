// tokenizer_part.h: a part of tokenizer.json, {"type": ..., ...}: reads its type and refuses
// unknown ones.
//
// It does not know the types. Internal to text/.
#ifndef RLHF_HOST_TEXT_TOKENIZER_PART_H
#define RLHF_HOST_TEXT_TOKENIZER_PART_H

#include "base/error.h"

#include <jansson.h>

enum { RLHF__PART_DEPTH_MAX = 8 }; // sequences inside sequences

// The type, or "none". Borrowed. [any]
const char *rlhf__part_type(const json_t *part);

// 1 if the part has this type. [any]
int rlhf__part_is(const json_t *part, const char *type);

// Refuse a part that is not an object (NULL and null are allowed). Also refuse switches that are
// not booleans, in the part or in the parts of a Sequence. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__part_check(const char *key, const json_t *part, struct rlhf__error *err);

// RLHF_E_UNSUPPORTED: "the KEY 'TYPE' is not supported; allowed: ALLOWED". [any]
rlhf_status rlhf__part_refuse(const char *key, const json_t *part, const char *allowed,
                              struct rlhf__error *err);

#endif
