// gguf.h: writes a language model as one GGUF file for llama.cpp. Supports the architectures of
// weights/gguf_names.h.
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_H

#include "base/folder.h"
#include "tensors/tensor.h"

#include <jansson.h>
#include <signal.h>

struct rlhf__gguf_model {
    const char *dir;  // of the tokenizer, and for messages
    const char *name; // general.name
    const char *from; // the GGUF file that it was read from, for its license; NULL: a directory
    int32_t changed;  // 1: an adapter was merged, so that it is another model than `from`
    const json_t *config;
    const struct rlhf__tensor *const *tensor; // [n]
    size_t n;
    int32_t dtype; // of matrices: F32, F16, BF16 or Q8_0; -1 = unchanged. Norms, biases and learned
                   // positions are F32, which llama.cpp requires
    const volatile sig_atomic_t *cancelled; // NULL = never
};

// Refuse a model that a GGUF file cannot hold, before anything is written. The cause may be the
// architecture, the tokenizer's form, an unknown tensor or a missing one. Errors: RLHF_E_INVALID,
// and those of rlhf__tokenizer_open, because the function opens the tokenizer to check it. [main]
rlhf_status rlhf__gguf_check(const struct rlhf__gguf_model *, struct rlhf__error *err);

// Write the file `name` in the folder `in`. If `in` is NULL, `name` is a path. The file has a
// temporary name until it is complete. Errors: those of rlhf__gguf_check; RLHF_E_INVALID (a number
// that dtype cannot hold), RLHF_E_IO, RLHF_E_CANCELLED. [main]
rlhf_status rlhf__gguf_write(const struct rlhf__gguf_model *, const struct rlhf__folder *in,
                             const char *name, struct rlhf__error *err);

#endif
