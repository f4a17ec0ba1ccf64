// process.h: a worker as the host has it: a process that is no part of the host (fork and exec of
// the program itself, warden.h), its sockets, what it prints, and the files in memory that batches
// lie in (batch.h).
//
// What comes from it is not trusted. It can be ended at any time, with all that it started.
#ifndef RLHF_HOST_WORKER_PROCESS_H
#define RLHF_HOST_WORKER_PROCESS_H

#include "supervise/cgroup.h"
#include "supervise/warden.h"
#include "worker/batch.h"
#include "worker/wire.h"

// One of its sockets, neither end of which ever waits on this side.
struct rlhf__channel {
    int fd, ended;
    struct rlhf__buf in, out;
    size_t taken, sent; // of in, of out
    uint64_t most;      // bytes that a frame may have; 0 = RLHF__WIRE_MAX
};

struct rlhf__worker {
    struct rlhf__ward ward; // pid 0: it has ended and failed.text says how
    int noise;              // what it prints, -1 = at its end
    struct rlhf__channel ask, call;
    struct rlhf__buf printed; // the line that is not at its end yet
    int input_fd, output_fd;
    char *input, *output;
    uint64_t input_bytes, output_bytes;
    uint64_t most;       // bytes that a frame of it may have; 0 = RLHF__WIRE_MAX
    uint64_t memory_mib; // that its group may have
    struct rlhf__cgroup group;
    struct rlhf__error failed; // code 0: it has not failed
};

// Start one. program: its file (rlhf__dirs.program). network: 1 = it may use it. memory_mib: that
// it may have with all that it starts, where a control group can be made; 0 = no limit. Errors:
// RLHF_E_IO with a sentence. [main]
rlhf_status rlhf__worker_start(const char *program, int network, uint64_t memory_mib,
                               struct rlhf__worker **out, struct rlhf__error *err);

// End it, with all that it started, and free *w. NULL allowed. [main]
void rlhf__worker_end(struct rlhf__worker *w);

// It failed, as err says: ended, and err is kept in w->failed, if it had not failed before. [main]
void rlhf__worker_fail(struct rlhf__worker *w, rlhf_status code, const char *why);

// It is gone: ended, and w->failed says by what ("its worker was ended by signal 11 (Segmentation
// fault)"). One that has closed its sockets and lives on is waited for: it may be about to end.
// [main]
void rlhf__worker_gone(struct rlhf__worker *w);

// Room for a batch; what was there before may be lost. [main]
rlhf_status rlhf__worker_room(struct rlhf__worker *w, uint64_t input, uint64_t output,
                              struct rlhf__error *err);

struct rlhf__batch_note *rlhf__worker_note(const struct rlhf__worker *w); // [any]

// Send what waits to be sent; take in what has come, at most a few MiB. What fails sets ended.
// [main]
void rlhf__channel_flush(struct rlhf__channel *c);
void rlhf__channel_fill(struct rlhf__channel *c);
// The frame at the front, taken out with rlhf__channel_pop: 1, 0 = none yet, -1 = not a frame, -2 =
// one of more than c->most bytes. What was taken out is gone when the channel is filled. [main]
int rlhf__channel_front(const struct rlhf__channel *c, struct rlhf__wire *out, size_t *bytes);
void rlhf__channel_pop(struct rlhf__channel *c, size_t bytes);

#endif
