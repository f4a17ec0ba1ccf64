// decoder.h: ids to text: the "decoder" of tokenizer.json.
//
// What it is not: it finds no tokens in texts; internal to text/, see rlhf__tokenizer_decode.
#ifndef RLHF_HOST_TEXT_DECODER_H
#define RLHF_HOST_TEXT_DECODER_H

#include "base/error.h"

#include <jansson.h>

enum rlhf__decoder_kind {
    RLHF__DECODER_BYTES = 1, // the tokens' bytes, one after the other
    RLHF__DECODER_WORDPIECE  // words with a space between, pieces that begin with ## without
};

// From a "decoder" of tokenizer.json, NULL and null allowed; bytes: the model sees bytes. Errors:
// RLHF_E_UNSUPPORTED names the type. [main]
rlhf_status rlhf__decoder_read(const json_t *part, int bytes, int32_t *kind,
                               struct rlhf__error *err);

#endif
