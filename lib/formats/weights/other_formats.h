// other_formats.h: what to say of a directory without safetensors: which other format its weights
// are in, and how they become safetensors.
//
// What it is not: a reader of any of them; most are pickles, whose reading runs code.
#ifndef RLHF_HOST_WEIGHTS_OTHER_FORMATS_H
#define RLHF_HOST_WEIGHTS_OTHER_FORMATS_H

#include "base/error.h"

// Fails with that sentence, RLHF_E_INVALID. [main]
rlhf_status rlhf__other_formats(const char *dir, struct rlhf__error *err);

#endif
