// fake_nccl.c: a libnccl.so.2 for machines without a GPU. Ranks are processes of one machine, and
// bytes go through Unix sockets. If the emulated CUDA backend is in the process, a group of sends
// and receives is queued on its stream, and moves emulated device memory when the stream gets
// there.
//
// Where NCCL would hang or move the wrong bytes, the fake returns an error. The causes are a
// blocking communicator, a call on a busy communicator, sizes that do not match, a group that not
// all ranks make, and a rank that has ended.
//
//   FAKE_NCCL_VERSION=21805   the version; 22105 otherwise
//   FAKE_NCCL_JOIN=fail       this process cannot join; the others wait for it
//   FAKE_NCCL_FAIL=N          this process's N-th group fails
//   FAKE_NCCL_DIE=N           this process ends in its N-th group
//   FAKE_NCCL_LOG=FILE        destroying a communicator appends "rank R: G groups, B bytes sent"
#include "../../plugins/collectives/nccl_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { SYSTEM = 2, INTERNAL = 3, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE = 6 };
enum { MOST = 16, OPS = 2 * MOST, PATIENCE_MS = 300000 };

struct op {
    int peer, sends;
    char *at;
    uint64_t bytes, done; // done: with the header
    uint64_t header[2];   // bytes, number of the group
};

struct nccl_comm {
    int rank, ranks, fd[MOST];
    int error, busy, joined;
    struct nccl_id id;
    uint64_t groups, sent;
    char said[200];
};

struct group {
    struct nccl_comm *comm;
    void *stream;
    uint64_t number;
    int n, unused;
    struct op op[OPS];
};

static struct group now; // between ncclGroupStart and ncclGroupEnd
static int depth;

static long setting(const char *name) {
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

static int fail(struct nccl_comm *c, int error, const char *why) {
    if (!c->error) {
        c->error = error;
        snprintf(c->said, sizeof c->said, "%s", why);
    }
    return error;
}

// ---- sockets ----

static socklen_t address(const struct nccl_id *id, int rank, struct sockaddr_un *a) {
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "%.60s-%d", id->internal, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a->sun_path + 1));
}

// Connects to the ranks below; the ranks above connect to this one.
static int join(struct nccl_comm *c) {
    struct sockaddr_un a;
    socklen_t len = address(&c->id, c->rank, &a);
    const int barrier = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timespec nap = {0, 1000000};
    if (barrier < 0 || bind(barrier, (struct sockaddr *)&a, len) != 0 || listen(barrier, MOST) != 0)
        return SYSTEM;
    for (int k = 0; k < c->rank; k++) {
        len = address(&c->id, k, &a);
        c->fd[k] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        while (connect(c->fd[k], (struct sockaddr *)&a, len) != 0) {
            if (errno != ECONNREFUSED) return SYSTEM;
            nanosleep(&nap, NULL);
        }
        if (write(c->fd[k], &c->rank, sizeof c->rank) != sizeof c->rank) return SYSTEM;
    }
    for (int k = c->rank + 1; k < c->ranks; k++) {
        int who = -1;
        const int fd = accept4(barrier, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 || read(fd, &who, sizeof who) != sizeof who || who < 0 || who >= c->ranks)
            return SYSTEM;
        c->fd[who] = fd;
    }
    close(barrier);
    return NCCL_SUCCESS;
}

static uint64_t left(const struct op *o) { return o->bytes + sizeof o->header - o->done; }

// One step of an operation.
static void step(const struct group *g, struct op *o) {
    struct nccl_comm *c = g->comm;
    const int in_header = o->done < sizeof o->header;
    char *at = in_header ? (char *)o->header + o->done : o->at + (o->done - sizeof o->header);
    const uint64_t n = in_header ? sizeof o->header - o->done : left(o);
    const ssize_t got = o->sends ? send(c->fd[o->peer], at, n, MSG_DONTWAIT | MSG_NOSIGNAL)
                                 : recv(c->fd[o->peer], at, n, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        fail(c, REMOTE, "a rank is gone");
        return;
    }
    o->done += (uint64_t)got;
    if (!o->sends && in_header && o->done == sizeof o->header &&
        (o->header[0] != o->bytes || o->header[1] != g->number))
        fail(c, INVALID_USAGE, "a rank sends other bytes, or in another group, than are received");
}

// Does what a group does on the card. Called by the stream.
static void run(void *arg) {
    struct group *g = arg;
    struct nccl_comm *c = g->comm;
    if (setting("FAKE_NCCL_DIE") == (long)g->number) _exit(9);
    if (setting("FAKE_NCCL_FAIL") == (long)g->number) fail(c, SYSTEM, "a cable is broken");
    for (int k = 0; k < g->n; k++) {
        g->op[k].header[0] = g->op[k].bytes;
        g->op[k].header[1] = g->number;
        if (g->op[k].sends) c->sent += g->op[k].bytes;
    }
    while (!c->error) {
        struct pollfd p[OPS];
        nfds_t n = 0;
        for (int k = 0; k < g->n; k++)
            if (left(&g->op[k]))
                p[n++] =
                    (struct pollfd){c->fd[g->op[k].peer], g->op[k].sends ? POLLOUT : POLLIN, 0};
        if (n == 0) break;
        if (poll(p, n, PATIENCE_MS) == 0)
            fail(c, INVALID_USAGE, "a rank makes a group that the others do not make");
        for (int k = 0; k < g->n && !c->error; k++)
            if (left(&g->op[k])) step(g, &g->op[k]);
    }
}

// ---- the emulated backend ----

typedef int enqueue_fn(void (*run)(void *), void *arg, void (*drop)(void *), void *stream);

