// decoder.h: turns ids into text: the "decoder" of tokenizer.json as a list of steps.
//
// The decoder does not find tokens in texts and knows no special tokens. Internal to text/, see
// rlhf__tokenizer_text.
#ifndef RLHF_HOST_TEXT_DECODER_H
#define RLHF_HOST_TEXT_DECODER_H

#include "text/added.h"
#include "text/work.h"

#include <jansson.h>

struct rlhf__decoder; // opaque
struct rlhf__tokenizer;

// Read a "decoder" of tokenizer.json. bytes 1: the model's tokens are bytes. If the part is NULL or
// null, the decoder is ByteLevel with bytes 1, and otherwise joins the tokens by spaces. Errors:
// RLHF_E_UNSUPPORTED names the type, RLHF_E_INVALID, RLHF_E_NOMEM. [main]
rlhf_status rlhf__decoder_create(const json_t *part, int bytes, struct rlhf__decoder **out,
                                 struct rlhf__error *err);

void rlhf__decoder_destroy(struct rlhf__decoder *decoder); // NULL allowed

// Store, for rlhf__decoder_piece, the text that each token has inside a text. Call it after the
// last token is added. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__decoder_prepare(struct rlhf__decoder *decoder, const struct rlhf__added *added,
                                  const struct rlhf__vocab *vocab, struct rlhf__error *err);

// The bytes that a token has inside a text; {NULL, 0} for ids without a token. Uses the vocabulary
// given to rlhf__decoder_prepare. Borrowed. [any]
rlhf_str rlhf__decoder_piece(const struct rlhf__decoder *decoder, const struct rlhf__added *added,
                             const struct rlhf__vocab *vocab, int32_t id);

// Turn *list from the tokens of a text into the parts of the decoded text. The parts are
// well-formed UTF-8 if the tokens are. spare is overwritten. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__decoder_run(const struct rlhf__decoder *decoder, struct rlhf__spans *list,
                              struct rlhf__spans *spare, int inside, struct rlhf__error *err);

#endif
