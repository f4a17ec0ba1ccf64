// mpi_thread.c: the thread that calls MPI; see mpi.h.
#include "mpi.h"
#include "mpi_clock.h"
#include "mpi_output.h"
#include "mpi_slices.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define YIELDS 50 // yields of the core before the first nap

void mpi_fail(struct mpi *m, rlhf_status st, const char *fmt, ...) {
    va_list args;
    if (m->failed) return;
    va_start(args, fmt);
    vsnprintf(m->error, sizeof m->error, fmt, args);
    va_end(args);
    m->failed = 1;
    m->status = st;
}

// ---- the beginning ----

// Writes the name and the version of MPI. The strings that MPI returns are "Open MPI v4.1.4,
// package: ..." and "MPICH Version:\t4.0.2\n...".
static void put_version(char out[80]) {
    char all[MPI_MAX_LIBRARY_VERSION_STRING] = "", *at;
    int n;
    MPI_Get_library_version(all, &n);
    all[strcspn(all, ",\n")] = '\0';
    if ((at = strstr(all, " Version:")) != NULL) memmove(at, at + 9, strlen(at + 9) + 1);
    for (at = all; *at; at++)
        if ((unsigned char)*at < ' ') *at = ' ';
    snprintf(out, 80, "%.79s", all);
}

static void find_hosts(struct mpi *m) {
    char own[HOST_CAP] = "";
    rlhf_collective *t = &m->table;
    MPI_Comm here;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &t->local);
    MPI_Comm_size(here, &t->locals);
    MPI_Comm_free(&here);
    gethostname(own, sizeof own - 1);
    MPI_Allgather(own, HOST_CAP, MPI_CHAR, m->host, HOST_CAP, MPI_CHAR, MPI_COMM_WORLD);
}

void mpi_begin(struct mpi *m) {
    char version[80];
    int provided = 0, machines = 0;
    rlhf_collective *t = &m->table;
    // Open MPI must not handle fatal signals, because the host handles them and reports which
    // plugin was running.
    setenv("OMPI_MCA_opal_signal", "", 1);
    // Over TCP, Open MPI would emulate remote writes. On a link of 1 Gbit/s, emulated writes took
    // 1.2 to 1.3 times as long as sends. A value that the user has set is kept.
    setenv("OMPI_MCA_btl_tcp_flags", "send", 0);
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
        mpi_fail(m, RLHF_E_DEVICE, "MPI_Init failed");
        return;
    }
    m->step = MPI_MEETING;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t->ranks);
    m->host = calloc((size_t)t->ranks, sizeof *m->host);
    m->block = calloc(2 * (size_t)t->ranks, sizeof *m->block);
    if (!m->host || !m->block) {
        mpi_fail(m, RLHF_E_NOMEM, "out of memory for %d ranks", t->ranks);
        return;
    }
    m->heart.request[IN] = m->heart.request[OUT] = MPI_REQUEST_NULL;
    find_hosts(m);
    const int first = t->local == 0;
    MPI_Allreduce(&first, &machines, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    put_version(version);
    snprintf(m->detail, sizeof m->detail, "%s, %d rank%s on %d machine%s", version, t->ranks,
             t->ranks == 1 ? "" : "s", machines, machines == 1 ? "" : "s");
}

// ---- jobs ----

static struct job *job_at(struct mpi *m, uint32_t k) {
    return &m->job[(m->first + k) % RLHF_COLLECTIVE_DEPTH];
}

static void post(struct mpi *m) {
    for (; m->posted < m->n; m->posted++) {
        struct job *j = job_at(m, m->posted);
        for (int i = 0; i < j->n; i++) {
            const struct part *p = &j->part[i];
            if (p->sends)
                MPI_Isend(p->at, p->bytes, MPI_BYTE, p->rank, TAG_DATA, MPI_COMM_WORLD,
                          &j->request[i]);
            else
                MPI_Irecv(p->at, p->bytes, MPI_BYTE, p->rank, TAG_DATA, MPI_COMM_WORLD,
                          &j->request[i]);
        }
        m->moved = mpi_seconds();
    }
}

