// decoder_step.h: each type of decoder that there is, as a step from a list of texts to another.
//
// What it is not: the order of the steps is decoder.c's; internal to text/.
#ifndef RLHF_HOST_TEXT_DECODER_STEP_H
#define RLHF_HOST_TEXT_DECODER_STEP_H

#include "text/spans.h"

#include <jansson.h>

struct rlhf__decoder_step;

struct rlhf__decoding {
    int inside; // the tokens are some in the middle of a text: neither its first nor its last
    int fused;  // the list is one text by now, no longer a text for each token
};

typedef void rlhf__decode_fn(const struct rlhf__decoder_step *step, const struct rlhf__spans *in,
                             struct rlhf__decoding *how, struct rlhf__spans *out);

struct rlhf__decoder_step {
    rlhf__decode_fn *apply;
    rlhf_str what, with; // borrowed from the JSON that it was read from
    int32_t start, stop; // Strip: how many at most
    int32_t on;          // Metaspace: a text's first space was put there; WordPiece: cleanup
    int32_t bytes;       // ByteLevel
};

// From one part of tokenizer.json, which must outlive the step; NULL: a space between two. Errors:
// RLHF_E_UNSUPPORTED names the type, RLHF_E_INVALID the field. [main]
rlhf_status rlhf__decoder_step_read(const json_t *part, struct rlhf__decoder_step *step,
                                    struct rlhf__error *err);

#endif
