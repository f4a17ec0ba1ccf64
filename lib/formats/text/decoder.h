// decoder.h: turns ids into text. It reads the "decoder" of tokenizer.json as a list of steps, and
// runs these steps.
//
// The decoder does not find tokens in texts, and it does not know special tokens. Internal to
// text/, see rlhf__tokenizer_text.
#ifndef RLHF_FORMATS_TEXT_DECODER_H
#define RLHF_FORMATS_TEXT_DECODER_H

#include "text/added.h"
#include "text/work.h"

#include <jansson.h>

struct rlhf__decoder; // opaque
struct rlhf__tokenizer;

// Read a "decoder" of tokenizer.json. `bytes` is 1 if the model's tokens are bytes. If the
// "decoder" is NULL or null, *out becomes a ByteLevel decoder if `bytes` is 1, and a decoder that
// puts spaces between the tokens if `bytes` is 0. Errors: RLHF_E_UNSUPPORTED (the message has the
// type), RLHF_E_INVALID, RLHF_E_NOMEM. [main]
rlhf_status rlhf__decoder_open(const json_t *part, int bytes, struct rlhf__decoder **out,
                               struct rlhf__error *err);

void rlhf__decoder_close(struct rlhf__decoder *decoder); // NULL allowed

// Store the text that each token has in the middle of a text, for rlhf__decoder_piece. Call this
// function after the last token is added. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__decoder_prepare(struct rlhf__decoder *decoder, const struct rlhf__added *added,
                                  const struct rlhf__vocab *vocab, struct rlhf__error *err);

// Returns the bytes that a token has in the middle of a text, or {NULL, 0} for an unused id.
// `vocab` must be the vocabulary that was passed to rlhf__decoder_prepare. Borrowed. [any]
rlhf_str rlhf__decoder_piece(const struct rlhf__decoder *decoder, const struct rlhf__added *added,
                             const struct rlhf__vocab *vocab, int32_t id);

// Decode a text. Before the call, *list has the tokens of the text. After the call, *list has the
// parts of the decoded text. If the tokens are valid UTF-8, the parts are too. `inside` is 1 if the
// tokens are from the middle of a text, without its first and last token. `spare` is overwritten.
// Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__decoder_run(const struct rlhf__decoder *decoder, struct rlhf__spans *list,
                              struct rlhf__spans *spare, int inside, struct rlhf__error *err);

#endif