// Records a failure if a received message has an unexpected length, which shows that the ranks do
// not make the same calls.
static void check_part(struct mpi *m, const struct part *p, MPI_Status *s) {
    int got = p->bytes;
    if (!p->sends) MPI_Get_count(s, MPI_BYTE, &got);
    if (got != p->bytes)
        mpi_fail(m, RLHF_E_INTERNAL,
                 "the ranks are out of step: rank %d on %s sent %d bytes, and rank %d on %s "
                 "expects %d",
                 p->rank, m->host[p->rank], got, m->table.rank, m->host[m->table.rank], p->bytes);
}

static void say_error(struct mpi *m, const struct job *j, int got) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    for (int i = 0; i < got && i < m->room; i++) {
        const struct part *p = &j->part[m->index[i]];
        if (m->statuses[i].MPI_ERROR == MPI_SUCCESS) continue;
        MPI_Error_string(m->statuses[i].MPI_ERROR, text, &n);
        mpi_fail(m, RLHF_E_DEVICE, "rank %d on %s: %.300s", p->rank, m->host[p->rank], text);
        return;
    }
    mpi_fail(m, RLHF_E_DEVICE, "a message of MPI failed");
}

static void poll_job(struct mpi *m, struct job *j) {
    int got = 0;
    const int st = MPI_Testsome(j->n, j->request, &got, m->index, m->statuses);
    if (got == MPI_UNDEFINED) got = 0;
    if (st != MPI_SUCCESS) {
        say_error(m, j, got);
        return;
    }
    for (int i = 0; i < got; i++) {
        j->part[m->index[i]].ended = 1;
        check_part(m, &j->part[m->index[i]], &m->statuses[i]);
    }
    j->left -= got;
    if (got > 0) m->moved = mpi_seconds();
}

// Returns 1 if any bytes were sent or received.
static int poll_jobs(struct mpi *m) {
    int ended = 0;
    const double before = m->moved;
    for (uint32_t k = 0; k < m->posted && !m->failed; k++)
        if (job_at(m, k)->left > 0) poll_job(m, job_at(m, k));
    while (m->posted > 0 && !m->failed && job_at(m, 0)->left == 0) {
        struct job *j = job_at(m, 0);
        m->finished = j->ticket;
        free(j->request);
        free(j->part);
        *j = (struct job){0};
        m->first = (m->first + 1) % RLHF_COLLECTIVE_DEPTH;
        m->n--;
        m->posted--;
        ended = 1;
    }
    if (ended) pthread_cond_broadcast(&m->done);
    return ended || m->moved > before;
}

// Fail if nothing was sent or received for timeout_s.
static void check_time(struct mpi *m) {
    const double limit = m->options.timeout_s;
    if (limit <= 0 || m->posted == 0 || m->failed) return;
    if (mpi_seconds() - m->moved <= limit) return;
    const struct job *j = job_at(m, 0);
    for (int i = 0; i < j->n; i++)
        if (!j->part[i].ended && !j->part[i].sends) {
            const int r = j->part[i].rank;
            mpi_fail(m, RLHF_E_DEVICE,
                     "rank %d on %s lives, but the others have waited for it for %.0f s", r,
                     m->host[r], limit);
            return;
        }
    mpi_fail(m, RLHF_E_DEVICE, "nothing was sent or received for %.0f s", limit);
}

// ---- the loop ----

// A launcher may handle the abort before it reads what this rank has written, and then drop it.
// This was seen with MPICH on a busy machine. So first wait until the launcher has read the
// sentence that names the reason. The wait is shorter than a turn in tell().
void mpi_end(int status) {
    mpi_output_read(STDERR_FILENO, 0.8);
    mpi_output_read(STDOUT_FILENO, 0.1);
    MPI_Abort(MPI_COMM_WORLD, status);
    _exit(status);
}

