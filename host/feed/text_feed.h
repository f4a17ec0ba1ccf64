// text_feed.h: the feeds of {"text"} rows, whose held-out rows measure bits per byte, and of
// {"text", "label"} rows, whose held-out rows measure accuracy.
#ifndef RLHF_HOST_TEXT_FEED_H
#define RLHF_HOST_TEXT_FEED_H

#include "feed/feed.h"

// Read and check data.path. Tokenising comes later, because the policy may need the labels before
// it can be opened. The caller owns *out. Errors: those of rlhf__text_source_open. [main]
rlhf_status rlhf__text_feed_open(const struct rlhf__feed_env *, struct rlhf__feed **out,
                                 struct rlhf__error *err);

// The same for labelled rows. With labels->n = 0 the labels are counted in the rows, and their
// numbers become their names. [main]
rlhf_status rlhf__labelled_feed_open(const struct rlhf__feed_env *, struct rlhf__labels *labels,
                                     struct rlhf__feed **out, struct rlhf__error *err);

// For either, after the policy has been opened: read the held-out rows and tokenise all rows.
// Errors: RLHF_E_INVALID (data.max_tokens is longer than the context) and those of
// rlhf__text_source_tokenise. [main]
rlhf_status rlhf__text_feed_tokenise(struct rlhf__feed *, struct rlhf__error *err);

#endif
