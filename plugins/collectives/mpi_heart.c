// mpi_heart.c: the heartbeat. Every second, each rank sends one byte to the next rank. If the
// sender dies, the next rank notices that no more bytes arrive. A rank that is slow or busy
// computing still sends its bytes.
#include "mpi.h"
#include "mpi_clock.h"

#define BEAT_S 1.0 // seconds between two bytes

static int before(const struct mpi *m) {
    return (m->table.rank + m->table.ranks - 1) % m->table.ranks;
}

static void hear(struct mpi *m, double now) {
    struct heart *h = &m->heart;
    int came = 0;
    if (h->request[IN] != MPI_REQUEST_NULL) MPI_Test(&h->request[IN], &came, MPI_STATUS_IGNORE);
    if (came) h->heard = now;
    if (h->request[IN] == MPI_REQUEST_NULL)
        MPI_Irecv(&h->byte_in, 1, MPI_BYTE, before(m), TAG_BEAT, MPI_COMM_WORLD, &h->request[IN]);
}

static void send_byte(struct mpi *m, double now) {
    struct heart *h = &m->heart;
    int sent = 1;
    if (now - h->beaten < BEAT_S) return;
    if (h->request[OUT] != MPI_REQUEST_NULL) MPI_Test(&h->request[OUT], &sent, MPI_STATUS_IGNORE);
    if (!sent) return;
    h->beaten = now;
    MPI_Isend(&h->byte_out, 1, MPI_BYTE, (m->table.rank + 1) % m->table.ranks, TAG_BEAT,
              MPI_COMM_WORLD, &h->request[OUT]);
}

// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): the checker knows only MPI_Wait, not MPI_Test
int mpi_beat(struct mpi *m) {
    struct heart *h = &m->heart;
    const double now = mpi_seconds();
    if (h->heard <= 0 || now - h->awake > MPI_ASLEEP_S) h->heard = now;
    h->awake = now;
    hear(m, now);
    send_byte(m, now);
    if (now - h->heard <= MPI_SILENCE_S) return 1;
    mpi_fail(m, RLHF_E_DEVICE,
             "rank %d on %s has not answered for %.0f s: it was stopped or is gone", before(m),
             m->host[before(m)], MPI_SILENCE_S);
    return 0;
}
// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

void mpi_beat_end(struct mpi *m) {
    struct heart *h = &m->heart;
    if (h->request[IN] != MPI_REQUEST_NULL) {
        MPI_Cancel(&h->request[IN]);
        MPI_Request_free(&h->request[IN]);
    }
    if (h->request[OUT] != MPI_REQUEST_NULL) MPI_Request_free(&h->request[OUT]);
}