// Leave the core to other threads: first yield a few times, then sleep. Each sleep takes an eighth
// of the time waited so far, within limits. So a sleep lengthens the wait only a little, and a long
// wait takes little processor time. Yield only a few times: on a busy core, a yield may give away
// far more time than a sleep.
static void rest(struct mpi *m, unsigned idle, double waited) {
    const double least = 5e-6, most = 500e-6;
    double s = waited / 8;
    if (s < least) s = least;
    if (s > most) s = most;
    const struct timespec nap = {0, (long)(s * 1e9)};
    pthread_mutex_unlock(&m->lock);
    if (idle < YIELDS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
    pthread_mutex_lock(&m->lock);
}

// After a failure: notify the host, then wait until the host ends the process. Several ranks may
// notice the same failure. Rank r first waits r seconds, at most 8. So the host of the lowest rank
// is notified first, and ends the other ranks before they report the failure too.
static void tell(struct mpi *m) {
    if (m->options.lost) {
        const struct timespec turn = {m->table.rank < 8 ? m->table.rank : 8, 0};
        pthread_mutex_unlock(&m->lock);
        nanosleep(&turn, NULL);
        m->options.lost(m->options.lost_ctx, m->error);
        pthread_mutex_lock(&m->lock);
    }
    m->told = 1;
    pthread_cond_broadcast(&m->done);
    while (!m->leaves && !m->aborts)
        pthread_cond_wait(&m->asked, &m->lock);
    if (m->aborts) mpi_end(m->aborts);
}

// Leaves together with the other ranks. Until all ranks have asked to leave, the heartbeat
// continues.
static void leave(struct mpi *m) {
    const double from = mpi_seconds();
    MPI_Request all;
    int here = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (unsigned idle = 0; !here; idle++) {
        MPI_Test(&all, &here, MPI_STATUS_IGNORE);
        if (!here && m->table.ranks > 1 && !mpi_beat(m)) {
            tell(m);
            return;
        }
        if (!here) rest(m, idle, mpi_seconds() - from);
        if (m->aborts) mpi_end(m->aborts);
    }
    mpi_beat_end(m);
    m->step = MPI_LEAVING;
    pthread_cond_broadcast(&m->done);
    pthread_mutex_unlock(&m->lock); // destroy() watches how long this takes
    MPI_Finalize();
    pthread_mutex_lock(&m->lock);
}

void *mpi_thread(void *arg) {
    struct mpi *m = arg;
    double beat = 0;
    prctl(PR_SET_TIMERSLACK, 1000UL); // ns; naps of this thread would be 50 us longer
    mpi_take_short_slices();
    mpi_begin(m); // without the lock, because create() watches how long this takes
    pthread_mutex_lock(&m->lock);
    m->step = MPI_READY;
    m->told = m->failed; // create() reports it
    pthread_cond_broadcast(&m->done);
    for (unsigned idle = 0; !m->failed && !(m->leaves && m->n == 0);) {
        if (m->aborts) mpi_end(m->aborts);
        post(m);
        idle = poll_jobs(m) ? 0 : idle + 1;
        const double now = mpi_seconds();
        if (m->table.ranks > 1 && now - beat > 0.05) {
            beat = now;
            mpi_beat(m);
        }
        check_time(m);
        if (m->failed || (m->leaves && m->n == 0)) break;
        if (m->n == 0) {
            mpi_wait_a_moment(&m->asked, &m->lock);
            idle = 0;
        } else {
            rest(m, idle, now - m->moved);
        }
    }
    if (m->failed && !m->told)
        tell(m);
    else if (!m->failed)
        leave(m);
    m->left = 1;
    pthread_cond_broadcast(&m->done);
    pthread_mutex_unlock(&m->lock);
    return NULL;
}
