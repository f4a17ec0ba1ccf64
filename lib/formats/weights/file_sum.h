// file_sum.h: identifies a file or a model directory by its size and SHA-256.
#ifndef RLHF_LIB_FORMATS_WEIGHTS_FILE_SUM_H
#define RLHF_LIB_FORMATS_WEIGHTS_FILE_SUM_H

#include "base/error.h"
#include "base/hash.h"

struct rlhf__file_sum {
    struct rlhf__sha256 hash; // finish it with rlhf__sha256_hex
    int64_t bytes;            // of the files
};

// Set *out to the sum of a file. If it is not a regular file, *found is 0. Errors: RLHF_E_IO.
// [main]
rlhf_status rlhf__sum_file(const char *path, struct rlhf__file_sum *out, int *found,
                           struct rlhf__error *err);

// Hash the files in the directory of a model or an adapter: configs, tokenizer files and weights.
// If a weights file has more than 64 MiB, only 64 pieces of it are read. If `dir` is a GGUF file,
// the sum is the SHA-256 of the whole file. Errors: RLHF_E_INVALID (no such path), RLHF_E_IO.
// [main]
rlhf_status rlhf__sum_model(const char *dir, int tokenizer, int weights, struct rlhf__file_sum *out,
                            struct rlhf__error *err);

#endif
