// wire.h: what host and worker send each other: frames over two local sockets.
//
// A frame is u32 kind, u32 zero, u64 length, then that many bytes; integers are little-endian, a
// text is u64 length and its bytes. Whoever reads does not trust who wrote: every length is held
// against what is there.
#ifndef RLHF_HOST_WORKER_WIRE_H
#define RLHF_HOST_WORKER_WIRE_H

#include "base/buf.h"

// The descriptors that a worker is started with, beside 0 to 2 and its warden's own (ward.h).
enum {
    RLHF__WORKER_ASK = 3,   // socket: the host's requests and their answers
    RLHF__WORKER_CALL = 4,  // socket: what the plugin calls of the host
    RLHF__WORKER_INPUT = 5, // memfd: the rows of a batch (batch.h)
    RLHF__WORKER_OUTPUT = 6 // memfd: what the plugin writes of them
};

// Requests of the host. All are answered by RLHF__ASK_ANSWER: i32 status, text, then what a success
// brings.
enum rlhf__ask {
    RLHF__ASK_ANSWER = 0,
    RLHF__ASK_OPEN = 1,       // text path, text id, text asker -> plugin
    RLHF__ASK_WHY_UNUSED = 2, // text key, text options -> u32 1 and text, or u32 0
    RLHF__ASK_CREATE = 3,     // u64 seed, text owner, u32 services, limits, text options
    RLHF__ASK_CHECK_ROW = 4,  // text row
    RLHF__ASK_SCORE = 5, // u64 bytes of input, u64 of output; -> u32 1 and text state, or u32 0
    RLHF__ASK_SAVE = 6,  // -> text state
    RLHF__ASK_LOAD = 7,  // u32 version, text state -> u64 bytes read
    RLHF__ASK_DESTROY = 8,
    // The first: u64 memory_mib, f64 timeout_s -> text confinement. No code of the plugin has run.
    RLHF__ASK_CONFINE = 9
};

// What the plugin calls. Up to RLHF__CALL_METRIC nothing comes back, else i32 status and what a
// success brings.
enum rlhf__wire_call {
    RLHF__CALL_LOG = 1,               // i32 level, text
    RLHF__CALL_FAIL = 2,              // i32 code, text
    RLHF__CALL_METRIC = 3,            // text name, f64 value, f64 weight, i32 combine
    RLHF__CALL_CLASSIFIER_OPEN = 4,   // u32 given, text path -> u32 handle, u32 labels, texts
    RLHF__CALL_CLASSIFIER_LOGITS = 5, // u32 handle, u32 n, texts -> text of floats
    RLHF__CALL_TOKENIZER_OPEN = 6,    // u32 given, text path -> u32 handle, u32 vocabulary
    RLHF__CALL_TOKENIZER_ENCODE = 7,  // u32 handle, u32 cap, text -> u32 n, text of ids
    RLHF__CALL_TOKENIZER_DECODE = 8,  // u32 handle, u64 cap, text of ids -> u64 len, text
    RLHF__CALL_MODEL_OPEN = 9,        // u32 given, text path -> u32 handle
    // u32 handle, i32 pooling, u32 token, texts ids, offset, prompt_len -> texts of floats
    RLHF__CALL_MODEL_SCORE = 10,
    RLHF__CALL_CLOSE = 11 // u32 handle ->
};

// A frame is at most this long: what is more is not a worker's.
#define RLHF__WIRE_MAX ((uint64_t)1 << 30)

// Bytes that a line, a failure's text or a metric's name may have; longer ones are cut before they
// are sent.
enum { RLHF__LONGEST_TEXT = 1 << 16 };

// ---- writing ----

void rlhf__wire_u32(struct rlhf__buf *b, uint32_t v);                     // [any]
void rlhf__wire_u64(struct rlhf__buf *b, uint64_t v);                     // [any]
void rlhf__wire_f64(struct rlhf__buf *b, double v);                       // [any]
void rlhf__wire_text(struct rlhf__buf *b, const void *bytes, uint64_t n); // [any]
void rlhf__wire_puts(struct rlhf__buf *b, const char *text);              // NULL as "" [any]

// Begin a frame in the empty buffer b; end it when its bytes are in. [any]
void rlhf__wire_begin(struct rlhf__buf *b, uint32_t kind);
void rlhf__wire_end(struct rlhf__buf *b);

// ---- reading ----

// What is left of a frame's bytes; bad is 1 once something was not there, and all reads give 0.
struct rlhf__wire {
    const uint8_t *at, *end;
    uint32_t kind, bad;
};

uint32_t rlhf__wire_get_u32(struct rlhf__wire *w); // [any]
uint64_t rlhf__wire_get_u64(struct rlhf__wire *w); // [any]
double rlhf__wire_get_f64(struct rlhf__wire *w);   // [any]
// Borrowed from the frame. [any]
rlhf_str rlhf__wire_get_text(struct rlhf__wire *w);
// A text of whole items of that size, aligned or not; *n = how many. [any]
const void *rlhf__wire_get_items(struct rlhf__wire *w, size_t size, size_t *n);

// The frame at byte `at` of b: 1 and *out, which borrows from b, with *bytes = its whole length; 0
// when it is incomplete; -1 when it is malformed; -2 when it claims more than `most` bytes. [any]
int rlhf__wire_front(const struct rlhf__buf *b, size_t at, uint64_t most, struct rlhf__wire *out,
                     size_t *bytes);

// ---- by waiting (the worker's side) ----

// Send the whole frame; 0, or -1 when the other side is gone. [any]
int rlhf__wire_send(int fd, const struct rlhf__buf *frame);
// The next frame into b (emptied first) and *out; 0, or -1 at the end or when it is no frame. [any]
int rlhf__wire_receive(int fd, struct rlhf__buf *b, struct rlhf__wire *out);

#endif