static int is_backend(struct dl_phdr_info *info, size_t size, void *out) {
    (void)size;
    if (!strstr(info->dlpi_name, "kernels_cuda")) return 0;
    *(const char **)out = info->dlpi_name;
    return 1;
}

static enqueue_fn *find_enqueue(void) {
    const char *path = NULL;
    enqueue_fn *f = NULL;
    dl_iterate_phdr(is_backend, &path);
    void *so = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *symbol = so ? dlsym(so, "emu_enqueue") : NULL;
    memcpy(&f, &symbol, sizeof f);
    return f;
}

static int submit(const struct group *g) {
    struct group *copy = malloc(sizeof *copy);
    enqueue_fn *enqueue = find_enqueue();
    if (!copy) return SYSTEM;
    *copy = *g;
    if (g->stream && enqueue) return enqueue(run, copy, free, g->stream) ? INVALID_USAGE : 0;
    run(copy);
    free(copy);
    return NCCL_SUCCESS;
}

// ---- NCCL's functions ----

#define API                                             __attribute__((visibility("default")))
#define NCCL_DECLARE(name, of_nvidia, type, parameters) API type of_nvidia parameters;
NCCL_FUNCTIONS(NCCL_DECLARE)

int ncclGetVersion(int *version) {
    *version = setting("FAKE_NCCL_VERSION") ? (int)setting("FAKE_NCCL_VERSION") : 22105;
    return NCCL_SUCCESS;
}

const char *ncclGetErrorString(int result) {
    return result == SYSTEM             ? "unhandled system error"
           : result == INVALID_ARGUMENT ? "invalid argument"
           : result == INVALID_USAGE    ? "invalid usage"
           : result == REMOTE           ? "remote process exited or there was a network error"
                                        : "internal error";
}

const char *ncclGetLastError(struct nccl_comm *comm) { return comm ? comm->said : ""; }

int ncclGetUniqueId(struct nccl_id *id) {
    static int made;
    *id = (struct nccl_id){{0}};
    snprintf(id->internal, sizeof id->internal, "fake-nccl-%ld-%d", (long)getpid(), made++);
    return NCCL_SUCCESS;
}

int ncclCommInitRankConfig(struct nccl_comm **comm, int ranks, struct nccl_id id, int rank,
                           struct nccl_config *config) {
    struct nccl_comm *c = calloc(1, sizeof *c);
    if (!c) return SYSTEM;
    *comm = c;
    if (config->size != 24 || config->magic != NCCL_MAGIC || config->version < NCCL_LEAST ||
        config->blocking != 0 || ranks > MOST)
        return fail(c, INVALID_ARGUMENT, "a communicator that blocks, or too many ranks");
    c->rank = rank;
    c->ranks = ranks;
    c->id = id;
    c->busy = 2;
    return NCCL_IN_PROGRESS;
}

int ncclCommGetAsyncError(struct nccl_comm *comm, int *state) {
    const char *how = getenv("FAKE_NCCL_JOIN");
    *state = NCCL_IN_PROGRESS;
    if (comm->busy > 0 && --comm->busy > 0) return NCCL_SUCCESS;
    if (!comm->joined && how && strcmp(how, "fail") == 0) fail(comm, SYSTEM, "no network");
    if (!comm->joined && !comm->error && join(comm) != NCCL_SUCCESS)
        fail(comm, SYSTEM, "the sockets of the ranks cannot be connected");
    comm->joined = 1;
    *state = comm->error;
    return NCCL_SUCCESS;
}

int ncclGroupStart(void) {
    if (depth++ == 0) now = (struct group){0};
    return NCCL_SUCCESS;
}

static int add(int sends, void *at, size_t bytes, int type, int peer, struct nccl_comm *c,
               void *stream) {
    if (depth == 0 || now.n == OPS || type != NCCL_INT8 || peer < 0 || peer >= c->ranks ||
        peer == c->rank || (now.comm && (now.comm != c || now.stream != stream)))
        return fail(c, INVALID_USAGE, "a send or receive that does not belong to the group");
    if (c->busy) return fail(c, INVALID_ARGUMENT, "the communicator is busy");
    now.comm = c;
    now.stream = stream;
    now.op[now.n++] = (struct op){.peer = peer, .sends = sends, .at = at, .bytes = bytes};
    return NCCL_SUCCESS;
}

int ncclSend(const void *at, size_t n, int type, int peer, struct nccl_comm *comm, void *stream) {
    return add(1, (void *)(uintptr_t)at, n, type, peer, comm, stream);
}

int ncclRecv(void *at, size_t n, int type, int peer, struct nccl_comm *comm, void *stream) {
    return add(0, at, n, type, peer, comm, stream);
}

int ncclGroupEnd(void) {
    if (--depth > 0 || !now.comm) return NCCL_SUCCESS;
    now.number = ++now.comm->groups;
    const int result = submit(&now);
    if (result) return fail(now.comm, result, "the group cannot be queued");
    now.comm->busy = 2;
    return NCCL_IN_PROGRESS;
}

int ncclCommFinalize(struct nccl_comm *comm) {
    comm->busy = 2;
    return NCCL_IN_PROGRESS;
}

int ncclCommDestroy(struct nccl_comm *comm) {
    const char *log = getenv("FAKE_NCCL_LOG");
    FILE *f = log ? fopen(log, "a") : NULL;
    if (f)
        fprintf(f, "rank %d: %llu groups, %llu bytes sent\n", comm->rank,
                (unsigned long long)comm->groups, (unsigned long long)comm->sent);
    if (f) fclose(f);
    for (int k = 0; k < comm->ranks; k++)
        if (k != comm->rank && comm->fd[k] > 0) close(comm->fd[k]);
    free(comm);
    return NCCL_SUCCESS;
}

int ncclCommAbort(struct nccl_comm *comm) {
    free(comm);
    return NCCL_SUCCESS;
}
