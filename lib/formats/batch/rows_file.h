// rows_file.h: stores sampled rows as the bytes of a file, and reads them back. The file has the
// tokens, log-probs and lengths of the rows, and the index of each row's prompt. It does not have
// scores, values and other numbers that are computed later.
//
// The file contains, little-endian:
// - "RLHFROWS"
// - u64: number of rows, number of tokens, flags, words per support, number of the first row, and
//   number of tokens that the model computed
// - for each row u32 length, prompt length, group and finished, then u64 source and version
// - the ids as u32
// - the log-probs as the bits of f32, including those of prompts
// - the supports as u32
// - u32: a CRC-32C of everything before it.
#ifndef RLHF_HOST_BATCH_ROWS_FILE_H
#define RLHF_HOST_BATCH_ROWS_FILE_H

#include "base/buf.h"
#include "base/folder.h"
#include "batch/rows.h"

// Numbers about all the rows of a file.
struct rlhf__rows_about {
    uint64_t first; // number of the first row within the run
    int64_t tokens; // tokens that the model computed for the rows
};

// Append the rows to *out in this format. The rows must not have turns. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_put(const struct rlhf__rows *e, const struct rlhf__rows_about *about,
                           struct rlhf__buf *out, struct rlhf__error *err);

// The rows of a file must be within these limits.
struct rlhf__rows_fit {
    int64_t prompts; // number of the run's prompts
    uint32_t n_ctx;  // maximum number of tokens in a row
    // Ids must be below n_vocab. Supports are over n_vocab_support ids; 0 = no supports.
    int32_t n_vocab, n_vocab_support;
};

// Read a file with the bytes that rlhf__rows_put wrote, and put its rows into *e, which must be
// zeroed. The file is not trusted, so everything in it is checked. The rows get the flag
// RLHF__DRAWN, and their RLHF__LOGP_OLD is set to the log-probs of sampling. Errors: RLHF_E_INVALID
// (the file is damaged or of another run; the message has the file's name), RLHF_E_IO,
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__rows_read(const char *path, const struct rlhf__rows_fit *fit,
                            struct rlhf__rows *e, struct rlhf__rows_about *about,
                            struct rlhf__error *err);

#endif
