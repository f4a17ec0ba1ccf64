// line_writer.h: writing a file of JSON Lines in one step: it appears whole or not at all. A name
// that ends in ".gz" is compressed, always to the same bytes for the same lines.
#ifndef RLHF_HOST_DATA_LINE_WRITER_H
#define RLHF_HOST_DATA_LINE_WRITER_H

#include "base/error.h"

#include <jansson.h>

struct rlhf__line_writer; // opaque

// Refuse an existing target: "pairs: --out 'x' exists already; --force replaces it". With force a
// regular file is replaced; links (dangling ones too), devices, pipes and directories never are.
// command begins the message. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__line_writer_free_target(const char *command, const char *target, int force,
                                          struct rlhf__error *err);

// Start writing target under a temporary name in its directory. Caller owns *out; end with commit
// or abort. Errors: RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__line_writer_open(const char *target, struct rlhf__line_writer **out,
                                   struct rlhf__error *err);

// Append row as one line and release it, also on failure; row NULL is RLHF_E_NOMEM (a failed
// json_pack). [main]
rlhf_status rlhf__line_writer_put_new(struct rlhf__line_writer *w, json_t *row,
                                      struct rlhf__error *err);

// Put the file in its place and free w, also on failure. Errors: RLHF_E_IO (nothing is left
// behind). [main]
rlhf_status rlhf__line_writer_commit(struct rlhf__line_writer *w, struct rlhf__error *err);

// Drop what was written and free w. NULL allowed. [main]
void rlhf__line_writer_abort(struct rlhf__line_writer *w);

#endif
