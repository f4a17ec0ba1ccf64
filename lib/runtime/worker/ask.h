// ask.h: sends a request to one worker or several, and waits until each has answered, has
// terminated, or has taken too long. While it waits, it serves the workers' calls (upcall.h).
#ifndef RLHF_HOST_WORKER_ASK_H
#define RLHF_HOST_WORKER_ASK_H

#include "wire/process.h"
#include "worker/upcall.h"

// A worker, the request to it, its answer, and the object that serves its calls. Release with
// rlhf__asked_finish.
struct rlhf__asked {
    struct rlhf__worker *worker;
    struct rlhf__ear *ear;
    struct rlhf__buf frame;   // the request, which the caller begins and fills
    struct rlhf__buf answer;  // bytes of the answer
    struct rlhf__wire result; // the part of the answer after status and text
    char *why;                // the text; "" = none
    uint64_t most;            // maximum bytes of an answer; 0 = RLHF__MOST_ANSWER
    rlhf_status status;       // the plugin's status; not set if the worker failed
    int32_t answered;         // 1: has answered; -1: has terminated without an answer
    int32_t filled;           // 1: all calls sent before the answer have been received
    int32_t done;        // 1: has answered and its calls are done, or has failed (worker->failed)
    int32_t may_be_left; // 1: may be terminated if the user asks to stop and it does not answer
};

// Maximum bytes of an answer without state.
#define RLHF__MOST_ANSWER ((uint64_t)16 << 20)

// Send each request and wait for all answers, for at most timeout_s seconds (0 = no limit). Time
// that the host's models and tokenizers spend on workers' calls does not count.
//
// A worker that sends malformed messages, or too many, is terminated at once. If the user asks to
// stop, a worker whose may_be_left is 1 is terminated after one second, with the code
// RLHF_E_CANCELLED. `limit` is the setting that the timeout message names ("rewards.timeout_s").
// Returns RLHF_OK if all have answered, otherwise the code of one worker that failed; others may
// have failed too. [main]
rlhf_status rlhf__ask(struct rlhf__asked *a, size_t n, double timeout_s, const char *limit);

void rlhf__asked_finish(struct rlhf__asked *a); // accepts a zeroed struct [main]

#endif
