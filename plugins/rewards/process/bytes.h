// bytes.h: bytes that grow, in the host's memory, and JSON written into them by hand.
#ifndef RLHF_PLUGINS_PROCESS_BYTES_H
#define RLHF_PLUGINS_PROCESS_BYTES_H

#include <rlhf/host.h>

// Start with {.host = host}. What does not fit into memory is not added, and `full` says so.
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

// A JSON string with its quotes, of any bytes: what is no UTF-8 becomes U+FFFD as decoders replace
// it (one for the longest beginning of a character: Unicode, section 3.9), and what somebody may
// take for the end of a line is escaped (controls, U+0085, U+2028, U+2029). [any]
void rlhf__bytes_string(struct rlhf__bytes *, rlhf_str text);

// JSON text as it is, on one line; "null" where there is none. [any]
void rlhf__bytes_json(struct rlhf__bytes *, rlhf_str json);

// "[1,2,3]". [any]
void rlhf__bytes_list(struct rlhf__bytes *, const int32_t *numbers, size_t n);

#endif
