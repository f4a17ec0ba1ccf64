// vectors.h: the rows of data/*.jsonl, which make_vectors.py wrote.
#ifndef RLHF_TESTS_CHAT_VECTORS_H
#define RLHF_TESTS_CHAT_VECTORS_H

#include "values/message.h"

#include <jansson.h>

// Returns all rows of a file: a list of its lines, or the value of a .json file. Fails the test if
// there are fewer than `least` rows. The caller releases the result.
json_t *vectors_load(const char *path, size_t least);

// Fills `out` with the messages of a row. Their contents point into `row`.
void vectors_messages(const json_t *row, struct rlhf__messages *out);

// The string of a member, or NULL if it is missing.
const char *vectors_text(const json_t *row, const char *key);

#endif
