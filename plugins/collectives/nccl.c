// nccl.c: the collective over NVIDIA's NCCL, for ranks that compute on GPUs. Gradients and weights
// go from card to card.
//
// NCCL only sends and receives. The host computes the sums, on the same stream and in the order of
// its tree, so the sums have the same bits as over MPI. (ncclAllReduce promises no order.) A second
// collective, such as MPI's, sends the small messages and ends all ranks if a rank is lost.
#include "nccl_api.h"

#include <rlhf/draft/collective.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BEGIN_S 120.0 // for joining the communicator
#define END_S   10.0  // for leaving it

struct nccl {
    rlhf_collective table, base;
    struct nccl_api api;
    struct nccl_comm *comm; // NULL: none
    void *stream;
    double timeout_s;
    uint64_t issued; // tickets
    int32_t failed;
    char error[512], detail[64];
};

// Every rank sends this message to all others twice: before and after it joins the communicator.
struct hello {
    struct nccl_id id; // the id from rank 0
    int32_t works, version;
    char why[384]; // "" if works
};

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- results ----

static rlhf_status check(struct nccl *n, int result, const char *what) {
    if (result == NCCL_SUCCESS) return RLHF_OK;
    const char *more = n->comm ? n->api.last_error(n->comm) : NULL;
    n->failed = 1;
    snprintf(n->error, sizeof n->error, "%s failed: %s%s%s", what, n->api.error_text(result),
             more && more[0] ? ": " : "", more && more[0] ? more : "");
    return RLHF_E_DEVICE;
}

// NCCL's functions return before their work is done. This function waits until the work of the call
// that returned `result` is done, but at most `limit` seconds (0 = no limit).
static rlhf_status settle(struct nccl *n, int result, double limit, const char *what) {
    const double from = seconds();
    const struct timespec nap = {0, 20000};
    while (result == NCCL_IN_PROGRESS) {
        int state = NCCL_SUCCESS;
        const int unread = n->api.async_error(n->comm, &state);
        result = unread ? unread : state;
        if (result != NCCL_IN_PROGRESS) break;
        if (limit > 0 && seconds() - from > limit) {
            n->failed = 1;
            snprintf(n->error, sizeof n->error, "%s has taken longer than %.0f s", what, limit);
            return RLHF_E_DEVICE;
        }
        nanosleep(&nap, NULL);
    }
    return check(n, result, what);
}

// ---- what the host calls ----

static const char *last_error(void *ctx) {
    const struct nccl *n = ctx;
    return n->failed ? n->error : n->base.last_error(n->base.ctx);
}

// Returns the first of two results that is a failure.
static int first_of(int a, int b) {
    return a == NCCL_SUCCESS || a == NCCL_IN_PROGRESS ? (b == NCCL_SUCCESS ? a : b) : a;
}

// One group of sends and receives. Each rank starts with the next rank, so that not all ranks send
// to the same rank.
static rlhf_status exchange(void *ctx, const rlhf_block *send, const rlhf_block *recv,
                            uint64_t *ticket) {
    struct nccl *n = ctx;
    const struct nccl_api *a = &n->api;
    const int ranks = n->table.ranks, own = n->table.rank;
    int result = a->group_start();
    for (int d = 1; d < ranks; d++) {
        const int to = (own + d) % ranks, from = (own + ranks - d) % ranks;
        if (send[to].bytes)
            result = first_of(
                result, a->send(send[to].at, send[to].bytes, NCCL_INT8, to, n->comm, n->stream));
        if (recv[from].bytes)
            result = first_of(result, a->recv(recv[from].at, recv[from].bytes, NCCL_INT8, from,
                                              n->comm, n->stream));
    }
    result = first_of(result, a->group_end());
    *ticket = ++n->issued;
    return settle(n, result, n->timeout_s, "an exchange of NCCL");
}

// Only reports failures. It need not wait for the bytes, because device work that is queued on the
// stream after exchange() runs only after the bytes have arrived.
static rlhf_status wait_for(void *ctx, uint64_t ticket) {
    struct nccl *n = ctx;
    int state = NCCL_SUCCESS;
    (void)ticket;
    const int unread = n->api.async_error(n->comm, &state);
    return check(n, unread ? unread : state == NCCL_IN_PROGRESS ? NCCL_SUCCESS : state, "NCCL");
}

static rlhf_status gather(void *ctx, const void *own, uint64_t bytes, void *all) {
    const struct nccl *n = ctx;
    return n->base.gather(n->base.ctx, own, bytes, all);
}

static void end_all(void *ctx, int32_t status) {
    const struct nccl *n = ctx;
    n->base.abort(n->base.ctx, status);
}

// ---- begin and end ----

// Returns RLHF_OK if NCCL works on all ranks. Otherwise every rank returns RLHF_E_UNSUPPORTED, and
// n->error has the reason of the lowest rank on which NCCL does not work.
static rlhf_status agree(struct nccl *n, struct hello *own, struct hello *all) {
    RLHF_TRY(n->base.gather(n->base.ctx, own, sizeof *own, all));
    for (int32_t k = 0; k < n->base.ranks; k++)
        if (!all[k].works) {
            snprintf(n->error, sizeof n->error, "rank %d: %.383s", k, all[k].why);
            return RLHF_E_UNSUPPORTED;
        }
    return RLHF_OK;
}

