// rlhf/draft/collective.h: DRAFT, not in plugin contract 1.0: it may change in any minor.
// Lets the processes of one run ("ranks") send bytes to each other through a library such as MPI.
// There is one plugin for each library (collective_openmpi.so, collective_mpich.so). The host opens
// such a plugin if a launcher such as mpirun started the host.
//
// A collective moves bytes and never adds numbers; the host does the sums. The reason is that the
// bits of a sum depend on its order, and no library promises an order for all sizes and numbers of
// ranks.
//
// All ranks make the same calls in the same order, with sizes that match (except as described at
// exchange()). A rank whose own work has failed still makes the next call, and reports the failure
// in the bytes that it sends.
//
// The plugin may call the library in a thread. This thread then sends bytes, and notices a missing
// rank, while the host computes.
#ifndef RLHF_DRAFT_COLLECTIVE_H
#define RLHF_DRAFT_COLLECTIVE_H

#include "../base.h"

#define RLHF_COLLECTIVE_MAJOR 0 // v0: major and minor must match exactly
#define RLHF_COLLECTIVE_MINOR 1

// The most exchanges that may be under way at a time, and the most bytes that gather() takes from a
// rank.
#define RLHF_COLLECTIVE_DEPTH  8
#define RLHF_COLLECTIVE_GATHER ((uint64_t)1 << 20)

// Memory to send to one rank, or to receive from it. `at` may be NULL if bytes is 0. Frozen.
typedef struct rlhf_block {
    void *at;
    uint64_t bytes;
} rlhf_block;

enum rlhf_collective_flag {
    // exchange() takes device memory, as addresses that are valid on the stream of
    // rlhf_collective_options, and queues the exchange on that stream. Work that is queued on the
    // stream after exchange() runs after the bytes have arrived. So wait() does not wait for the
    // exchange but only reports failures. gather() still takes host memory. Without this flag,
    // exchange() takes host memory.
    RLHF_COLLECTIVE_DEVICE = 1
};

typedef struct rlhf_collective {
    uint32_t size, flags;  // flags: bits of enum rlhf_collective_flag
    int32_t rank, ranks;   // this process, from 0, and the number of processes
    int32_t local, locals; // the same, counting only ranks on this machine
    // name: "mpi"; detail: "Open MPI 4.1.4, 4 ranks on 2 machines". Valid until destroy().
    const char *name, *detail;
    void *ctx; // first argument of every function

    // Begin to send send[k] to rank k, and to receive recv[k] from it. The arrays have `ranks`
    // entries and are borrowed until the call returns. The memory that the entries point to is
    // borrowed until the ticket has been waited for. If one rank sends a block, the receiving rank
    // must expect the same size. The entry for this rank itself is ignored. Only the two ranks of a
    // pair must agree on the order of their exchanges, so a rank that exchanges no bytes with any
    // other rank may skip the call. Tickets increase and are never 0. If RLHF_COLLECTIVE_DEPTH
    // exchanges are under way, the call waits for the oldest. Returns the errors of `wait`, or
    // RLHF_E_NOMEM. [main]
    rlhf_status (*exchange)(void *ctx, const rlhf_block *send, const rlhf_block *recv,
                            uint64_t *ticket);
    // Waits until this exchange and all earlier ones have ended. Returns RLHF_E_DEVICE if a rank
    // has ended or no longer answers, or if no byte arrived for timeout_s. After this error, only
    // `abort` and `destroy` may be called. [main]
    rlhf_status (*wait)(void *ctx, uint64_t ticket);
    // Gather from all ranks: send the `bytes` bytes at `own` to every rank, and write the bytes of
    // all ranks to `all`, in the order of ranks. `own` and `all` are host memory. `bytes` must be
    // the same on all ranks, and at most RLHF_COLLECTIVE_GATHER. Waits for all earlier exchanges.
    // Returns the errors of `wait`. [main]
    rlhf_status (*gather)(void *ctx, const void *own, uint64_t bytes, void *all);
    // End all ranks because they can no longer agree. This process exits with the status `status`;
    // the launcher ends the others. Does not return. [any]
    void (*abort)(void *ctx, int32_t status);
    // Returns why the last call failed, as one sentence. The sentence names the rank and its
    // machine if they are known. Returns "" if no call has failed. Borrowed until the next call.
    // [main]
    const char *(*last_error)(void *ctx);
} rlhf_collective;

typedef struct rlhf_collective_options {
    uint32_t size;
    int32_t device; // the device whose memory exchange() takes; -1 = host memory
    // wait() fails if a rank for which it waits sends no byte for this many seconds; 0 = no limit.
    // If a rank ends, wait() fails even without a limit.
    double timeout_s;
    // Called if a rank has ended or stopped answering: `why` is the sentence of last_error(). The
    // host prints it and calls abort(). If `lost` is NULL, only wait() reports this. [any]
    void (*lost)(void *lost_ctx, const char *why);
    void *lost_ctx;
    // An open collective of the same ranks, which this collective may use for small messages; NULL
    // = none.
    const rlhf_collective *base;
    void *stream; // of the device, as its own library knows it; NULL without one
} rlhf_collective_options;

// What the function rlhf_collective_v0 of a collective_*.so returns; static const data.
typedef struct rlhf_collectives {
    uint32_t size, major, minor, reserved; // RLHF_COLLECTIVE_MAJOR and RLHF_COLLECTIVE_MINOR
    const char *name, *summary;            // "openmpi"; one line
    // Returns how many processes the launcher has started. Returns 0 if this process was not
    // started by a launcher that this library understands. Returns -1 if it was, but the launcher
    // does not give the number. Reads only environment variables. [main]
    int32_t (*started)(void);
    // Join the other ranks. If this fails, err[err_cap] receives one sentence. May be called once
    // in a process. [main]
    rlhf_status (*create)(const rlhf_collective_options *, rlhf_collective **out, char *err,
                          uint64_t err_cap);
    // Waits until all other ranks leave too, and then frees the collective. After a failed call,
    // does not wait. NULL allowed. [main]
    void (*destroy)(rlhf_collective *);
} rlhf_collectives;

typedef const rlhf_collectives *(*rlhf_collectives_fn)(void);
#define RLHF_COLLECTIVES_SYMBOL "rlhf_collective_v0"
RLHF_EXPORT const rlhf_collectives *rlhf_collective_v0(void);

#endif
