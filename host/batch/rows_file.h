// rows_file.h: rows as they were sampled, as the bytes of a file: tokens, log-probs, lengths, what
// each row responds to. Scores, values and other numbers that are computed later are not included.
//
// Format: "RLHFROWS"; little-endian u64 rows, tokens, flags, words of a support, first number, and
// tokens that the model computed; per row u32 length, prompt length, group, finished, and u64
// source and version; the ids as u32; the log-probs as the bits of f32, those of prompts included;
// the supports as u32; a CRC-32C of everything before it.
#ifndef RLHF_HOST_ROWS_FILE_H
#define RLHF_HOST_ROWS_FILE_H

#include "base/buf.h"
#include "base/folder.h"
#include "batch/rows.h"

// Numbers about the rows that a file includes.
struct rlhf__rows_about {
    uint64_t first; // number of the first row within the run
    int64_t tokens; // tokens that the model computed for them
};

// Append the file of the rows, which have no turns, to *out. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__rows_put(const struct rlhf__rows *e, const struct rlhf__rows_about *about,
                           struct rlhf__buf *out, struct rlhf__error *err);

// What rows read from a file must fit.
struct rlhf__rows_fit {
    int64_t prompts;                  // number of the run's prompts
    uint32_t n_ctx;                   // most tokens in a row
    int32_t n_vocab, n_vocab_support; // ids are below the first; supports are over the second, or 0
    int32_t reserved;
};

// Read into *e, which must be zeroed, a file that rlhf__rows_put has made. The file is not trusted.
// The rows have RLHF__DRAWN, and their old log-probs are those of sampling. Errors: RLHF_E_INVALID
// (damaged, or not of this run; the message has the file's name), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__rows_read(const char *path, const struct rlhf__rows_fit *fit,
                            struct rlhf__rows *e, struct rlhf__rows_about *about,
                            struct rlhf__error *err);

#endif
