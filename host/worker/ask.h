// ask.h: sends one request to a worker, or to several at once, and waits until they have answered,
// have ended, or have taken too long. Serves their calls while it waits (upcall.h).
#ifndef RLHF_HOST_WORKER_ASK_H
#define RLHF_HOST_WORKER_ASK_H

#include "worker/process.h"
#include "worker/upcall.h"

// A worker, the receiver of its calls, and its answer. Release with rlhf__asked_finish.
struct rlhf__asked {
    struct rlhf__worker *worker;
    struct rlhf__ear *ear;
    struct rlhf__buf frame;   // the request: begun and filled by the caller
    struct rlhf__buf answer;  // bytes of the answer
    struct rlhf__wire result; // after status and text
    char *why;                // the text; "" = none
    uint64_t most;            // bytes that the answer may have; 0 = RLHF__MOST_ANSWER
    rlhf_status status;       // of the plugin; meaningless when the worker failed
    int32_t answered;         // 1: the answer is there, -1: the worker is gone
    int32_t filled;           // 1: the calls sent before the answer have been received
    int32_t done;             // 1: answered and its calls done, or worker->failed says why not
    int32_t may_be_left;      // 1: end the worker if the user asks to stop and it does not answer
    int32_t reserved;
};

// Bytes of an answer that brings no state.
#define RLHF__MOST_ANSWER ((uint64_t)16 << 20)

// Send each request and wait for all answers, at most timeout_s seconds (0 = for ever). Time in
// which the host's models and tokenizers work for the workers does not count.
//
// A worker that sends malformed messages, or too many, is ended at once. If the user asks to stop,
// a worker with may_be_left is ended one second later; its code is then RLHF_E_CANCELLED. limit:
// the setting that a message about the time names ("rewards.timeout_s"). Returns RLHF_OK if all
// have answered, else the code of a worker that failed: look at each of them. [main]
rlhf_status rlhf__ask(struct rlhf__asked *a, size_t n, double timeout_s, const char *limit);

void rlhf__asked_finish(struct rlhf__asked *a); // accepts a zeroed one [main]

#endif
