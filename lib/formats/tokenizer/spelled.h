// spelled.h: messages in which special tokens are spelled out in ordinary tokens. An environment's
// text can contain the text of a special token, which must then be encoded as ordinary tokens.
//
// A chat template may move and change contents. So the special tokens are marked in the contents
// before the template renders them. In the rendered text, the marks are found, removed, and
// remembered as cuts.
//
// It does not render or encode anything.
#ifndef RLHF_FORMATS_TOKENIZER_SPELLED_H
#define RLHF_FORMATS_TOKENIZER_SPELLED_H

#include "tokenizer/tokenizer.h"
#include "values/message.h"

// Zero-initialize; release with rlhf__spelled_finish.
struct rlhf__spelled {
    struct rlhf__messages marked; // the messages with marks in their contents
    struct rlhf__buf text;        // the contents that have marks
    struct rlhf__cuts cuts;
    char mark[8]; // "" if the messages need no marks
};

// Mark the special tokens in those contents that are RLHF__CONTENT_SPELLED. *out borrows the
// messages. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__spelled_mark(const struct rlhf__tokenizer *, const struct rlhf__messages *,
                               struct rlhf__spelled *out, struct rlhf__error *err);

// Remove the marks from a rendered text, adjust its turns, and put the positions of the marks into
// the cuts. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__spelled_unmark(struct rlhf__spelled *, struct rlhf__turns *,
                                 struct rlhf__error *err);

void rlhf__spelled_finish(struct rlhf__spelled *);

#endif
