// written.h: checks that a line of a run's files is written as the program writes it. Edits that
// leave the values as they are, such as 1E-5 for 1e-5, are found in this way.
#ifndef RLHF_TOOLS_VERIFY_WRITTEN_H
#define RLHF_TOOLS_VERIFY_WRITTEN_H

#include <jansson.h>

// Returns 1 if `line`, n bytes without the newline, is how the program writes `v`. If `floats` is
// 1, the numbers in lists and the score of a row are f32. [any]
int rlhf__written(const char *line, size_t n, const json_t *v, int floats);

#endif