static rlhf_status check_versions(struct nccl *n, const struct hello *all) {
    char a[32], b[32];
    for (int32_t k = 1; k < n->base.ranks; k++) {
        if (all[k].version == all[0].version) continue;
        nccl_version_text(all[0].version, a);
        nccl_version_text(all[k].version, b);
        snprintf(n->error, sizeof n->error,
                 "rank 0 has NCCL %s and rank %d has NCCL %s; all ranks need the same version", a,
                 k, b);
        return RLHF_E_UNSUPPORTED;
    }
    return RLHF_OK;
}

static rlhf_status join(struct nccl *n, const struct hello *all) {
    struct nccl_config config = {.size = sizeof config,
                                 .magic = NCCL_MAGIC,
                                 .version = NCCL_LEAST,
                                 .blocking = 0,
                                 .unset = NCCL_UNSET};
    const int result = n->api.init(&n->comm, n->base.ranks, all[0].id, n->base.rank, &config);
    return settle(n, result, BEGIN_S, "joining the ranks with NCCL");
}

static rlhf_status begin(struct nccl *n) {
    struct hello own = {0};
    struct hello *all = calloc((size_t)n->base.ranks, sizeof *all);
    rlhf_status st = RLHF_OK;
    if (!all) return RLHF_E_NOMEM;
    own.works = nccl_api_open(&n->api, own.why, sizeof own.why);
    own.version = n->api.version;
    if (own.works && n->base.rank == 0 && check(n, n->api.get_id(&own.id), "NCCL") != RLHF_OK) {
        own.works = 0;
        snprintf(own.why, sizeof own.why, "%.383s", n->error);
    }
    st = agree(n, &own, all);
    if (st == RLHF_OK) st = check_versions(n, all);
    if (st == RLHF_OK) {
        own.works = join(n, all) == RLHF_OK;
        if (!own.works) snprintf(own.why, sizeof own.why, "%.383s", n->error);
        st = agree(n, &own, all);
    }
    free(all);
    return st;
}

static void destroy(rlhf_collective *c) {
    struct nccl *n = c ? c->ctx : NULL;
    if (!n) return;
    if (n->comm && !n->failed &&
        settle(n, n->api.finalize(n->comm), END_S, "leaving NCCL") == RLHF_OK)
        n->api.destroy(n->comm);
    else if (n->comm)
        n->api.abort(n->comm);
    free(n);
}

static rlhf_status make(struct nccl *n, const rlhf_collective_options *from) {
    rlhf_collective_options o;
    char version[32];
    if (rlhf_copy_in(&o, sizeof o, from, RLHF_SIZE_TO(rlhf_collective_options, stream)) < 0 ||
        !o.base || o.device < 0 ||
        rlhf_copy_in(&n->base, sizeof n->base, o.base, RLHF_SIZE_TO(rlhf_collective, last_error)) <
            0) {
        snprintf(n->error, sizeof n->error, "NCCL needs a GPU, and another collective to begin");
        return RLHF_E_UNSUPPORTED;
    }
    n->stream = o.stream;
    n->timeout_s = o.timeout_s;
    n->table = (rlhf_collective){.size = sizeof n->table,
                                 .flags = RLHF_COLLECTIVE_DEVICE,
                                 .rank = n->base.rank,
                                 .ranks = n->base.ranks,
                                 .local = n->base.local,
                                 .locals = n->base.locals,
                                 .name = "nccl",
                                 .detail = n->detail,
                                 .ctx = n,
                                 .exchange = exchange,
                                 .wait = wait_for,
                                 .gather = gather,
                                 .abort = end_all,
                                 .last_error = last_error};
    RLHF_TRY(begin(n));
    nccl_version_text(n->api.version, version);
    snprintf(n->detail, sizeof n->detail, "NCCL %s", version);
    return RLHF_OK;
}

static rlhf_status create(const rlhf_collective_options *o, rlhf_collective **out, char *err,
                          uint64_t err_cap) {
    struct nccl *n = calloc(1, sizeof *n);
    const rlhf_status st = n ? make(n, o) : RLHF_E_NOMEM;
    if (st == RLHF_OK) {
        *out = &n->table;
        return RLHF_OK;
    }
    snprintf(err, err_cap, "%s",
             n && n->error[0]          ? n->error
             : n && st != RLHF_E_NOMEM ? n->base.last_error(n->base.ctx)
                                       : "out of memory for NCCL");
    if (n) {
        n->failed = 1;
        n->table.ctx = n;
        destroy(&n->table);
    }
    return st;
}

// NCCL is used together with another collective, so no launcher starts it.
static int32_t started(void) { return 0; }

static const rlhf_collectives own = {.size = sizeof own,
                                     .major = RLHF_COLLECTIVE_MAJOR,
                                     .minor = RLHF_COLLECTIVE_MINOR,
                                     .name = "nccl",
                                     .summary = "GPU to GPU through NVIDIA's NCCL",
                                     .started = started,
                                     .create = create,
                                     .destroy = destroy};

const rlhf_collectives *rlhf_collective_v0(void) { return &own; }
