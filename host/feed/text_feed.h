// text_feed.h: the feeds of {"text"} rows, whose held-out rows measure bits per byte, and of
// {"text", "label"} rows, which measure the accuracy of labels.
#ifndef RLHF_HOST_TEXT_FEED_H
#define RLHF_HOST_TEXT_FEED_H

#include "feed/feed.h"

// Read and check data.path. The policy may need the labels before it can be opened, so tokens come
// later. Caller owns *out. Errors: those of rlhf__text_source_open. [main]
rlhf_status rlhf__text_feed_open(const struct rlhf__feed_env *, struct rlhf__feed **out,
                                 struct rlhf__error *err);

// The same of labelled rows; labels->n = 0: their number is taken from the rows and they are named
// by it. [main]
rlhf_status rlhf__labelled_feed_open(const struct rlhf__feed_env *, struct rlhf__labels *labels,
                                     struct rlhf__feed **out, struct rlhf__error *err);

// Of either, when the policy is there: read the held-out rows, make tokens of all. Errors:
// RLHF_E_INVALID (rows longer than the context are asked for) and those of
// rlhf__text_source_tokenise. [main]
rlhf_status rlhf__text_feed_tokenise(struct rlhf__feed *, struct rlhf__error *err);

#endif
