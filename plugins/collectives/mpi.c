// mpi.c: the collective over the system's MPI. It uses only functions that MPI 3.1 has. It is built
// once for each MPI library on the machine, because the libraries' binary interfaces differ.
// RLHF_MPI_NAME is "openmpi" or "mpich".
#include "mpi.h"
#include "mpi_clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PART ((uint64_t)1 << 30) // maximal size of a message, because MPI counts in int

#define START_S 60.0 // seconds that ranks wait for all to begin, unless parallel.timeout_s is set

static struct mpi self; // a process can begin MPI only once

// ---- the launcher ----

// Returns the number in an environment variable, or 0 if the variable is unset.
static int32_t number(const char *variable) {
    const char *text = getenv(variable);
    const long n = text ? strtol(text, NULL, 10) : 0;
    return n > 0 && n < INT32_MAX ? (int32_t)n : 0;
}

static int32_t started(void) {
    if (strcmp(RLHF_MPI_NAME, "openmpi") == 0) {
        if (number("OMPI_COMM_WORLD_SIZE")) return number("OMPI_COMM_WORLD_SIZE");
        if (!getenv("PMIX_RANK")) return 0;
    } else {
        if (number("PMI_SIZE")) return number("PMI_SIZE");
        if (!getenv("PMI_RANK")) return 0;
    }
    const int32_t steps = number("SLURM_STEP_NUM_TASKS");
    return steps ? steps : -1;
}

// ---- what the host calls ----

static const char *last_error(void *ctx) { return ((struct mpi *)ctx)->error; }

static int count_parts(const rlhf_block *b, int32_t ranks, int32_t own) {
    int n = 0;
    for (int32_t k = 0; k < ranks; k++)
        if (k != own) n += (int)((b[k].bytes + PART - 1) / PART);
    return n;
}

static void put_parts(struct job *j, const rlhf_block *b, int32_t k, int sends) {
    for (uint64_t from = 0; from < b->bytes; from += PART) {
        const uint64_t left = b->bytes - from;
        j->request[j->n] = MPI_REQUEST_NULL;
        j->part[j->n++] = (struct part){.at = (char *)b->at + from,
                                        .bytes = (int)(left < PART ? left : PART),
                                        .rank = k,
                                        .sends = sends};
    }
}

static int more_room(struct mpi *m, int n) {
    if (n <= m->room) return 1;
    int *index = realloc(m->index, (size_t)n * sizeof *index);
    if (index) m->index = index;
    MPI_Status *statuses = realloc(m->statuses, (size_t)n * sizeof *statuses);
    if (statuses) m->statuses = statuses;
    if (!index || !statuses) return 0;
    m->room = n;
    return 1;
}

// Lists the parts of an exchange. Each rank sends to the next rank first, then to the one after it,
// and so on, so that not all ranks send to the same rank at the same time.
static rlhf_status make_job(struct mpi *m, const rlhf_block *send, const rlhf_block *recv,
                            struct job *j) {
    const int32_t ranks = m->table.ranks, own = m->table.rank;
    const int n = count_parts(send, ranks, own) + count_parts(recv, ranks, own);
    j->request = calloc((size_t)n + 1, sizeof *j->request);
    j->part = calloc((size_t)n + 1, sizeof *j->part);
    if (!j->request || !j->part || !more_room(m, n + 1)) {
        free(j->request);
        free(j->part);
        return RLHF_E_NOMEM;
    }
    for (int32_t d = 1; d < ranks; d++)
        put_parts(j, &recv[(own + ranks - d) % ranks], (own + ranks - d) % ranks, 0);
    for (int32_t d = 1; d < ranks; d++)
        put_parts(j, &send[(own + d) % ranks], (own + d) % ranks, 1);
    j->left = j->n;
    return RLHF_OK;
}

