// dataset.h: rows of text from .jsonl, .jsonl.gz, .txt and .txt.gz files, held in memory.
//
// Rows are not tokenized (data/token_rows.h does this) and not shuffled (data/order.h).
#ifndef RLHF_HOST_DATA_DATASET_H
#define RLHF_HOST_DATA_DATASET_H

#include "chat/message.h"
#include "data/lines.h"

// The fields that a row may have. In a text file, each line is the value of `line_field`.
enum rlhf__field {
    RLHF__FIELD_TEXT = 0,
    RLHF__FIELD_PROMPT = 1,
    RLHF__FIELD_CHOSEN = 2,
    RLHF__FIELD_REJECTED = 3,
    RLHF__N_TEXT_FIELDS = 4,
    RLHF__FIELD_LABEL = 4,
    // The list "messages", or a list in place of the text or the prompt (TRL's form).
    RLHF__FIELD_MESSAGES = 5,
    // "prompt" and "completion" instead of a text: two texts, or two lists of messages (TRL's
    // form). Allowed in `want`, never in `need`. The completion's text is stored as
    // RLHF__FIELD_CHOSEN.
    RLHF__FIELD_COMPLETION = 6
};

// Bit of a field in rlhf__dataset_opts.need and .want.
#define RLHF__FIELD_BIT(field) (1u << (field))

struct rlhf__dataset_opts {
    const char *const *paths; // [n_paths] read in this order as one sequence of rows
    size_t n_paths;
    const char *setting; // the setting that gave the paths, for messages; NULL = unknown
    uint32_t need;       // bits: a row without the field is an error
    // Bits: fields that are read if present. Fields that are in neither `need` nor `want` are
    // ignored. If `need` has the text and `want` the messages, or the reverse, a row must have one
    // of the two.
    uint32_t want;
    const char *name[5]; // JSON key of each field; NULL = text, prompt, chosen, rejected, label
    int32_t line_field;  // the field that a .txt file's lines are; 0 = TEXT
    int32_t keep_meta;   // 1: keep each row's JSON text
    // 1: the path "-" means standard input. If the first line of standard input begins like a JSON
    // object with a key, the input is JSON Lines; otherwise each line is a row.
    int32_t standard_input;
    int32_t prompts;           // 1: messages are prompts, which end with a user's turn
    const char *const *labels; // [n_labels] names for string labels; NULL = only integers
    int32_t n_labels;          // > 0: a label must be in [0, n_labels)
    int64_t skip, limit;       // leave out the first `skip` rows; keep at most `limit`, 0 = all
    const struct rlhf__loading *loading; // NULL = the default bound, never stopped
};

// Borrowed from the dataset; ptr NULL and len 0 if the row lacks the field.
struct rlhf__data_row {
    rlhf_str text[RLHF__N_TEXT_FIELDS]; // by enum rlhf__field, decoded UTF-8
    rlhf_str meta;                      // the row as JSON text, with keep_meta
    rlhf_str messages;                  // the list as JSON text, checked
    int32_t label;                      // -1 = none
    int32_t file;                       // index into paths
    int32_t asked; // > 0: the first `asked` messages are a prompt, the rest a completion
    int64_t line;  // line number in the file, from 1
};

struct rlhf__dataset; // opaque

// Read all rows. A .txt or .txt.gz file has one row on each line; any other file is JSON Lines.
// Files with the magic number of gzip are decompressed, whatever their name. Blank lines are
// skipped; a UTF-8 byte-order mark and CRLF are allowed. Caller owns *out; free with
// rlhf__dataset_close.
//
// Errors name the file and the line: RLHF_E_IO, RLHF_E_NOMEM, RLHF_E_CANCELLED, and RLHF_E_INVALID
// for a missing file or field, a wrong type, an unknown label, invalid JSON or UTF-8, truncated
// gzip, no rows at all, or more memory than opts->loading allows. [main]
rlhf_status rlhf__dataset_open(const struct rlhf__dataset_opts *opts, struct rlhf__dataset **out,
                               struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__dataset_close(struct rlhf__dataset *ds);

// Memory that the rows take. [any]
uint64_t rlhf__dataset_bytes(const struct rlhf__dataset *ds);

// Number of rows, at least 1. [any]
int64_t rlhf__dataset_rows(const struct rlhf__dataset *ds);

// Number of rows made of messages. [any]
int64_t rlhf__dataset_chats(const struct rlhf__dataset *ds);

// 1 when the last file was read as lines of text. [any]
int rlhf__dataset_is_lines(const struct rlhf__dataset *ds);

// Row i, 0 <= i < rows. The strings live as long as the dataset. [any]
struct rlhf__data_row rlhf__dataset_row(const struct rlhf__dataset *ds, int64_t i);

// Whether a row is a prompt and a completion. [any]
int rlhf__dataset_completions(const struct rlhf__dataset *ds);

// Whether row i is a prompt and a completion, both texts. [any]
int rlhf__data_row_is_pair(const struct rlhf__data_row *row);

// The messages of a row that consists of messages. Their contents are borrowed from *held, which
// the caller releases with json_decref after the last use. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__data_row_messages(const struct rlhf__data_row *row, json_t **held,
                                    struct rlhf__messages *out, struct rlhf__error *err);

// Path of file i as it was given. [any]
const char *rlhf__dataset_path(const struct rlhf__dataset *ds, int32_t i);

// "FILE:LINE" of row i, for messages, into out[cap]. [any]
void rlhf__dataset_where(const struct rlhf__dataset *ds, int64_t i, char *out, size_t cap);

// Largest label + 1; 0 without labels. [any]
int32_t rlhf__dataset_labels(const struct rlhf__dataset *ds);

#endif
