// dataset.h: rows of text from .jsonl, .jsonl.gz, .txt and .txt.gz files, held in memory.
//
// It does not tokenize rows (data/token_rows.h does) or shuffle them (data/order.h does).
#ifndef RLHF_FORMATS_DATA_DATASET_H
#define RLHF_FORMATS_DATA_DATASET_H

#include "data/lines.h"
#include "values/message.h"

// The fields that a row may have. A line of a text file is a row with a single field, which the
// option `line_field` selects.
enum rlhf__field {
    RLHF__FIELD_TEXT = 0,
    RLHF__FIELD_PROMPT = 1,
    RLHF__FIELD_CHOSEN = 2,
    RLHF__FIELD_REJECTED = 3,
    RLHF__N_TEXT_FIELDS = 4,
    RLHF__FIELD_LABEL = 4,
    // The list "messages". As TRL allows, this list may also be the value of the text field or of
    // the prompt field.
    RLHF__FIELD_MESSAGES = 5,
    // "prompt" and "completion" instead of a text: two strings or, in TRL's form, two lists of
    // messages. This field may be in `want`, but not in `need`. The text of the completion is
    // stored as RLHF__FIELD_CHOSEN.
    RLHF__FIELD_COMPLETION = 6
};

// The bit of a field in rlhf__dataset_opts.need and .want.
#define RLHF__FIELD_BIT(field) (1u << (field))

struct rlhf__dataset_opts {
    const char *const *paths; // [n_paths]; the files are read in this order as one sequence of rows
    size_t n_paths;
    const char *setting; // for messages: the setting that gave the paths; NULL = unknown
    uint32_t need;       // bits of the fields that every row must have
    // Bits of the fields that are read if a row has them. Other fields are ignored. If the text is
    // in `need` and the messages are in `want`, or the reverse, a row must have one of these two.
    uint32_t want;
    const char *name[5]; // JSON key of each field; NULL = text, prompt, chosen, rejected, label
    int32_t line_field;  // the field that holds the lines of a .txt file; 0 = TEXT
    int32_t keep_meta;   // 1: keep each row's JSON text
    // 1: the path "-" means standard input. If its first line begins like a JSON object with a key,
    // the input is JSON Lines. Otherwise each line is a row.
    int32_t standard_input;
    int32_t prompts;           // 1: messages are prompts, so the last message must be the user's
    const char *const *labels; // [n_labels] names for string labels; NULL = only integers
    int32_t n_labels;          // > 0: a label must be in [0, n_labels)
    int64_t skip, limit; // leave out the first `skip` rows; keep at most `limit` rows, 0 = all
    const struct rlhf__loading *loading; // NULL = default memory limit, no cancellation
};

// A row. Everything is borrowed from the dataset. If the row lacks a field, that field's `ptr` is
// NULL and its `len` is 0.
struct rlhf__data_row {
    rlhf_str text[RLHF__N_TEXT_FIELDS]; // decoded UTF-8; the index is an enum rlhf__field
    rlhf_str meta;                      // with keep_meta: the row as JSON text
    rlhf_str messages;                  // the list of messages as JSON text; it has been checked
    int32_t label;                      // -1 = none
    int32_t file;                       // index of the row's file in paths
    int32_t asked; // > 0: the first `asked` messages are a prompt, and the rest are a completion
    int64_t line;  // line number in the file, from 1
};

struct rlhf__dataset; // opaque

// Read all rows. In a .txt or .txt.gz file each line is a row; any other file is JSON Lines. Files
// that begin with gzip's magic number are decompressed, whatever their name. Blank lines are
// skipped. A UTF-8 byte-order mark and CRLF are allowed. The caller owns *out; free it with
// rlhf__dataset_close.
//
// The error messages have the file and the line. Errors: RLHF_E_IO, RLHF_E_NOMEM, RLHF_E_CANCELLED,
// and RLHF_E_INVALID for a missing file or field, a wrong type, an unknown label, invalid JSON or
// UTF-8, truncated gzip, a dataset without rows, or more memory than opts->loading allows. [main]
rlhf_status rlhf__dataset_open(const struct rlhf__dataset_opts *opts, struct rlhf__dataset **out,
                               struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__dataset_close(struct rlhf__dataset *ds);

// Bytes of memory that the rows use. [any]
uint64_t rlhf__dataset_bytes(const struct rlhf__dataset *ds);

// Number of rows, at least 1. [any]
int64_t rlhf__dataset_rows(const struct rlhf__dataset *ds);

// Number of rows that consist of messages. [any]
int64_t rlhf__dataset_chats(const struct rlhf__dataset *ds);

// 1 if the last file was read as lines of text. [any]
int rlhf__dataset_is_lines(const struct rlhf__dataset *ds);

// Row i, 0 <= i < rows. The strings live as long as the dataset. [any]
struct rlhf__data_row rlhf__dataset_row(const struct rlhf__dataset *ds, int64_t i);

// 1 if any row is a prompt and a completion. [any]
int rlhf__dataset_completions(const struct rlhf__dataset *ds);

// 1 if the row is a prompt and a completion, both of them texts. [any]
int rlhf__data_row_is_pair(const struct rlhf__data_row *row);

// Get the messages of a row that consists of messages. Their contents are borrowed from *held. The
// caller releases *held with json_decref after the last use. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__data_row_messages(const struct rlhf__data_row *row, json_t **held,
                                    struct rlhf__messages *out, struct rlhf__error *err);

// The path of file i as the options gave it. [any]
const char *rlhf__dataset_path(const struct rlhf__dataset *ds, int32_t i);

// Write "FILE:LINE" of row i into out[cap], for messages. [any]
void rlhf__dataset_where(const struct rlhf__dataset *ds, int64_t i, char *out, size_t cap);

// Largest label + 1; 0 without labels. [any]
int32_t rlhf__dataset_labels(const struct rlhf__dataset *ds);

#endif
