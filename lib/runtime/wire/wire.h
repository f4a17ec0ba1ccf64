// wire.h: the protocol between host and worker: frames over two local sockets.
//
// A frame is u32 kind, u32 zero, u64 length, then that many bytes. Integers are little-endian. A
// text is its u64 length and its bytes. The reader does not trust the writer, so it checks every
// length against the bytes that have arrived.
#ifndef RLHF_HOST_WIRE_WIRE_H
#define RLHF_HOST_WIRE_WIRE_H

#include "base/buf.h"

// Descriptors that a worker starts with, in addition to 0 to 2 and those of its warden (warden.h).
enum {
    RLHF__WORKER_ASK = 3,   // socket: the host's requests and their answers
    RLHF__WORKER_CALL = 4,  // socket: the plugin's calls
    RLHF__WORKER_INPUT = 5, // memfd: the rows of a batch (batch.h)
    RLHF__WORKER_OUTPUT = 6 // memfd: the plugin's output for them
};

// Requests of the host. The worker answers each with RLHF__ASK_ANSWER: i32 status, a text and,
// after success, the results that follow "->" below.
enum rlhf__ask {
    RLHF__ASK_ANSWER = 0,
    RLHF__ASK_OPEN = 1,       // text path, text id, text asker, u32 kind -> plugin
    RLHF__ASK_WHY_UNUSED = 2, // text key, text options -> u32 1 and text, or u32 0
    // u64 seed, text owner, u32 services, limits, text options -> nothing, except for an
    // environment: u32 1 and text tools, or u32 0 and an empty text
    RLHF__ASK_CREATE = 3,
    RLHF__ASK_CHECK_ROW = 4, // u32 held_out, u64 index, texts meta and prompt
    RLHF__ASK_SCORE = 5,     // u64 bytes of input, u64 of output; -> u32 1 and text state, or u32 0
    RLHF__ASK_SAVE = 6,      // -> text state
    RLHF__ASK_LOAD = 7,      // u32 version, text state -> u64 bytes read
    RLHF__ASK_DESTROY = 8,
    // Always the first request, sent before any code of the plugin runs: u64 memory_mib, f64
    // timeout_s -> text confinement.
    RLHF__ASK_CONFINE = 9,
    // One call of an environment's function for n episodes:
    //   u32 function (enum rlhf__played), text of u32 places to close before it, u64 phase, u32
    //   wait_ms, u32 n,
    //   then for each episode: u32 place of its state, u64 number, u64 seed, u32 turn, u32 end,
    //   texts meta and text, u32 calls, then for each call: texts name and arguments
    // -> for each episode: f64 reward, u32 end, u32 verdict, u32 failed, u32 later;
    //    u32 messages, then for each message: u32 entry, u32 role, text;
    //    u32 metrics, then for each metric: u32 entry, text name, f64 value, f64 weight,
    //    u32 combine
    RLHF__ASK_PLAY = 10,
    // One call of a sink: u32 function (enum rlhf__sunk), then its argument as sink_calls.c writes
    // it. -> for begin(): u64 from_phase
    RLHF__ASK_SINK = 11
};

// Functions of a sink.
enum rlhf__sunk { RLHF__SUNK_BEGIN = 0, RLHF__SUNK_PHASE = 1, RLHF__SUNK_END = 2 };

// Functions of an environment. A worker keeps the states of open episodes at places, which are
// numbers below RLHF__MOST_PLACES. The host assigns a place when it first calls the environment for
// an episode.
enum rlhf__played {
    RLHF__PLAYED_RESET = 0,
    RLHF__PLAYED_STEP = 1,
    RLHF__PLAYED_FINISH = 2,
    RLHF__PLAYED_POLL = 3
};
enum { RLHF__MOST_PLACES = 1 << 20 };

