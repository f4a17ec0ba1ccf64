// gguf_merges.h: the merges of a SentencePiece vocabulary, which a GGUF file does not list. It
// gives each piece a score instead: of all adjacent pieces whose concatenation is a piece, those
// with the best concatenation are merged first.
#ifndef RLHF_FORMATS_GGUF_GGUF_MERGES_H
#define RLHF_FORMATS_GGUF_GGUF_MERGES_H

#include "text/vocab.h"

#include <jansson.h>

// Set *out to the list of merges, each a string "left right": one for each way to divide a piece
// into two pieces, the best piece first. score[i] belongs to the token i of `pieces`, whose lookup
// table has the pieces that merges may join and make. Of the divisions of one piece, that with the
// longest left part comes first, as in transformers. Pieces with a space are left out, since no
// text has one after its spaces were replaced. Errors: RLHF_E_INVALID (a piece of more than 1024
// bytes), RLHF_E_NOMEM. [main]
rlhf_status rlhf__gguf_merges_make(const struct rlhf__vocab *pieces, const double *score,
                                   json_t **out, struct rlhf__error *err);

#endif
