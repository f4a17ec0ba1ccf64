// written.h: checks that a line of a run's files has the exact text that the program writes. This
// finds edits that do not change a value, such as 1E-5 for 1e-5.
#ifndef RLHF_TOOLS_VERIFY_WRITTEN_H
#define RLHF_TOOLS_VERIFY_WRITTEN_H

#include <jansson.h>

// Returns 1 if the program writes `v` exactly as `line`, which has n bytes without the newline. If
// `floats` is 1, the numbers in lists and the score of a row are f32. [any]
int rlhf__written(const char *line, size_t n, const json_t *v, int floats);

#endif
