// spelled.h: messages whose special tokens are spelled out in ordinary tokens: what an environment
// says can contain the text of a special token, but never the token.
//
// A chat template may move and change contents, so the places are marked in the contents before it
// renders them, and found and unmarked in the rendered text.
//
// It renders and encodes nothing. Internal to text/.
#ifndef RLHF_HOST_TEXT_SPELLED_H
#define RLHF_HOST_TEXT_SPELLED_H

#include "chat/message.h"
#include "text/tokenizer_impl.h"

// Zero-initialize; release with rlhf__spelled_finish.
struct rlhf__spelled {
    struct rlhf__messages marked; // the messages with marks in their contents
    struct rlhf__buf text;        // of the contents that have marks
    struct rlhf__cuts cuts;
    char mark[8]; // "" if no message has special tokens to spell out
};

// Mark the special tokens in the contents that are RLHF__CONTENT_SPELLED. *out borrows the
// messages. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__spelled_mark(const struct rlhf__tokenizer *, const struct rlhf__messages *,
                               struct rlhf__spelled *out, struct rlhf__error *err);

// Remove the marks from a rendered text and its turns, and put their places into out->cuts. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__spelled_unmark(struct rlhf__spelled *, struct rlhf__turns *,
                                 struct rlhf__error *err);

void rlhf__spelled_finish(struct rlhf__spelled *);

#endif
