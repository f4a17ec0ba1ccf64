// added_ready.h: added tokens made ready to be looked for in texts.
//
// What it is not: looking for them, which is added.h's; internal to text/.
#ifndef RLHF_HOST_TEXT_ADDED_READY_H
#define RLHF_HOST_TEXT_ADDED_READY_H

#include "base/error.h"

struct rlhf__tokenizer;

// Make them findable in texts, after the last was added. Errors: RLHF_E_NOMEM, RLHF_E_UNSUPPORTED
// (a pattern of the normaliser takes too long). [main]
rlhf_status rlhf__added_ready(struct rlhf__tokenizer *tok, struct rlhf__error *err);

#endif
