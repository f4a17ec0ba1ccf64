// bytes.h: a growing buffer in the host's memory, and functions that write JSON to it.
#ifndef RLHF_PLUGINS_PROCESS_BYTES_H
#define RLHF_PLUGINS_PROCESS_BYTES_H

#include <rlhf/host.h>

// Initialize with {.host = host}. If memory runs out, `full` is set, and later additions do
// nothing.
struct rlhf__bytes {
    const rlhf_host *host;
    char *data; // [len], NULL while empty
    size_t len, cap;
    int32_t full;
};

void rlhf__bytes_finish(struct rlhf__bytes *); // accepts a zeroed struct [any]

void rlhf__bytes_add(struct rlhf__bytes *, const void *data, size_t n); // [any]
void rlhf__bytes_text(struct rlhf__bytes *, const char *text);          // [any]
void rlhf__bytes_number(struct rlhf__bytes *, int64_t number);          // [any]

// Append the shortest decimal that reads back as `v`, which must be finite. [any]
void rlhf__bytes_double(struct rlhf__bytes *, double v);

// Append any bytes as a JSON string in quotes. Invalid UTF-8 becomes U+FFFD, one for each maximal
// subpart of a character (Unicode, section 3.9). Characters that a reader may treat as line ends
// are escaped: controls, U+0085, U+2028, U+2029. [any]
void rlhf__bytes_string(struct rlhf__bytes *, rlhf_str text);

// Append JSON text, changed only so that it is on one line. If it is empty, append "null". [any]
void rlhf__bytes_json(struct rlhf__bytes *, rlhf_str json);

// Append a list of numbers: "[1,2,3]". [any]
void rlhf__bytes_list(struct rlhf__bytes *, const int32_t *numbers, size_t n);

#endif
