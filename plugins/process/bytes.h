// bytes.h: a growing buffer in the host's memory, and functions that write JSON to it.
#ifndef RLHF_PLUGINS_PROCESS_BYTES_H
#define RLHF_PLUGINS_PROCESS_BYTES_H

#include <rlhf/host.h>

// Initialize with {.host = host}. If memory runs out, nothing more is added and `full` is set.
struct rlhf__bytes {
    const rlhf_host *host;
    char *data; // [len], NULL while empty
    size_t len, cap;
    int32_t full, reserved;
};

void rlhf__bytes_finish(struct rlhf__bytes *); // accepts a zeroed one [any]

void rlhf__bytes_add(struct rlhf__bytes *, const void *data, size_t n); // [any]
void rlhf__bytes_text(struct rlhf__bytes *, const char *text);          // [any]
void rlhf__bytes_number(struct rlhf__bytes *, int64_t number);          // [any]

// Append any bytes as a quoted JSON string. Invalid UTF-8 becomes U+FFFD, one for each maximal
// subpart of a character (Unicode, section 3.9). Anything that a reader may treat as the end of a
// line is escaped: controls, U+0085, U+2028, U+2029. [any]
void rlhf__bytes_string(struct rlhf__bytes *, rlhf_str text);

// Append JSON text unchanged, but on one line; "null" if it is empty. [any]
void rlhf__bytes_json(struct rlhf__bytes *, rlhf_str json);

// Append "[1,2,3]". [any]
void rlhf__bytes_list(struct rlhf__bytes *, const int32_t *numbers, size_t n);

#endif
