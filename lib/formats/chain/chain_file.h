// chain_file.h: chain.jsonl of a run: its lines, and whether they follow from each other.
//
// There are four kinds of lines. `begin` has the settings, inputs and versions that the results
// depend on. A phase has the digests of its rows, rewards and metrics. Both have the head of the
// chain after them. `settings` has the settings that the results do not depend on. `checkpoint` has
// the digests of a checkpoint's files, and a seal: the digest of all bytes of the file up to the
// seal. So the head depends neither on the machine nor on when checkpoints were written.
#ifndef RLHF_FORMATS_CHAIN_FILE_H
#define RLHF_FORMATS_CHAIN_FILE_H

#include "base/json.h"
#include "chain/digest.h"

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
    int32_t number;  // of the line, from 1
    json_t *value;   // the object
    size_t from, to; // its bytes in the file, without the newline
};

// Zero-initialise; release with rlhf__chain_file_finish.
struct rlhf__chain_file {
    char path[RLHF__PATH_CAP];
    struct rlhf__buf text;
    struct rlhf__chain_line *line; // [n]
    size_t n;
};
void rlhf__chain_file_finish(struct rlhf__chain_file *);

// Read DIR/chain.jsonl. For a missing file, n is 0. Errors: RLHF_E_INVALID (a line that is not one
// of these kinds, with its number), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__chain_file_read(const char *dir, struct rlhf__chain_file *,
                                  struct rlhf__error *err);

// Check line i against the lines before it: its head or seal, its phase, and that it is written as
// the program writes it. Returns NULL, or what is wrong with it. [any]
const char *rlhf__chain_file_wrong(const struct rlhf__chain_file *, size_t i);

// Returns the last line of this kind up to this phase, or NULL. [any]
const struct rlhf__chain_line *rlhf__chain_file_last(const struct rlhf__chain_file *,
                                                     enum rlhf__chain_kind, int64_t phase);

// Returns the line of this kind of exactly this phase, or NULL. [any]
const struct rlhf__chain_line *rlhf__chain_file_at(const struct rlhf__chain_file *,
                                                   enum rlhf__chain_kind, int64_t phase);

// Returns the head of the chain after the first n lines, or "". [any]
const char *rlhf__chain_file_head(const struct rlhf__chain_file *, size_t n);

// Write the digest of `n` bytes of text and of `line`, without the closing brace, to `seal`. [any]
void rlhf__chain_seal(struct rlhf__sha256 before, const char *line, size_t n, char seal[RLHF__HEX]);

// The text of a member of an object, "" if it is missing. Borrowed. [any]
const char *rlhf__chain_text(const json_t *object, const char *key);

#endif
