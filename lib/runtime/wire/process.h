// process.h: a worker as the host sees it. It is a separate process (fork and exec of the program
// itself, supervise/warden.h) with sockets, printed output, and the memory files of batches
// (batch.h).
//
// Messages from a worker are not trusted. The host can terminate a worker at any time, together
// with all processes that the worker started.
#ifndef RLHF_HOST_WIRE_PROCESS_H
#define RLHF_HOST_WIRE_PROCESS_H

#include "supervise/cgroup.h"
#include "supervise/warden.h"
#include "wire/batch.h"
#include "wire/wire.h"

// One socket of a worker. The host never blocks on it.
struct rlhf__channel {
    int fd, ended;
    struct rlhf__buf in, out;
    size_t taken, sent; // taken: bytes of `in` consumed; sent: bytes of `out` sent
    uint64_t most;      // maximum bytes of a frame; 0 = RLHF__WIRE_MAX
};

struct rlhf__worker {
    struct rlhf__ward ward; // pid 0: the worker has ended; failed.text has the cause
    int noise;              // its printed output; -1 = closed
    struct rlhf__channel ask, call;
    struct rlhf__buf printed; // the incomplete last line
    int input_fd, output_fd;
    char *input, *output;
    uint64_t input_bytes, output_bytes;
    uint64_t most;       // maximum bytes of a frame that the worker sends; 0 = RLHF__WIRE_MAX
    uint64_t memory_mib; // limit of its control group
    struct rlhf__cgroup group;
    struct rlhf__error failed; // code 0: none
};

// Start a worker. `program` is the file to execute (rlhf__dirs.program). If `network` is 1, the
// worker may use the network. If `writes` is not NULL, it may write in this directory. `memory_mib`
// limits the total memory of the worker and everything that it starts (0 = no limit); the limit is
// enforced only if a control group can be made. Errors: RLHF_E_IO with a sentence. [main]
rlhf_status rlhf__worker_start(const char *program, int network, const char *writes,
                               uint64_t memory_mib, struct rlhf__worker **out,
                               struct rlhf__error *err);

// Terminate a worker and all processes that it started, and free `w`, which may be NULL. [main]
void rlhf__worker_end(struct rlhf__worker *w);

// Terminate a worker that has failed. w->failed keeps the reason of its first failure. [main]
void rlhf__worker_fail(struct rlhf__worker *w, rlhf_status code, const char *why);

// Call this when a worker has terminated or closed its sockets. If the worker is still alive, first
// waits a little, because it may be about to exit. Then terminates it and sets w->failed to the
// cause ("its worker was ended by signal 11 (Segmentation fault)"). [main]
void rlhf__worker_gone(struct rlhf__worker *w);

// Enlarge the memory files for a batch if needed; earlier contents may be lost. [main]
rlhf_status rlhf__worker_room(struct rlhf__worker *w, uint64_t input, uint64_t output,
                              struct rlhf__error *err);

struct rlhf__batch_note *rlhf__worker_note(const struct rlhf__worker *w); // [any]

// Send pending bytes; receive bytes that have arrived, at most a few MiB at a time. A failure sets
// `ended`. [main]
void rlhf__channel_flush(struct rlhf__channel *c);
void rlhf__channel_fill(struct rlhf__channel *c);
// Look at the first received frame; rlhf__channel_pop removes it. Returns 1 if a frame has arrived,
// 0 if not, -1 if it is malformed, -2 if it is longer than c->most. *out is invalid after the
// channel is filled again. [main]
int rlhf__channel_front(const struct rlhf__channel *c, struct rlhf__wire *out, size_t *bytes);
void rlhf__channel_pop(struct rlhf__channel *c, size_t bytes);

#endif
