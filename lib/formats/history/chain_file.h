// chain_file.h: reads chain.jsonl of a run, and checks that each line follows from the lines before
// it.
//
// There are four kinds of lines:
// - A `begin` line has the settings, inputs and versions that the results depend on, and the new
//   head of the chain.
// - A phase line has the digests of the phase's rows, rewards and metrics, and the new head.
// - A `settings` line has the settings that the results do not depend on.
// - A `checkpoint` line has the digests of a checkpoint's files, and a seal: the digest of all
//   bytes of the file before the seal.
// Lines of the last two kinds do not change the head. So the head depends neither on the machine
// nor on when checkpoints were written.
#ifndef RLHF_FORMATS_HISTORY_CHAIN_FILE_H
#define RLHF_FORMATS_HISTORY_CHAIN_FILE_H

#include "base/json.h"
#include "history/digest.h"

#define RLHF__CHAIN_FILE "chain.jsonl"

enum rlhf__chain_kind {
    RLHF__CHAIN_BEGIN,
    RLHF__CHAIN_SETTINGS,
    RLHF__CHAIN_PHASE,
    RLHF__CHAIN_CHECKPOINT
};

struct rlhf__chain_line {
    int64_t phase;
    enum rlhf__chain_kind kind;
    int32_t number;  // line number in the file, from 1
    json_t *value;   // the line's JSON object
    size_t from, to; // the bytes of the line in the file, without the newline
};

// Zero-initialize; release with rlhf__chain_file_finish.
struct rlhf__chain_file {
    char path[RLHF__PATH_CAP];
    struct rlhf__buf text;
    struct rlhf__chain_line *line; // [n]
    size_t n;
};
void rlhf__chain_file_finish(struct rlhf__chain_file *);

// Read DIR/chain.jsonl. If the file is missing, n is 0. Errors: RLHF_E_INVALID (a line of an
// unknown kind; the message has the line's number), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__chain_file_read(const char *dir, struct rlhf__chain_file *,
                                  struct rlhf__error *err);

// Drop all lines but the first n from memory. [any]
void rlhf__chain_file_cut(struct rlhf__chain_file *, size_t n);

// Check line i against the lines before it. The head or seal and the phase must follow from those
// lines, and the text must be exactly what the program would write. Returns NULL if the line is
// right, otherwise a sentence that tells what is wrong with it. [any]
const char *rlhf__chain_file_wrong(const struct rlhf__chain_file *, size_t i);

// Returns the last line of this kind whose phase is at most `phase`, or NULL. [any]
const struct rlhf__chain_line *rlhf__chain_file_last(const struct rlhf__chain_file *,
                                                     enum rlhf__chain_kind, int64_t phase);

// Returns the line of this kind whose phase is exactly `phase`, or NULL. [any]
const struct rlhf__chain_line *rlhf__chain_file_at(const struct rlhf__chain_file *,
                                                   enum rlhf__chain_kind, int64_t phase);

// Returns the head of the chain after the first n lines, or "". [any]
const char *rlhf__chain_file_head(const struct rlhf__chain_file *, size_t n);

// Write a seal to `seal`. It is the digest of two pieces of text: the bytes that `before` has
// hashed, and the first n bytes of `line`, which end before the member "seal". [any]
void rlhf__chain_seal(struct rlhf__sha256 before, const char *line, size_t n, char seal[RLHF__HEX]);

#endif