// Calls of the plugin. Those up to RLHF__CALL_METRIC get no reply. The reply to the others is an
// i32 status and, after success, the results that follow "->" below.
enum rlhf__wire_call {
    RLHF__CALL_LOG = 1,               // i32 level, text
    RLHF__CALL_FAIL = 2,              // i32 code, text
    RLHF__CALL_METRIC = 3,            // text name, f64 value, f64 weight, i32 combine
    RLHF__CALL_CLASSIFIER_OPEN = 4,   // u32 given, text path -> u32 handle, u32 labels, texts
    RLHF__CALL_CLASSIFIER_LOGITS = 5, // u32 handle, u32 n, texts -> text of floats
    RLHF__CALL_TOKENIZER_OPEN = 6,    // u32 given, text path -> u32 handle, u32 vocabulary
    // the handle of a tokenizer or of a language model:
    RLHF__CALL_ENCODE = 7,     // u32 handle, u32 cap, text -> u32 n, text of ids
    RLHF__CALL_DECODE = 8,     // u32 handle, u64 cap, text of ids -> u64 len, text
    RLHF__CALL_MODEL_OPEN = 9, // u32 given, text path -> u32 handle
    // u32 handle, i32 pooling, u32 token, texts ids, offset, prompt_len -> texts of floats
    RLHF__CALL_MODEL_SCORE = 10,
    // u32 given, text path, i32 longest, i32 slots
    // -> u32 handle, i32 n_vocab, i32 longest, i32 templated, i32 bos, text of end tokens
    RLHF__CALL_LANGUAGE_OPEN = 11,
    // u32 handle, u32 cap, text, text of messages -> u32 n, text of ids
    RLHF__CALL_LANGUAGE_PROMPT = 12,
    // u32 handle, texts ids, offset, prompt_len -> text of floats
    RLHF__CALL_LANGUAGE_SCORE = 13,
    // u32 handle, texts ids, offset, prompt_len, i32 max_new, i32 top_k, f64 temperature, f64
    // top_p, f64 min_p, u32 flags, u32 1 if the generator is given, u64 seed, u64 stream, u64
    // counter, text of stop tokens, u32 1 if log-probs are wanted
    // -> texts ids, len, stopped, log-probs
    RLHF__CALL_LANGUAGE_GENERATE = 14,
    RLHF__CALL_CLOSE = 15 // u32 handle ->
};

// Maximum bytes of a frame.
#define RLHF__WIRE_MAX ((uint64_t)1 << 30)

// The maximum size in bytes of the text of a log line, a failure or a metric's name. Longer texts
// are cut before they are sent.
enum { RLHF__LONGEST_TEXT = 1 << 16 };

// ---- writing ----

void rlhf__wire_u32(struct rlhf__buf *b, uint32_t v);                     // [any]
void rlhf__wire_u64(struct rlhf__buf *b, uint64_t v);                     // [any]
void rlhf__wire_f64(struct rlhf__buf *b, double v);                       // [any]
void rlhf__wire_text(struct rlhf__buf *b, const void *bytes, uint64_t n); // [any]
void rlhf__wire_puts(struct rlhf__buf *b, const char *text);              // NULL becomes "" [any]

// Begin a frame in the empty buffer `b`. End it after its contents have been written. [any]
void rlhf__wire_begin(struct rlhf__buf *b, uint32_t kind);
void rlhf__wire_end(struct rlhf__buf *b);

// ---- reading ----

// The unread bytes of a frame. After a read past the end, `bad` is 1 and all reads return 0.
struct rlhf__wire {
    const uint8_t *at, *end;
    uint32_t kind, bad;
};

uint32_t rlhf__wire_get_u32(struct rlhf__wire *w); // [any]
uint64_t rlhf__wire_get_u64(struct rlhf__wire *w); // [any]
double rlhf__wire_get_f64(struct rlhf__wire *w);   // [any]
// Read a text, borrowed from the frame. [any]
rlhf_str rlhf__wire_get_text(struct rlhf__wire *w);
// Read a text that is an array of items of `size` bytes, possibly unaligned. *n is the number of
// items. [any]
const void *rlhf__wire_get_items(struct rlhf__wire *w, size_t size, size_t *n);

// Look at the frame at byte `at` of `b`. Returns 1 if it is complete: *out then borrows from `b`,
// and *bytes is its whole length. Returns 0 if it is incomplete, -1 if it is malformed, -2 if its
// length is above `most`. [any]
int rlhf__wire_front(const struct rlhf__buf *b, size_t at, uint64_t most, struct rlhf__wire *out,
                     size_t *bytes);

// ---- blocking (the worker's side) ----

// Send the whole frame. Returns 0, or -1 if sending fails or frame->bad is set. [any]
int rlhf__wire_send(int fd, const struct rlhf__buf *frame);
// Empty `b`, then receive the next frame into `b` and *out. Returns 0, or -1 if receiving fails,
// the frame is malformed or too long, or memory runs out. [any]
int rlhf__wire_receive(int fd, struct rlhf__buf *b, struct rlhf__wire *out);

#endif
