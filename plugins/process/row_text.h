// row_text.h: values of JSON as text, read with the host's row service. Integers of any size keep
// their digits.
#ifndef RLHF_PLUGINS_PROCESS_ROW_TEXT_H
#define RLHF_PLUGINS_PROCESS_ROW_TEXT_H

#include "process/bytes.h"

#include <rlhf/service.h>

// Append the value at a path of a row as JSON text. If `plain` is 1, append the content of a string
// instead. Returns 0, and appends nothing, if the value is missing. [any]
int rlhf__row_text(const rlhf_row_service *, const rlhf_row *, const char *path, int plain,
                   struct rlhf__bytes *out);

// The same for a member of a data row, whose text is `row`. [any]
int rlhf__row_member(rlhf_str row, const char *key, int plain, struct rlhf__bytes *out);

// The kind of the value at a path, for messages: "a list". [any]
const char *rlhf__row_kind(const rlhf_host *, const rlhf_row_service *, const rlhf_row *,
                           const char *path);

// Returns 1 and sets *out to the value at a path as a reward: a number; true, which is 1, and
// false, which is 0; null, which is NaN. Returns 0 for other values. [any]
int rlhf__row_reward(const rlhf_host *, const rlhf_row_service *, const rlhf_row *,
                     const char *path, double *out);

#endif
