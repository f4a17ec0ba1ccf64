// sum.h: by what a file or a model directory is known again: its bytes and their SHA-256.
#ifndef RLHF_HOST_WEIGHTS_SUM_H
#define RLHF_HOST_WEIGHTS_SUM_H

#include "base/error.h"
#include "base/hash.h"

struct rlhf__sum {
    struct rlhf__sha256 hash; // rlhf__sha256_hex ends it
    int64_t bytes;            // of the files
};

// The whole of a file; *found = 0 where there is no regular one. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__sum_file(const char *path, struct rlhf__sum *out, int *found,
                           struct rlhf__error *err);

// Of a model directory, or an adapter's, what of it is there: its configs; the tokenizer's files;
// the weights, of which a file of more than 64 MiB is read in 64 pieces. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__sum_model(const char *dir, int tokenizer, int weights, struct rlhf__sum *out,
                            struct rlhf__error *err);

#endif
