// mpi.h: the parts of the collective over MPI.
//
// One thread makes all calls of MPI (MPI_THREAD_FUNNELED). It moves bytes while the host computes,
// sends the heartbeat, and notices if a rank stops answering. The host's thread hands jobs to this
// thread and waits for them. One lock protects the shared state.
#ifndef RLHF_PLUGINS_COLLECTIVES_MPI_H
#define RLHF_PLUGINS_COLLECTIVES_MPI_H

#include <rlhf/draft/collective.h>

#include <mpi.h>
#include <pthread.h>

#define MPI_SILENCE_S 10.0 // seconds without a byte after which a rank counts as dead
// If a thread has not run for this many seconds, all ranks were probably suspended and resumed. In
// this case, the silence of another rank is not a failure.
#define MPI_ASLEEP_S 3.0

enum { HOST_CAP = 64, TAG_DATA = 1, TAG_BEAT = 2, IN = 0, OUT = 1 };

// One exchange: the requests to receive and to send, one request for each part of at most PART
// bytes.
struct job {
    uint64_t ticket;
    MPI_Request *request; // [n]
    struct part *part;    // [n]
    int n, left;          // left: number of requests that have not ended
};

struct part {
    void *at;
    int bytes;
    int rank; // the rank that sends or receives the part
    int sends, ended;
};

struct heart {
    MPI_Request request[2]; // IN and OUT; MPI_REQUEST_NULL: no request is active
    char byte_in, byte_out;
    char unused[6];
    double heard, beaten; // time of the last byte received, and of the last byte sent
    double awake;         // time of the last check by this thread
};

// What the thread does. In the first two steps and the last one, it waits in a call of MPI that has
// no limit of time. So the host's thread watches these steps.
enum mpi_step { MPI_STARTING, MPI_MEETING, MPI_READY, MPI_LEAVING };

struct mpi {
    rlhf_collective table;
    rlhf_collective_options options;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t asked; // tells the thread that there is a job, or that it must leave
    pthread_cond_t done;  // tells the host: a job has ended, or the thread has begun or failed
    struct job job[RLHF_COLLECTIVE_DEPTH]; // a ring buffer
    uint32_t first, n;
    uint32_t posted; // number of jobs whose requests were passed to MPI: the first ones of the ring
    int32_t leaves, failed, told, aborts, status, created;
    int32_t left;         // 1: the thread has ended its work
    _Atomic int32_t step; // enum mpi_step

    uint64_t issued, finished; // tickets
    double moved;              // time at which the last request of a job ended
    struct heart heart;
    rlhf_block *block;      // [2 * ranks] for gather()
    char (*host)[HOST_CAP]; // [ranks]
    int *index;             // memory for MPI_Testsome, for the requests of the longest job
    MPI_Status *statuses;   // memory for MPI_Testsome, too
    int room, unused;
    char error[512], detail[256];
};

// Begin MPI and fill in ranks, hosts and detail. After a failure, m->failed is 1 and m->error has
// the reason. Only the thread calls this function, without the lock.
void mpi_begin(struct mpi *m);

// The thread's function; `arg` is the struct mpi.
void *mpi_thread(void *arg);

// Terminates all ranks with `status`, after the launcher has read what this process has written.
// Only the thread calls this function, which does not return.
_Noreturn void mpi_end(int status);

// Records a failure: its message, and the status `st`. After the host has been notified (`told`),
// every further call by the host returns `st`. Call with the lock held.
__attribute__((format(printf, 3, 4))) void mpi_fail(struct mpi *m, rlhf_status st, const char *fmt,
                                                    ...);

// Start the sends and receives that the heartbeat needs now. If this fails, calls mpi_fail and
// returns 0. Call with the lock held.
int mpi_beat(struct mpi *m);

// Cancel the active requests of the heartbeat. Call before MPI_Finalize.
void mpi_beat_end(struct mpi *m);

#endif
