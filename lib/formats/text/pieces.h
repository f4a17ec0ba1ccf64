// pieces.h: a text and where it is cut: what goes from one part of a pre-tokeniser to the next and
// in the end, word by word, to the model.
//
// What it is not: it cuts nothing itself; internal to text/.
#ifndef RLHF_HOST_TEXT_PIECES_H
#define RLHF_HOST_TEXT_PIECES_H

#include "base/buf.h"

enum rlhf__piece_flag {
    RLHF__PIECE_RAW = 1, // ill-formed UTF-8: no part looks at it
    RLHF__PIECE_ON = 2   // goes on where ill-formed bytes ended: not the beginning of anything
};

struct rlhf__piece {
    size_t at, n; // bytes of the text
    uint32_t flags, reserved;
};

// Zero-initialise; release with rlhf__pieces_finish. item[0..n) are valid.
struct rlhf__pieces {
    const char *text; // borrowed, or own.data
    struct rlhf__piece *item;
    size_t n, cap;
    struct rlhf__buf own; // the text, where a part changed it
};

// Append the bytes [at, at + n) of the text as a piece; nothing when n is 0. Errors: RLHF_E_NOMEM.
// [any, one thread per list]
rlhf_status rlhf__pieces_push(struct rlhf__pieces *p, size_t at, size_t n, uint32_t flags,
                              struct rlhf__error *err);

void rlhf__pieces_finish(struct rlhf__pieces *p);

#endif
