// tokenizer_impl.h: what a tokenizer is made of, shared by its loader and its users in text/.
//
// What it is not: an interface for other directories; see tokenizer.h.
#ifndef RLHF_HOST_TEXT_TOKENIZER_IMPL_H
#define RLHF_HOST_TEXT_TOKENIZER_IMPL_H

#include "text/bpe.h"
#include "text/tokenizer.h"
#include "text/wordpiece.h"

#include <jansson.h>

struct rlhf__tokenizer {
    struct rlhf__tokenizer_info info;
    struct rlhf__vocab vocab;
    struct rlhf__merges merges;   // until bpe takes them over
    struct rlhf__bpe *bpe;        // kind BPE
    struct rlhf__wordpiece piece; // kind WORDPIECE
    int32_t *special;             // [n_special] ids, longest token first
    size_t n_special;
};

// Fill info.kind, vocab, and merges or piece.opts from the files of dir. Errors as
// rlhf__tokenizer_open. [main]
rlhf_status rlhf__tokenizer_load(struct rlhf__tokenizer *tok, const char *dir,
                                 struct rlhf__error *err);

// The optional files: added tokens, roles of special tokens, letter case. After load. [main]
rlhf_status rlhf__tokenizer_load_special(struct rlhf__tokenizer *tok, const char *dir,
                                         struct rlhf__error *err);

// Add [{"id", "content", "special"}] of tokenizer.json to the vocabulary. [main]
rlhf_status rlhf__tokenizer_add_tokens(struct rlhf__tokenizer *tok, const json_t *added,
                                       struct rlhf__error *err);

// DIR/name parsed; *out NULL when there is no such file. [main]
rlhf_status rlhf__tokenizer_json(const char *dir, const char *name, json_t **out,
                                 struct rlhf__error *err);

#endif
