// process.h: a worker as the host sees it: a separate process (fork and exec of the program itself,
// supervise/warden.h), its sockets, its output, and the memory files of batches (batch.h).
//
// Its messages are not trusted. It can be ended at any time, with all processes that it started.
#ifndef RLHF_HOST_WORKER_PROCESS_H
#define RLHF_HOST_WORKER_PROCESS_H

#include "supervise/cgroup.h"
#include "supervise/warden.h"
#include "worker/batch.h"
#include "worker/wire.h"

// One of its sockets; the host never blocks on it.
struct rlhf__channel {
    int fd, ended;
    struct rlhf__buf in, out;
    size_t taken, sent; // of in, of out
    uint64_t most;      // bytes that a frame may have; 0 = RLHF__WIRE_MAX
};

struct rlhf__worker {
    struct rlhf__ward ward; // pid 0: it has ended and failed.text says how
    int noise;              // its output, -1 = closed
    struct rlhf__channel ask, call;
    struct rlhf__buf printed; // the incomplete last line
    int input_fd, output_fd;
    char *input, *output;
    uint64_t input_bytes, output_bytes;
    uint64_t most;       // bytes that a frame of it may have; 0 = RLHF__WIRE_MAX
    uint64_t memory_mib; // that its group may have
    struct rlhf__cgroup group;
    struct rlhf__error failed; // code 0: it has not failed
};

// Start a worker. program: the file to execute (rlhf__dirs.program). network: 1 = it may use the
// network. memory_mib: memory that it and everything it starts may use together, enforced if a
// control group can be made; 0 = no limit. Errors: RLHF_E_IO with a sentence. [main]
rlhf_status rlhf__worker_start(const char *program, int network, uint64_t memory_mib,
                               struct rlhf__worker **out, struct rlhf__error *err);

// End it, with all that it started, and free *w. NULL allowed. [main]
void rlhf__worker_end(struct rlhf__worker *w);

// The worker has failed: end it, and keep the reason in w->failed unless it had failed before.
// [main]
void rlhf__worker_fail(struct rlhf__worker *w, rlhf_status code, const char *why);

// The worker has gone: end it, and set w->failed to the cause ("its worker was ended by signal 11
// (Segmentation fault)"). If it has closed its sockets but still lives, wait a little: it may be
// about to end. [main]
void rlhf__worker_gone(struct rlhf__worker *w);

// Make room for a batch; earlier contents may be lost. [main]
rlhf_status rlhf__worker_room(struct rlhf__worker *w, uint64_t input, uint64_t output,
                              struct rlhf__error *err);

struct rlhf__batch_note *rlhf__worker_note(const struct rlhf__worker *w); // [any]

// Send pending bytes; receive bytes that have arrived, at most a few MiB. A failure sets ended.
// [main]
void rlhf__channel_flush(struct rlhf__channel *c);
void rlhf__channel_fill(struct rlhf__channel *c);
// Look at the first frame received; rlhf__channel_pop removes it. Returns 1 if there is one, 0 =
// none yet, -1 = not a frame, -2 = longer than c->most. *out is invalid after the channel is filled
// again. [main]
int rlhf__channel_front(const struct rlhf__channel *c, struct rlhf__wire *out, size_t *bytes);
void rlhf__channel_pop(struct rlhf__channel *c, size_t bytes);

#endif
