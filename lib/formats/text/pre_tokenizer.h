// pre_tokenizer.h: splits a normalized text into words. The "pre_tokenizer" of tokenizer.json is a
// list of steps; each step splits the pieces that the previous step made.
//
// It does not use the vocabulary. Internal to text/.
#ifndef RLHF_FORMATS_TEXT_PRE_TOKENIZER_H
#define RLHF_FORMATS_TEXT_PRE_TOKENIZER_H

#include "text/pattern.h"
#include "text/work.h"

#include <jansson.h>

struct rlhf__pre_tokenizer; // opaque

// Read a "pre_tokenizer" of tokenizer.json. If it is NULL or null, *out is NULL, and a whole text
// is one word. Errors: RLHF_E_UNSUPPORTED (the message names the unsupported type or pattern),
// RLHF_E_INVALID, RLHF_E_NOMEM. [main]
rlhf_status rlhf__pre_tokenizer_open(const json_t *part, struct rlhf__pre_tokenizer **out,
                                     struct rlhf__error *err);

void rlhf__pre_tokenizer_close(struct rlhf__pre_tokenizer *pre); // NULL allowed

// Returns 1 if the model works on bytes, which is the case if there is a ByteLevel step. The files
// of such a model write tokens with stand-ins for bytes (vocab.h). Returns 0 for NULL. [any]
int rlhf__pre_tokenizer_bytes(const struct rlhf__pre_tokenizer *pre);

// Set work->pieces to the words of s[0..n). at_start is 1 if s is the beginning of the whole text.
// s must outlive the pieces. If `pre` is NULL, the text is one word. Errors: RLHF_E_NOMEM,
// RLHF_E_UNSUPPORTED (PCRE2 gave up). [any, one thread per work]
rlhf_status rlhf__pre_tokenizer_cut(const struct rlhf__pre_tokenizer *pre, struct rlhf__work *work,
                                    const char *s, size_t n, int at_start, struct rlhf__error *err);

#endif