static rlhf_status exchange(void *ctx, const rlhf_block *send, const rlhf_block *recv,
                            uint64_t *ticket) {
    struct mpi *m = ctx;
    struct job j = {0};
    pthread_mutex_lock(&m->lock);
    while (m->n == RLHF_COLLECTIVE_DEPTH && !m->told)
        pthread_cond_wait(&m->done, &m->lock);
    rlhf_status st = m->told ? m->status : make_job(m, send, recv, &j);
    if (st == RLHF_OK) {
        j.ticket = *ticket = ++m->issued;
        m->job[(m->first + m->n++) % RLHF_COLLECTIVE_DEPTH] = j;
        pthread_cond_signal(&m->asked);
    } else if (!m->told) {
        snprintf(m->error, sizeof m->error, "out of memory for an exchange of messages");
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

static rlhf_status wait_for(void *ctx, uint64_t ticket) {
    struct mpi *m = ctx;
    pthread_mutex_lock(&m->lock);
    while (m->finished < ticket && !m->told)
        pthread_cond_wait(&m->done, &m->lock);
    const rlhf_status st = m->finished < ticket ? m->status : RLHF_OK;
    pthread_mutex_unlock(&m->lock);
    return st;
}

static rlhf_status gather(void *ctx, const void *own, uint64_t bytes, void *all) {
    struct mpi *m = ctx;
    const int32_t ranks = m->table.ranks;
    char *mine = (char *)all + (uint64_t)m->table.rank * bytes;
    uint64_t ticket;
    memmove(mine, own, bytes);
    for (int32_t k = 0; k < ranks; k++) {
        m->block[k] = (rlhf_block){mine, bytes};
        m->block[ranks + k] = (rlhf_block){(char *)all + (uint64_t)k * bytes, bytes};
    }
    const rlhf_status st = exchange(ctx, m->block, m->block + ranks, &ticket);
    return st == RLHF_OK ? wait_for(ctx, ticket) : st;
}

// Terminates all ranks. If MPI's thread cannot terminate the other ranks, the launcher does so
// after this process has exited.
static void end(void *ctx, int32_t status) {
    struct mpi *m = ctx;
    if (pthread_equal(pthread_self(), m->thread)) mpi_end(status);
    pthread_mutex_lock(&m->lock);
    m->aborts = status ? status : 1;
    pthread_cond_broadcast(&m->asked);
    pthread_mutex_unlock(&m->lock);
    sleep(3);
    _exit(status);
}

// ---- begin and end ----

// Starts the thread. The thread receives only the signals that its own faults raise, such as
// SIGSEGV. The host's control thread handles all other signals.
static int start_thread(struct mpi *m) {
    sigset_t most, before;
    sigfillset(&most);
    sigdelset(&most, SIGSEGV);
    sigdelset(&most, SIGBUS);
    sigdelset(&most, SIGFPE);
    sigdelset(&most, SIGILL);
    sigdelset(&most, SIGABRT);
    pthread_sigmask(SIG_BLOCK, &most, &before);
    const int bad = pthread_create(&m->thread, NULL, mpi_thread, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !bad;
}

// Wait a quarter of a second for news from the thread. Returns the seconds that this took. If it
// took much longer, all ranks were probably suspended and resumed, and the result is 0. Call with
// the lock held.
static double wait_for_thread(struct mpi *m) {
    const double from = mpi_seconds();
    mpi_wait_a_moment(&m->done, &m->lock);
    const double waited = mpi_seconds() - from;
    return waited < MPI_ASLEEP_S ? waited : 0;
}

// Wait until the thread has met the other ranks. MPI_Init waits for ranks that have not yet begun.
// After it, all ranks answer at once, unless one was stopped.
static rlhf_status wait_for_ranks(struct mpi *m, char *err, uint64_t err_cap) {
    const double limit = m->options.timeout_s > 0 ? m->options.timeout_s : START_S;
    double starting = 0, meeting = 0;
    pthread_mutex_lock(&m->lock);
    while (m->step < MPI_READY && starting < limit && meeting < MPI_SILENCE_S) {
        double *const in = m->step == MPI_STARTING ? &starting : &meeting;
        *in += wait_for_thread(m);
    }
    rlhf_status st = m->step < MPI_READY ? RLHF_E_DEVICE : m->failed ? m->status : RLHF_OK;
    if (m->step < MPI_READY && meeting < MPI_SILENCE_S)
        snprintf(err, err_cap,
                 "not all processes have begun within %.0f s: one was stopped, or is slow to start "
                 "(parallel.timeout_s sets how long the others wait)",
                 limit);
    else if (m->step < MPI_READY)
        snprintf(err, err_cap, "a process has not answered for %.0f s: it was stopped or is gone",
                 MPI_SILENCE_S);
    else if (st != RLHF_OK)
        snprintf(err, err_cap, "%s", m->error);
    pthread_mutex_unlock(&m->lock);
    return st;
}

static rlhf_status create(const rlhf_collective_options *o, rlhf_collective **out, char *err,
                          uint64_t err_cap) {
    struct mpi *m = &self;
    if (m->created) {
        snprintf(err, err_cap, "MPI can begin only once in a process");
        return RLHF_E_INTERNAL;
    }
    m->created = 1;
    if (rlhf_copy_in(&m->options, sizeof m->options, o,
                     RLHF_SIZE_TO(rlhf_collective_options, stream)) < 0) {
        snprintf(err, err_cap, "its options have a size that it does not know");
        return RLHF_E_UNSUPPORTED;
    }
    m->table = (rlhf_collective){.size = sizeof m->table,
                                 .name = RLHF_MPI_NAME,
                                 .detail = m->detail,
                                 .ctx = m,
                                 .exchange = exchange,
                                 .wait = wait_for,
                                 .gather = gather,
                                 .abort = end,
                                 .last_error = last_error};
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->asked, NULL);
    pthread_cond_init(&m->done, NULL);
    if (!start_thread(m)) {
        snprintf(err, err_cap, "a thread cannot be started");
        return RLHF_E_NOMEM;
    }
    const rlhf_status st = wait_for_ranks(m, err, err_cap);
    if (st == RLHF_OK) *out = &m->table;
    return st;
}

static void destroy(rlhf_collective *c) {
    struct mpi *m = &self;
    if (!c) return;
    pthread_mutex_lock(&m->lock);
    m->leaves = 1;
    pthread_cond_broadcast(&m->asked);
    while (m->step != MPI_LEAVING && !m->left)
        pthread_cond_wait(&m->done, &m->lock);
    for (double waited = 0; !m->left && waited < MPI_SILENCE_S;)
        waited += wait_for_thread(m);
    const int left = m->left;
    pthread_mutex_unlock(&m->lock);
    // MPI_Finalize waits for a rank that was stopped. The work is done, so this process ends
    // without it, and the launcher then ends the others.
    if (!left) return;
    pthread_join(m->thread, NULL);
    free(m->host);
    free(m->block);
    free(m->index);
    free(m->statuses);
    m->host = NULL;
    m->block = NULL;
    m->index = NULL;
    m->statuses = NULL;
}

static const rlhf_collectives own = {.size = sizeof own,
                                     .major = RLHF_COLLECTIVE_MAJOR,
                                     .minor = RLHF_COLLECTIVE_MINOR,
                                     .name = RLHF_MPI_NAME,
                                     .summary = "messages through the system's MPI",
                                     .started = started,
                                     .create = create,
                                     .destroy = destroy};

const rlhf_collectives *rlhf_collective_v0(void) { return &own; }
