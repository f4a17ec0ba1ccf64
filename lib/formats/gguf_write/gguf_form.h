// gguf_form.h: finds the tokenizer of llama.cpp that matches a tokenizer.json.
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_FORM_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_FORM_H

#include "base/error.h"

#include <jansson.h>

struct rlhf__gguf_form {
    const char *pre;      // tokenizer.ggml.pre
    int32_t spm;          // 1: byte fallback, a SentencePiece vocabulary; 0: byte-level BPE
    int32_t space_prefix; // spm: a space is prepended to a text
};

// One merge, borrowed from its JSON.
struct rlhf__gguf_merge {
    const char *left, *right;
    size_t n_left, n_right;
};

// The form of vocab.json with merges.txt. [any]
struct rlhf__gguf_form rlhf__gguf_form_gpt2(void);

// Determine the form of a tokenizer.json. If llama.cpp does not support a part, returns
// RLHF_E_INVALID with the part's type. `dir` is used only in messages. [main]
rlhf_status rlhf__gguf_form_of(const json_t *tokenizer, const char *dir,
                               struct rlhf__gguf_form *out, struct rlhf__error *err);

// Read a merge, "a b" or ["a", "b"]. Returns 0 for anything else. [any]
int rlhf__gguf_merge_of(const json_t *v, struct rlhf__gguf_merge *out);

// Check that llama.cpp encodes texts to the same ids as these merges. llama.cpp joins two adjacent
// pieces whenever their concatenation is a piece, and joins those with the best concatenation
// first. So any two pieces that concatenate to a piece must have a merge, and merges with the same
// result must be adjacent in the list. Otherwise returns RLHF_E_INVALID and names a pair. [main]
rlhf_status rlhf__gguf_form_spm(const json_t *vocab, const json_t *merges, const json_t *added,
                                const char *dir, struct rlhf__error *err);

#endif
