// turns.h: a conversation as one text, and where in it an assistant speaks.
#ifndef RLHF_HOST_CHAT_TURNS_H
#define RLHF_HOST_CHAT_TURNS_H

#include "base/buf.h"

// Bytes [from, to) of the text: what an assistant says, with what ends its turn and, where the
// model's own template marks it so, a little more. end: behind the token that ends the turn.
struct rlhf__turn {
    size_t from, to, end;
};

// Zero-initialise; release with rlhf__turns_finish.
struct rlhf__turns {
    struct rlhf__buf text;
    struct rlhf__turn *item; // [n] in order
    size_t n, cap;
};

// Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__turns_add(struct rlhf__turns *, size_t from, size_t to, struct rlhf__error *err);
void rlhf__turns_clear(struct rlhf__turns *);
void rlhf__turns_finish(struct rlhf__turns *);

#endif
